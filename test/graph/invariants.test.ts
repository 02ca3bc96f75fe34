import { agentMachine } from '../../machines/agent.machine.js'
import { agentInvariants, agentSpace, checkInvariants } from '../../src/testing/index.js'

/** `npm run test:graph` asks in every state; `npm test` in those of runs that take one step. */
const space = process.env.STATEWRIGHT_GRAPH === 'all' ? agentSpace() : agentSpace({ maxSteps: 1 })
const report = checkInvariants(agentMachine, agentInvariants, space)

test.each(agentInvariants.map(({ name }) => name))('in every reachable state: %s', (name) => {
  const violation = report.violations.find(({ invariant }) => invariant === name)
  expect(violation?.toString()).toBeUndefined()
})

test('every reachable state was asked', () => {
  expect(report.states).toBeGreaterThan(5_000)
  expect(report.holds).toBe(true)
})
