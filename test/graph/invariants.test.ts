import { agentMachine } from '../../machines/agent.machine.js'
import { hasRunnableCalls } from '../../machines/agent/conditions.js'
import { applyGrants, hasGrantedCalls, toGrantedCall } from '../../machines/agent/grants.js'
import { isRunnable } from '../../machines/agent/batch-calls.js'
import { toAction } from '../../machines/agent/update-action.js'
import { sampledRows } from '../support/extent.js'
import {
  agentInvariants,
  agentSpace,
  checkInvariants,
  type InvariantReport,
} from '../../src/testing/index.js'
import { exploreWhole } from './whole-graph.js'

/** `npm run suite -- graph` checks every state. `npm test` checks the states of one-step runs, and `.ci/run` of two-step runs. */
const isWhole = process.env.STATEWRIGHT_GRAPH === 'all'
const sample = sampledRows([
  'with every shield',
  'asking about interrupted calls',
  'with questions that expire',
  'with grants',
])
let reports: InvariantReport[]

// Skipped when tests are only listed. Runs in sequence, so that only one graph is in memory.
beforeAll(() => {
  const spaces = sample.map((name) => agentSpace({ only: [name], maxSteps: 1 }))
  reports = isWhole
    ? [exploreWhole().invariants]
    : spaces.map((space) => checkInvariants(agentMachine, agentInvariants, space))
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

test.each([
  'a call that needs an approval starts with one, or with a grant that covers it',
  'a use of a grant counts when its call starts',
  'a revoked grant has ended',
])('a chart that ignores the end, the uses and the revocation of grants is found: %s', (name) => {
  const machine = agentMachine.provide({
    guards: { hasRunnableCalls: (scope) => hasGrantedCalls(scope.context, 0) || hasRunnableCalls(scope) },
    actions: {
      revokeGrant: toAction(() => undefined),
      markStarted: toAction((context) => {
        const { granted } = applyGrants(context, 0)
        const calls = context.calls.map((call) => {
          const grant = granted.get(call)
          const next = grant ? toGrantedCall(call, grant) : call
          return isRunnable(next) ? { ...next, started: true as const } : call
        })
        return { calls }
      }),
    },
  })
  const space = agentSpace({ only: ['with grants'], maxSteps: 1 })
  // Uses that are given back and never counted would make endless states.
  const listEvents: typeof space.alphabet = (snapshot) => {
    const {
      'released before a call': _released,
      'the grant of a call has ended': _ended,
      ...others
    } = space.alphabet(snapshot)
    return others
  }
  // The search stops at the first violation. The whole graph of this chart has many states.
  const rules = agentInvariants.filter((rule) => rule.name === name)
  const { violations } = checkInvariants(machine, rules, { ...space, alphabet: listEvents })
  expect(violations).toHaveLength(1)
})

test('every reachable state was checked', () => {
  expect(reports.reduce((states, report) => states + report.states, 0)).toBeGreaterThan(
    isWhole ? 5_000 : 480 * sample.length,
  )
  expect(reports.every(({ holds }) => holds)).toBe(true)
})
