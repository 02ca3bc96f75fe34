import { readdirSync, readFileSync } from 'node:fs'
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

/** Each name follows its file. Several names may follow one file. */
function doorsIn(answer: string): { name: string; file: string; isLinked: boolean }[] {
  return answer.split(/(?=\[)/).flatMap((part) => {
    const [, file = '', link = '', rest = ''] = /^\[([^\]]+)\]\(([^)]+)\)(.*)$/.exec(part) ?? []
    const isLinked = posix.normalize(posix.join('docs', link)) === file
    return Array.from(rest.matchAll(/`(\w+)`/g), ([, name = '']) => ({ name, file, isLinked }))
  })
}

/** The names that a file declares at its top level, exported or not. */
function declaredIn(source: string): ReadonlySet<string> {
  const declarations = source.matchAll(
    /^(?:export )?(?:async )?(?:function\*?|const|class|interface|type) (\w+)/gm,
  )
  return new Set(Array.from(declarations, ([, name = '']) => name))
}

const declared = new Map(
  ['guards', 'machines', 'src'].flatMap((folder) =>
    readdirSync(root + folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.tsx?$/.test(name))
      .map((name) => posix.join(folder, name.replaceAll('\\', '/')))
      .map((file) => [file, declaredIn(readFileSync(root + file, 'utf8'))] as const),
  ),
)

/** The files that declare this name at their top level. */
function filesWith(name: string): string[] {
  return [...declared].filter(([, names]) => names.has(name)).map(([file]) => file)
}

test('the tables answer common questions, each with a file', () => {
  expect(answers.length).toBeGreaterThanOrEqual(30)
  expect(answers.filter(({ doors }) => doors.length === 0)).toEqual([])
})

test.each(answers)('$question', ({ doors }) => {
  for (const { name, file, isLinked } of doors) {
    expect([file, isLinked]).toEqual([file, true])
    // Only in this place.
    expect([name, filesWith(name)]).toEqual([name, [file]])
  }
})

test('each step of the paths has a file that declares its symbol', () => {
  const [, paths = ''] = document.split('\n## Four paths\n')
  const steps = Array.from(
    (paths.split('\n## ')[0] ?? '').matchAll(/^1\. (.+)$/gm),
    ([, step = '']) => doorsIn(step)[0],
  )
  expect(steps.length).toBeGreaterThanOrEqual(30)
  const isFound = (step: (typeof steps)[number]): boolean =>
    step?.isLinked === true && declared.get(step.file)?.has(step.name) === true
  expect(steps.filter((step) => !isFound(step))).toEqual([])
})

test('a name that a file only mentions is not declared there', () => {
  expect(declaredIn("import { wait } from './x.js'\n// function wait\nwait()\n")).toEqual(new Set())
  expect(declaredIn('export const wait = 1\n')).toEqual(new Set(['wait']))
})
