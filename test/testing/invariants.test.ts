import { createMachine, emit, setup } from 'xstate'
import {
  canReach,
  checkProperties,
  checkInvariants,
  createDoneActorEvent,
  isFinal,
  type Property,
  PathError,
} from '../../src/testing/index.js'
import { counter, detour, loop } from './machines.js'

const steps = [{ type: 'LONG' }, { type: 'SHORT' }, { type: 'ON' }, { type: 'HOME' }]
const loopOptions = {
  inputs: { plain: { maxSteps: 2, shielded: false } },
  alphabet: {
    calls: createDoneActorEvent('model', { calls: 1 }),
    answers: createDoneActorEvent('model', { calls: 0 }),
    done: { type: 'BATCH_DONE' },
    CANCEL: { type: 'CANCEL' },
    PAUSE: { type: 'PAUSE' },
    RESUME: { type: 'RESUME' },
  },
}

test('an invariant that holds is checked in every state', () => {
  const report = checkInvariants(
    loop,
    [{ name: 'the cap is kept', holds: ({ context }) => context.steps <= context.maxSteps }],
    loopOptions,
  )
  expect(report).toMatchObject({ holds: true, violations: [] })
  expect(report.states).toBeGreaterThan(5)
})

test('a counterexample is a shortest one, and prints as a list of events and states', () => {
  const report = checkInvariants(
    detour,
    [{ name: 'nothing breaks', holds: (snapshot) => !snapshot.matches('broken') }],
    { alphabet: steps },
  )
  const [example] = report.violations
  expect(example?.path.steps.map(({ label }) => label)).toEqual(['start', 'SHORT', 'ON'])
  expect(String(example)).toBe(
    'nothing breaks: does not hold\nStarting with input 1:\n  start → a\n  SHORT → d\n  ON    → broken',
  )
})

test('an invariant can check the step: event, previous state, actions and transitions', () => {
  const seen: string[] = []
  const report = checkInvariants(
    loop,
    [
      {
        name: 'CANCEL reaches cancelled from every state that is active',
        holds: (snapshot, { event, previous }) =>
          event.type !== 'CANCEL' || previous?.status !== 'active' || snapshot.matches('cancelled'),
      },
      {
        name: 'nothing starts when a run is cancelled',
        holds: (_, { event, actions }) =>
          event.type !== 'CANCEL' || actions.every(({ type }) => type !== 'xstate.spawnChild'),
      },
      {
        name: 'the start starts the deadline',
        holds: (_, { event, actions, transitions }) => {
          if (event.type !== 'xstate.init') return true
          seen.push(...transitions)
          return actions.some(({ type }) => type === 'xstate.spawnChild')
        },
      },
    ],
    loopOptions,
  )
  expect(report.violations.map(String)).toEqual([])
  expect(seen).toContain('running.starting: always → running.checking')
})

test('emitted events are among the actions', () => {
  const machine = setup({ types: {} as { emitted: { type: 'told' } } }).createMachine({
    on: { GO: { actions: emit({ type: 'told' }) } },
  })
  const received: unknown[] = []
  checkInvariants(
    machine,
    [
      {
        name: 'x',
        holds: (_, { actions }) =>
          void received.push(...actions.filter(({ type }) => type === 'xstate.emit')),
      },
    ],
    { alphabet: [{ type: 'GO' }] },
  )
  expect(received).toMatchObject([{ params: { event: { type: 'told' } } }])
})

test('a sentence and an error are reasons, and each invariant gets its own counterexample', () => {
  const report = checkInvariants(
    detour,
    [
      { name: 'one', holds: (snapshot) => (snapshot.value === 'b' ? 'b is no good' : true) },
      {
        name: 'two',
        holds: (snapshot) => {
          expect(snapshot.value).not.toBe('c')
        },
      },
    ],
    { alphabet: steps },
  )
  expect(report.violations.map(({ invariant, path }) => [invariant, path.weight])).toEqual([
    ['one', 1],
    ['two', 2],
  ])
  expect(report.violations[0]?.reason).toBe('b is no good')
})

test('a violation ends the search in an infinite machine', () => {
  const report = checkInvariants(counter, [{ name: 'few', holds: ({ context }) => context.ticks < 3 }], {
    alphabet: [{ type: 'TICK' }],
  })
  expect(report.violations[0]?.path.weight).toBe(3)
})

test('a violation that only the merged state shows is reported where it occurs', () => {
  const report = checkInvariants(counter, [{ name: 'few', holds: ({ context }) => context.ticks < 3 }], {
    alphabet: [{ type: 'TICK' }],
    serializeState: ({ context }) => String(Math.min(context.ticks, 2)),
  })
  expect(report.violations[0]?.path.state.context).toMatchObject({ ticks: 3 })
})

test.each([
  ['no invariants', []],
  ['not a list', undefined],
  ['an invariant without a rule', [{ name: 'x' }]],
  ['an asynchronous rule', [{ name: 'x', holds: () => Promise.resolve(true) }]],
])('%s is refused', (_, invariants) => {
  expect(() => checkInvariants(detour, invariants as never, { alphabet: steps })).toThrow(PathError)
})

test('canReach checks every state, or only those of from', () => {
  const check = (property: Property) => checkProperties(loop, { way: property }, loopOptions).way
  expect(check(canReach(isFinal))).toMatchObject({ holds: true })
  expect(check(canReach('running.requesting', { from: 'paused' })).holds).toBe(false)
  const { way } = checkProperties(detour, { way: canReach('broken', { from: 'a' }) }, { alphabet: steps })
  expect(way).toMatchObject({ holds: true, begun: 1 })
})

test('canReach shows the nearest state without a path', () => {
  const { way } = checkProperties(detour, { way: canReach('a') }, { alphabet: steps })
  expect(way).toMatchObject({ holds: false, begun: 6 })
  expect(way.counterexample?.path.steps.map(({ label }) => label)).toEqual(['start', 'LONG'])
  expect(way.message).toContain('the goal is unreachable from')
})

test('canReach proves nothing if no state satisfies from', () => {
  const machine = createMachine({ initial: 'a', states: { a: {}, b: {} } })
  const { way } = checkProperties(machine, { way: canReach('a', { from: 'b' }) }, { alphabet: [] })
  expect(way).toMatchObject({ holds: true, begun: 0 })
})

test('an unknown state is rejected with a suggestion', () => {
  expect(() => checkProperties(loop, { way: canReach('requesting') }, loopOptions)).toThrow(
    'Did you mean running.requesting?',
  )
})
