import { createMachine, emit, setup } from 'xstate'
import {
  anyState,
  canReach,
  checkInvariants,
  createDoneActorEvent,
  isFinal,
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

test('an invariant may judge the way: event, previous state, actions and transitions', () => {
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
  const told: unknown[] = []
  checkInvariants(
    machine,
    [
      {
        name: 'x',
        holds: (_, { actions }) => void told.push(...actions.filter(({ type }) => type === 'xstate.emit')),
      },
    ],
    { alphabet: [{ type: 'GO' }] },
  )
  expect(told).toMatchObject([{ params: { event: { type: 'told' } } }])
})

test('a sentence and a throw are reasons, and each invariant gets its own counterexample', () => {
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

test('a violation ends the search in a machine without end', () => {
  const report = checkInvariants(counter, [{ name: 'few', holds: ({ context }) => context.ticks < 3 }], {
    alphabet: [{ type: 'TICK' }],
  })
  expect(report.violations[0]?.path.weight).toBe(3)
})

test('a violation that only the merged state shows is seen where it happens', () => {
  const report = checkInvariants(counter, [{ name: 'few', holds: ({ context }) => context.ticks < 3 }], {
    alphabet: [{ type: 'TICK' }],
    serializeState: ({ context }) => String(Math.min(context.ticks, 2)),
  })
  expect(report.violations[0]?.path.state.context).toMatchObject({ ticks: 3 })
})

test.each([
  ['no invariants', []],
  ['no list', undefined],
  ['an invariant without a rule', [{ name: 'x' }]],
  ['an asynchronous rule', [{ name: 'x', holds: () => Promise.resolve(true) }]],
])('%s is refused', (_, invariants) => {
  expect(() => checkInvariants(detour, invariants as never, { alphabet: steps })).toThrow(PathError)
})

test('canReach says from how many states there is a way', () => {
  expect(canReach(loop, anyState, isFinal, loopOptions)).toMatchObject({ holds: true, stuck: 0 })
  expect(canReach(loop, 'paused', 'running.requesting', loopOptions).holds).toBe(false)
  expect(canReach(detour, 'a', 'broken', { alphabet: steps })).toMatchObject({ holds: true, from: 1, to: 1 })
})

test('canReach shows the nearest state that has no way', () => {
  const reach = canReach(detour, anyState, 'a', { alphabet: steps })
  expect(reach).toMatchObject({ holds: false, from: 6, stuck: 4 })
  expect(reach.example?.steps.map(({ label }) => label)).toEqual(['start', 'LONG'])
  expect(reach.message).toContain('4 of 6 states have no way to a')
})

test('canReach says that a machine has no final state', () => {
  const { message, holds } = canReach(detour, anyState, isFinal, { alphabet: steps })
  expect(holds).toBe(false)
  expect(message).toBe('No reachable state is final: the machine declares no final state.')
})

test('canReach says that nothing is where it should start from', () => {
  const machine = createMachine({ initial: 'a', states: { a: {}, b: {} } })
  expect(canReach(machine, 'b', 'a', { alphabet: [] }).message).toBe('No reachable state is b.')
})

test('a state that the machine does not have is refused, with what was meant', () => {
  expect(() => canReach(loop, 'requesting', isFinal, loopOptions)).toThrow('Did you mean running.requesting?')
})
