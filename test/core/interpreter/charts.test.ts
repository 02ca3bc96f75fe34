import { jest } from '@jest/globals'
import * as fc from 'fast-check'
import {
  type AnyMachineSnapshot,
  type AnyStateMachine,
  assign,
  cancel,
  createMachine,
  emit,
  enqueueActions,
  fromPromise,
  not,
  raise,
  sendTo,
  setup,
  spawnChild,
  stopChild,
} from 'xstate'
import { ChartTables, findUnknownPart } from '../../../src/core/interpreter/chart-tables.js'
import { randomConfig } from '../../diagram/random-config.js'
import { createRandom } from './random-walk.js'
import { Difference, SideBySide } from './side-by-side.js'
import { leavingOutsideIn } from './spoilt-tables.js'

const isWhole = process.env.STATEWRIGHT_INTERPRETER === 'all'
const idle = fromPromise(() => new Promise<never>(() => undefined))

/** All action kinds of XState, and user functions. */
const actions: readonly unknown[] = [
  () => undefined,
  assign(({ context }) => ({ n: (context as { n: number }).n + 1 })),
  raise({ type: 'GO' }),
  raise({ type: 'go.later' }, { delay: 1, id: 'later' }),
  cancel('later'),
  emit({ type: 'told' }),
  spawnChild('work' as never, { id: 'other' }),
  stopChild('other'),
  stopChild('it'),
  sendTo('it', { type: 'HELLO' }),
  enqueueActions(({ enqueue, check }) => {
    if (check(({ context }) => (context as { n: number }).n % 2 === 0)) enqueue('missing')
    enqueue.assign({ n: 7 })
    enqueue.raise({ type: 'GO' })
  }),
]

/** A chart without features that the tables do not support. */
function withoutParallel(config: object): object {
  return JSON.parse(JSON.stringify(config), (_, value: unknown) => {
    if (typeof value !== 'object' || value === null) return value
    const { type, states, ...rest } = value as { type?: string; states?: object }
    if (type !== 'parallel' || states === undefined) return value
    return { ...rest, states, initial: Object.keys(states)[0] }
  }) as object
}

function toMachine(config: object, action: unknown): AnyStateMachine | undefined {
  try {
    return createMachine({ ...config, context: { n: 0 }, options: { maxIterations: 20 } } as never, {
      actions: { act: action as never },
      guards: {
        'is "so" & <so>': (_, params) => (params as { n: number }).n !== 1,
        ready: ({ context }) => (context as { n: number }).n % 3 !== 2,
      },
      actors: { work: idle },
    })
  } catch {
    // XState rejects some of the random charts.
    return undefined
  }
}

const types = [
  'GO',
  'go.now',
  'go.later',
  'ELSE',
  'xstate.done.actor.it',
  'xstate.error.actor.it',
  'xstate.after.100.m',
]

/** Random events for a chart. Returns the first difference. */
function compare(machine: AnyStateMachine, seed: number, tables?: ChartTables): string | undefined {
  const random = createRandom(seed)
  const pair = new SideBySide(machine, tables)
  let snapshot: AnyMachineSnapshot = pair.start(undefined)
  for (let i = 0; i < 8; i++) {
    const type = types[Math.floor(random() * types.length)] as string
    const next = pair.take(snapshot, { type })
    if (next instanceof Difference) return next.toString()
    snapshot = next
  }
  return undefined
}

const chart = fc.record({
  config: fc.oneof(randomConfig, randomConfig.map(withoutParallel), randomConfig.map(withoutParallel)),
  action: fc.constantFrom(...actions),
  seed: fc.nat(),
})

test('random charts take the same transitions, with actions of every kind', () => {
  // From parallel states, which XState runs.
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  let known = 0
  fc.assert(
    fc.property(chart, ({ config, action, seed }) => {
      const machine = toMachine(config, action)
      if (!machine) return
      if (findUnknownPart(machine) === null) known++
      expect(compare(machine, seed)).toBeUndefined()
    }),
    { numRuns: isWhole ? 4_000 : 80 },
  )
  warn.mockRestore()
  expect(known).toBeGreaterThan(isWhole ? 1_000 : 16)
})

const nested = setup({
  actions: { one: () => undefined, two: () => undefined },
  guards: { broken: () => JSON.parse('{') as boolean, never: () => false },
}).createMachine({
  id: 'nested',
  initial: 'outer',
  states: {
    outer: {
      exit: 'one',
      initial: 'inner',
      states: { inner: { exit: 'two' }, done: { type: 'final' } },
      onDone: 'next',
      on: {
        NEXT: 'next',
        DONE: '.done',
        BROKEN: { guard: 'broken', target: 'next' },
        GUARDED: [{ guard: not('never'), target: 'next' }],
      },
    },
    next: { always: { guard: 'broken', target: 'outer' } },
  },
})

test('the comparison detects tables that exit states in the wrong order', () => {
  const machine = nested as unknown as AnyStateMachine
  const take = (tables: ChartTables): string | undefined => {
    const pair = new SideBySide(machine, tables)
    const next = pair.take(pair.start(undefined), { type: 'GUARDED' })
    return next instanceof Difference ? next.toString() : undefined
  }
  expect(take(new ChartTables(machine))).toBeUndefined()
  expect(take(leavingOutsideIn(machine))).toMatch('makes a difference: seen')
})

test.each(['NEXT', 'DONE', 'BROKEN', 'GUARDED'])(
  'a guard that throws fails with the same message, after %s',
  (type) => {
    const pair = new SideBySide(nested as unknown as AnyStateMachine)
    expect(pair.take(pair.start(undefined), { type })).not.toBeInstanceOf(Difference)
  },
)
