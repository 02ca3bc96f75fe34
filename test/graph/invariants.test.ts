import { agentMachine } from '../../machines/agent.machine.js'
import { isRunnable } from '../../machines/agent/batch-calls.js'
import { toAction } from '../../machines/agent/update-action.js'
import { sampledRows } from '../support/extent.js'
import {
  agentInvariants,
  agentSpace,
  checkInvariants,
  type InvariantReport,
} from '../../src/testing/index.js'

/** `npm run suite -- graph` checks every state. `npm test` checks the states of one-step runs, and `.ci/run` of two-step runs. */
const isWhole = process.env.STATEWRIGHT_GRAPH === 'all'
const sample = sampledRows([
  'with every shield',
  'asking about interrupted calls',
  'with questions that expire',
])
let reports: InvariantReport[]

// Skipped when tests are only listed. Runs in sequence, so that only one graph is in memory.
beforeAll(() => {
  const spaces = isWhole ? [agentSpace()] : sample.map((name) => agentSpace({ only: [name], maxSteps: 1 }))
  reports = spaces.map((space) => checkInvariants(agentMachine, agentInvariants, space))
})

test.each(agentInvariants.map(({ name }) => name))('in every reachable state: %s', (name) => {
  const violations = reports.flatMap((report) => report.violations)
  expect(violations.find(({ invariant }) => invariant === name)?.toString()).toBeUndefined()
})

test('a chart without the date check starts calls too late', () => {
  const machine = agentMachine.provide({
    guards: {
      hasLateCalls: () => false,
      cancelsOnExpiry: () => false,
      hasRunnableCalls: ({ context }) => context.calls.some(isRunnable),
    },
    actions: {
      markStarted: toAction(({ calls }) => ({
        calls: calls.map((call) => (isRunnable(call) ? { ...call, started: true } : call)),
      })),
    },
  })
  const space = agentSpace({ only: ['with questions that expire'], maxSteps: 1 })
  const { violations } = checkInvariants(machine, agentInvariants, space)
  expect(violations.map(({ invariant }) => invariant)).toContain(
    'a call never starts after its question expires',
  )
})

test('every reachable state was checked', () => {
  expect(reports.reduce((states, report) => states + report.states, 0)).toBeGreaterThan(
    isWhole ? 5_000 : 480 * sample.length,
  )
  expect(reports.every(({ holds }) => holds)).toBe(true)
})
