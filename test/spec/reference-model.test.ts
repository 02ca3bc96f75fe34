import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { agentMachine } from '../../machines/agent.machine.js'
import { changes } from '../../spec/changes.js'
import { conditions } from '../../spec/conditions.js'
import { agentSpace, checkSessionLog, generatePaths } from '../../src/testing/index.js'
import { details } from '../../src/testing/reference-model/details.js'
import { type LogEntry, rows } from '../../src/testing/reference-model/judge-log.js'
import type { StoredCase } from '../fixtures/sessions/stored-case.js'
import { sampledKinds } from '../support/extent.js'
import { judgeWhole as judgeLog } from './judge-whole.js'
import { writePathLog } from './path-log.js'

const root = new URL('../../', import.meta.url)
const space = agentSpace({
  only: sampledKinds(['with every shield', 'asking about interrupted calls', 'interactive']),
})
const { paths } = generatePaths(agentMachine, { ...space, coverage: 'transitions' })

function logOf(path: (typeof paths)[number], isSnappedOften = false): LogEntry[] {
  const input = space.inputs[path.input as string]
  if (!input) throw new Error(`There is no input '${path.input}'.`)
  return writePathLog(path, input, { isSnappedOften })
}
const logs = paths.map((path) => logOf(path))
const renumber = (log: LogEntry[]): LogEntry[] => log.map((entry, i) => ({ ...entry, seq: i + 1 }))
const anyLog = fc.constantFrom(...logs)
const isAnswer = ({ event }: LogEntry): boolean =>
  /done\.actor\.(model|conclusion)$/.test((event as { type?: string } | undefined)?.type ?? '')

const textsOf = (folder: string): string[] =>
  readdirSync(new URL(folder, root)).map((file) => readFileSync(new URL(`${folder}${file}`, root), 'utf8'))
const importsOf = (text: string): (string | undefined)[] =>
  [...text.matchAll(/(?:from|import) ?\(?'([^']+)'/g)].map(([, name]) => name)

test('the rules import nothing but themselves', () => {
  expect(
    textsOf('spec/')
      .flatMap(importsOf)
      .filter((name) => !name?.startsWith('./')),
  ).toEqual([])
})

test('the check of logs by the rules imports only the rules', () => {
  const imports = textsOf('src/testing/reference-model/').flatMap(importsOf)
  expect(imports.length).toBeGreaterThan(5)
  expect(imports.filter((name) => !/^(\.\/|\.\.\/\.\.\/\.\.\/spec\/)/.test(name ?? ''))).toEqual([])
})

test('each term of the table has a meaning, and each meaning a term', () => {
  const wordsOf = (texts: string[]): Set<string> =>
    new Set(texts.map((text) => text.replace('!', '').split(' ')[0] ?? '').filter(Boolean))
  const question = wordsOf(rows.flatMap((row) => row.conditions))
  const own = Object.keys(conditions)
  // Some of the open details have explicit conditions.
  const others = textsOf('spec/').flatMap((text) =>
    [...text.matchAll(/ask\('(\w+)'/g)].map(([, name]) => name ?? ''),
  )
  const open = [...question, ...others].filter((name) => !own.includes(name) || others.includes(name))
  expect(own.filter((name) => !question.has(name))).toEqual([])
  expect([...new Set(open)].toSorted()).toEqual(Object.keys(details.answers).toSorted())
  const done = wordsOf(rows.flatMap((row) => row.changes))
  expect([...done].toSorted()).toEqual(Object.keys(changes).toSorted())
})

test('a run reaches every state of the table, and leaves every state that is not final', () => {
  const places = new Set(rows.map(({ place }) => place).filter((place) => place !== '*'))
  const reached = new Set(rows.map(({ to }) => to).filter((place) => place !== '='))
  expect([...places].filter((place) => !reached.has(place))).toEqual(
    ['starting'].filter((one) => !reached.has(one)),
  )
  const ends = [...reached].filter((place) => !places.has(place))
  expect(ends.toSorted()).toEqual([
    'BLOCKED',
    'BUDGET_EXCEEDED',
    'CANCELLED',
    'COMPLETED',
    'ERROR',
    'MAX_STEPS',
    'TIMED_OUT',
  ])
})

test('the specification accepts the log of every generated path, and each state on the way', () => {
  expect(logs.length).toBeGreaterThan(15)
  expect(logs.map((log) => judgeLog(log)).filter(Boolean)).toEqual([])
  expect(paths.map((path) => judgeLog(logOf(path, true))).filter(Boolean)).toEqual([])
})

test('the specification accepts sessions of earlier versions', () => {
  const folder = new URL('test/fixtures/sessions/', root)
  const versions = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  let count = 0
  for (const { name } of versions) {
    for (const file of readdirSync(new URL(`${name}/`, folder))) {
      const { sessions } = JSON.parse(readFileSync(new URL(`${name}/${file}`, folder), 'utf8')) as StoredCase
      for (const [id, records] of Object.entries(sessions)) {
        expect([name, file, checkSessionLog(records, id)]).toEqual([name, file, null])
        count += 1
      }
    }
  }
  expect(count).toBeGreaterThanOrEqual(21)
})

test('a record that is missing, repeated or moved is detected by its number', () => {
  fc.assert(
    fc.property(anyLog, fc.nat(), (log, at) => {
      const i = at % (log.length - 1)
      const [one, next] = [log[i], log[i + 1]] as [LogEntry, LogEntry]
      expect(judgeLog(log.toSpliced(i, 1))).not.toBeNull()
      expect(judgeLog(log.toSpliced(i, 0, one))).not.toBeNull()
      expect(judgeLog(log.with(i, next).with(i + 1, one))).not.toBeNull()
    }),
  )
})

test('an answer of the model that is missing or repeated is detected even if all records are renumbered', () => {
  const answered = logs.filter((log) => log.some(isAnswer))
  fc.assert(
    fc.property(fc.constantFrom(...answered), (log) => {
      const i = log.findIndex(isAnswer)
      expect(judgeLog(renumber(log.toSpliced(i, 1)))).not.toBeNull()
      expect(judgeLog(renumber(log.toSpliced(i, 0, log[i] as LogEntry)))).not.toBeNull()
    }),
  )
})

test('any record after the end of a run is refused', () => {
  const ended = logs.filter((log) => (log.at(-1) as { state?: { status: string } }).state?.status === 'done')
  fc.assert(
    fc.property(
      fc.constantFrom(...ended),
      fc.constantFrom('PAUSE', 'STEER', 'RESUMED', 'CANCEL'),
      (log, type) => {
        const { at } = log.at(-1) as LogEntry
        const more = { seq: log.length + 1, at, type: 'event', event: { type, now: at } }
        expect(judgeLog([...log, more])).toMatchObject({ rule: 'end', seq: log.length + 1 })
      },
    ),
  )
})

test('a changed text and a truncated log are not detected, because nothing in the log contradicts them', () => {
  const message = logs.find((log) => log.some(isAnswer)) as LogEntry[]
  const at = message.findIndex(isAnswer)
  const text = JSON.stringify(message[at]).replace(/"text":"[^"]+"/, '"text":"Something else."')
  expect(text).toContain('Something else.')
  expect(judgeLog(message.with(at, JSON.parse(text) as LogEntry))).toBeNull()
  for (const log of logs) expect(judgeLog(log.slice(0, -2))).toBeNull()
})
