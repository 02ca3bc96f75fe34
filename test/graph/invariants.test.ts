import { agentMachine } from '../../machines/agent.machine.js'
import { sampledRows } from '../support/extent.js'
import {
  agentInvariants,
  agentSpace,
  checkInvariants,
  type InvariantReport,
} from '../../src/testing/index.js'

/** `npm run suite -- graph` checks every state. `npm test` checks the states of one-step runs, and `.ci/run` of two-step runs. */
const isWhole = process.env.STATEWRIGHT_GRAPH === 'all'
const sample = sampledRows(['with every shield', 'asking about interrupted calls'])
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

test('every reachable state was asked', () => {
  expect(reports.reduce((states, report) => states + report.states, 0)).toBeGreaterThan(
    isWhole ? 5_000 : 500 * sample.length,
  )
  expect(reports.every(({ holds }) => holds)).toBe(true)
})
