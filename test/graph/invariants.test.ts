import { agentMachine } from '../../machines/agent.machine.js'
import { agentInvariants, agentSpace, checkInvariants } from '../../src/testing/index.js'

/** `npm run test:graph` asks in every state; `npm test` in those of some runs that take one step. */
const isWhole = process.env.STATEWRIGHT_GRAPH === 'all'
const sample = ['with every shield', 'asking about interrupted calls']
const spaces = isWhole ? [agentSpace()] : sample.map((name) => agentSpace({ only: [name], maxSteps: 1 }))
// One after the other: no more than one graph is in memory.
const reports = spaces.map((space) => checkInvariants(agentMachine, agentInvariants, space))

test.each(agentInvariants.map(({ name }) => name))('in every reachable state: %s', (name) => {
  const violations = reports.flatMap((report) => report.violations)
  expect(violations.find(({ invariant }) => invariant === name)?.toString()).toBeUndefined()
})

test('every reachable state was asked', () => {
  expect(reports.reduce((states, report) => states + report.states, 0)).toBeGreaterThan(
    isWhole ? 5_000 : 1_000,
  )
  expect(reports.every(({ holds }) => holds)).toBe(true)
})
