import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { root } from './snippets.js'

const document = readFileSync(`${root}docs/architecture.md`, 'utf8')
const [, section = ''] = document.split('\n## Where is it decided\n')
const [table = ''] = section.split('\n## ')
const answers = Array.from(
  table.matchAll(/^\| ([^|]+\?) \| (.+) \|$/gm),
  ([, question = '', answer = '']) => ({
    question,
    doors: doorsIn(answer),
  }),
)

/** Each name stands after the file that it is in; several may stand after one. */
function doorsIn(answer: string): { name: string; file: string; isLinked: boolean }[] {
  return answer.split(/(?=\[)/).flatMap((part) => {
    const [, file = '', link = '', rest = ''] = /^\[([^\]]+)\]\(([^)]+)\)(.*)$/.exec(part) ?? []
    const isLinked = posix.normalize(posix.join('docs', link)) === file
    return Array.from(rest.matchAll(/`(\w+)`/g), ([, name = '']) => ({ name, file, isLinked }))
  })
}

/** Whether a file declares something of that name at its top level, exported or not. */
function declares(source: string, name: string): boolean {
  return new RegExp(`^(export )?(async )?(function|const|class) ${name}\\b`, 'm').test(source)
}

test('the table answers ten questions, each with a door', () => {
  expect(answers).toHaveLength(10)
  expect(answers.filter(({ doors }) => doors.length === 0)).toEqual([])
})

test.each(answers)('$question', ({ doors }) => {
  for (const { name, file, isLinked } of doors) {
    expect([file, isLinked]).toEqual([file, true])
    expect([name, file, declares(readFileSync(root + file, 'utf8'), name)]).toEqual([name, file, true])
  }
})

test('a name that a file only mentions is not declared there', () => {
  expect(declares("import { wait } from './x.js'\n// function wait\nwait()\n", 'wait')).toBe(false)
  expect(declares('export const wait = 1\n', 'wait')).toBe(true)
})
