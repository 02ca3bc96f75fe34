import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { roster } from '../../../guards/roster.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** The configuration interfaces, by file. */
const interfaces: Record<string, string[]> = {
  'machines/agent/config.ts': ['AgentConfig'],
  'guards/progress-config.ts': ['Steps', 'StepsWithBlock'],
  'src/core/config/config-file.ts': ['ConfigFile', 'ModelSection'],
  'src/core/config/price-table.ts': ['ModelPrice'],
  'src/core/config/request-options.ts': ['RequestOptions'],
  'src/core/models/openai/openai-options.ts': ['OpenAIChatOptions'],
  'src/core/models/provider.ts': ['Sampling'],
  'src/core/agent/agent-options.ts': ['AgentOptions', 'RunOptions', 'ResumeOptions'],
}

/** The keys of an interface, including nested objects, and whether each has a doc comment. */
function keysOf(source: string, name: string): { key: string; isDocumented: boolean }[] {
  const lines = source.split('\n')
  const start = lines.findIndex((line) => line.startsWith(`export interface ${name}`))
  const body = lines.slice(start).findIndex((line) => line.endsWith('{'))
  const length = lines.slice(start).indexOf('}')
  if (start < 0 || body < 0 || length < 0) throw new Error(`There is no interface ${name}.`)
  return lines.slice(start + body + 1, start + length).flatMap((line, i, all) => {
    const [, key] = /^ +(\w+|\$\w+)\??: /.exec(line) ?? []
    return key === undefined ? [] : [{ key, isDocumented: all[i - 1]?.endsWith('*/') === true }]
  })
}

/** Includes each guard's settings, which are in the guards' files. */
const ofGuards = ['guards', 'guards/presets']
  .flatMap((folder) => readdirSync(root + folder).map((file) => `${folder}/${file}`))
  .filter((file) => file.endsWith('.ts'))
  .flatMap((file) =>
    Array.from(
      readFileSync(root + file, 'utf8').matchAll(/^export interface (\w+Config) /gm),
      ([, name = '']): [string, string] => [name, file],
    ),
  )

const cases = Object.entries(interfaces)
  .flatMap(([file, names]) => names.map((name): [string, string] => [name, file]))
  .concat(ofGuards)

it('every guard of the roster has a description', () => {
  const source = readFileSync(`${root}guards/roster.ts`, 'utf8')
  const [, table = ''] = /^export const roster = \{\n([^]*?)^\}/m.exec(source) ?? []
  const lines = table.split('\n')
  const keys = lines.flatMap((line, i) => (/^  (\w+),$/.test(line) ? [{ line, before: lines[i - 1] }] : []))
  expect(keys).toHaveLength(Object.keys(roster).length)
  expect(keys.filter(({ before }) => !before?.endsWith('*/'))).toEqual([])
})

it.each(cases)('every key of %s (%s) has a description', (name, file) => {
  const keys = keysOf(readFileSync(root + file, 'utf8'), name)
  expect(keys).not.toEqual([])
  expect(keys.filter(({ isDocumented }) => !isDocumented)).toEqual([])
})

it('a key without a comment is detected', () => {
  const source = 'export interface A {\n  /** Yes. */\n  a: {\n    b?: number\n  }\n}\n'
  expect(keysOf(source, 'A')).toEqual([
    { key: 'a', isDocumented: true },
    { key: 'b', isDocumented: false },
  ])
})
