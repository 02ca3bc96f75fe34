import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { agentMachine } from '../../machines/agent.machine.js'
import { judgeLog, type LogEntry } from '../../spec/judge.js'
import { agentSpace, checkSessionLog, generatePaths } from '../../src/testing/index.js'
import type { StoredCase } from '../fixtures/sessions/stored-case.js'
import { writePathLog } from './path-log.js'

const root = new URL('../../', import.meta.url)
const space = agentSpace({ only: ['with every shield', 'interactive', 'asking about interrupted calls'] })
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

test('the specification imports nothing but itself', () => {
  for (const file of readdirSync(new URL('spec/', root))) {
    const text = readFileSync(new URL(`spec/${file}`, root), 'utf8')
    const imports = [...text.matchAll(/(?:from|import) ?\(?'([^']+)'/g)].map(([, name]) => name)
    expect(imports.filter((name) => !name?.startsWith('./'))).toEqual([])
  }
})

test('the specification takes the log of every generated path, and each state on the way', () => {
  expect(logs.length).toBeGreaterThan(15)
  expect(logs.map((log) => judgeLog(log)).filter(Boolean)).toEqual([])
  expect(paths.map((path) => judgeLog(logOf(path, true))).filter(Boolean)).toEqual([])
})

test('the specification takes what earlier versions have stored', () => {
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
  expect(count).toBeGreaterThanOrEqual(36)
})

test('a record that is missing, comes twice or stands elsewhere is seen by its number', () => {
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

test('an answer of the model that is left out, or comes twice, is seen although all is numbered anew', () => {
  const answered = logs.filter((log) => log.some(isAnswer))
  fc.assert(
    fc.property(fc.constantFrom(...answered), (log) => {
      const i = log.findIndex(isAnswer)
      expect(judgeLog(renumber(log.toSpliced(i, 1)))).not.toBeNull()
      expect(judgeLog(renumber(log.toSpliced(i, 0, log[i] as LogEntry)))).not.toBeNull()
    }),
  )
})

test('whatever comes after the end of a run is refused', () => {
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

test('a changed text, and a log that is cut off at its end, are not seen: nothing in the log says otherwise', () => {
  const said = logs.find((log) => log.some(isAnswer)) as LogEntry[]
  const at = said.findIndex(isAnswer)
  const text = JSON.stringify(said[at]).replace(/"text":"[^"]+"/, '"text":"Something else."')
  expect(text).toContain('Something else.')
  expect(judgeLog(said.with(at, JSON.parse(text) as LogEntry))).toBeNull()
  for (const log of logs) expect(judgeLog(log.slice(0, -2))).toBeNull()
})
