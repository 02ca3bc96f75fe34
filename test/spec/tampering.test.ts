import { agentMachine } from '../../machines/agent.machine.js'
import { judgeLog as judgeByRules, type LogEntry } from '../../src/testing/reference-model/judge-log.js'
import { judgeWhole as judgeLog } from './judge-whole.js'
import { agentSpace, generatePaths, type MachinePath } from '../../src/testing/index.js'
import { agentPaths } from '../support/agent-paths.js'
import { runsAll, sampledRows } from '../support/extent.js'
import { writePathLog } from './path-log.js'
import { tamperings } from './tampering.js'

/**
 * A log of each generated path, with a snapshot at the end or after each event. In `.ci/run` the logs cover every pair of
 * transitions. Here they cover the one-step transitions from each of these inputs, which offer a place for each tampering.
 */
const sample = [
  'plain',
  'with a deadline',
  'with result shields',
  'interactive',
  'asking about interrupted calls',
  'with sleep',
]
/** A deadline remains set from one step to the next. */
const spaces = runsAll
  ? [agentSpace()]
  : sample.map((name) => agentSpace({ only: [name], maxSteps: name === 'with a deadline' ? 2 : 1 }))
let paths: MachinePath[]
let logs: LogEntry[][]
let snapped: LogEntry[][]

// Skipped when tests are only listed.
beforeAll(() => {
  paths = runsAll ? agentPaths() : spaces.flatMap((space) => generatePaths(agentMachine, space).paths)
  const writeLogs = (isSnappedOften: boolean) =>
    paths.map((path) => {
      const input = spaces.find(({ inputs }) => inputs[path.input as string])?.inputs[path.input as string]
      if (!input) throw new Error(`There is no input '${path.input}'.`)
      return writePathLog(path, input, { isSnappedOften })
    })
  logs = writeLogs(false)
  snapped = writeLogs(true)
})

test('no unmodified log is refused', () => {
  expect([...logs, ...snapped].map((log) => judgeLog(log)).filter(Boolean)).toEqual([])
})

test('the rules alone, which are weaker, refuse none of these logs either', () => {
  expect(logs.length).toBeGreaterThan(15)
  expect([...logs, ...snapped].map((log) => judgeByRules(log)).filter(Boolean)).toEqual([])
})

test.each(tamperings)('refused for any position: $name', ({ apply, needsSnapshot }) => {
  const tampered = sampledRows(
    (needsSnapshot ? snapped : logs).flatMap((log, path) =>
      apply(log).map((one, way) => ({ one, path, way })),
    ),
  )
  expect(tampered.length).toBeGreaterThan(0)
  const remaining = tampered
    .filter(({ one }) => judgeLog(one) === null)
    .map(({ path, way }) => `${way}: ${paths[path]?.steps.map(({ label }) => label).join(' → ')}`)
  expect(remaining).toEqual([])
})
