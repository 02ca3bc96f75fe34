import { agentMachine } from '../../machines/agent.machine.js'
import { judgeLog as judgeByRules } from '../../src/testing/reference-model/judge-log.js'
import { judgeWhole as judgeLog } from './judge-whole.js'
import { agentSpace, generatePaths } from '../../src/testing/index.js'
import { runsAll } from '../support/extent.js'
import { writePathLog } from './path-log.js'
import { tamperings } from './tampering.js'

/**
 * A log of each generated path, with a snapshot of its end, or after each of its events. In `.ci/run` every pair of transitions is in
 * one of them; here, the transitions from each of these inputs, with which each tampering can be done somewhere.
 */
const sample = [
  'plain',
  'with a deadline',
  'with every shield',
  'interactive',
  'asking about interrupted calls',
  'with sleep',
]
const { inputs } = agentSpace()
const paths = runsAll
  ? generatePaths(agentMachine, { ...agentSpace(), coverage: 'transition-pairs' }).paths
  : sample.flatMap(
      (name) =>
        generatePaths(agentMachine, { ...agentSpace({ only: [name] }), coverage: 'transitions' }).paths,
    )
const writeLogs = (isSnappedOften: boolean) =>
  paths.map((path) => {
    const input = inputs[path.input as string]
    if (!input) throw new Error(`There is no input '${path.input}'.`)
    return writePathLog(path, input, { isSnappedOften })
  })
const logs = writeLogs(false)
const snapped = writeLogs(true)

test('no log is refused that is as it was written', () => {
  expect([...logs, ...snapped].map((log) => judgeLog(log)).filter(Boolean)).toEqual([])
})

test('the rules alone, which leave open what others know, refuse none of these logs either', () => {
  expect(logs.length).toBeGreaterThan(15)
  expect([...logs, ...snapped].map((log) => judgeByRules(log)).filter(Boolean)).toEqual([])
})

test.each(tamperings)('refused wherever it is done: $name', ({ apply, needsSnapshot }) => {
  const tampered = (needsSnapshot ? snapped : logs).flatMap((log, path) =>
    apply(log).map((one, way) => ({ one, path, way })),
  )
  expect(tampered.length).toBeGreaterThan(0)
  const taken = tampered
    .filter(({ one }) => judgeLog(one) === null)
    .map(({ path, way }) => `${way}: ${paths[path]?.steps.map(({ label }) => label).join(' → ')}`)
  expect(taken).toEqual([])
})
