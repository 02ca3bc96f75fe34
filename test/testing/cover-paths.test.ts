import * as fc from 'fast-check'
import { getShortestPaths } from '@xstate/graph'
import { and, assign, createMachine, not, setup, type SnapshotFrom } from 'xstate'
import {
  checkInvariants,
  formatCoverage,
  generatePaths,
  createDoneActorEvent,
  createErrorActorEvent,
  PathError,
} from '../../src/testing/index.js'
import { counter, detour, gaps, loop } from './machines.js'
import { sampled } from '../support/extent.js'

const alphabet = {
  'model calls tools': createDoneActorEvent('model', { calls: 1 }),
  'model answers': createDoneActorEvent('model', { calls: 0 }),
  'model fails': createErrorActorEvent('model', { code: 'down' }),
  'shield allows': createDoneActorEvent('shield'),
  'shield fails': createErrorActorEvent('shield', { code: 'down' }),
  result: { type: 'TOOL_RESULT', ok: true },
  'tools done': { type: 'BATCH_DONE' },
  CANCEL: { type: 'CANCEL' },
  PAUSE: { type: 'PAUSE' },
  RESUME: { type: 'RESUME' },
}
const inputs = {
  plain: { maxSteps: 1, shielded: false },
  shielded: { maxSteps: 1, shielded: true },
}

function key({ value, context }: { value: unknown; context: unknown }): string {
  return JSON.stringify([value, context])
}

function thrownBy(run: () => unknown): PathError {
  try {
    run()
  } catch (error) {
    if (error instanceof PathError) return error
    throw error
  }
  throw new Error('Nothing was thrown.')
}

test('every declared transition is taken: guard branches, always, after, done, error, root handlers', () => {
  const { coverage } = generatePaths(loop, { inputs, alphabet })
  expect(coverage.transitions).toHaveLength(15)
  expect(coverage.transitions.filter(({ count }) => count === 0)).toEqual([])
  expect(coverage.states.filter(({ reached }) => !reached)).toEqual([])
})

test('the paths are minimal: none can be removed', () => {
  const { paths } = generatePaths(loop, { inputs, alphabet })
  // Six transitions lead to a final state, and a path can take only one of them.
  expect(paths.length).toBe(6)
  for (const left of paths) {
    const others = new Set(
      paths.filter((path) => path !== left).flatMap((path) => path.steps.flatMap((s) => s.transitions)),
    )
    expect(left.steps.flatMap((step) => step.transitions).some((id) => !others.has(id))).toBe(true)
  }
})

test('a path names its events and contains the snapshot after each', () => {
  const { paths } = generatePaths(loop, { inputs: { plain: inputs.plain }, alphabet })
  const capped = paths.find((path) => path.state.matches('capped'))
  expect(capped?.steps[0]).toMatchObject({
    label: 'start',
    event: { type: 'xstate.init', input: inputs.plain },
  })
  expect(capped?.steps.at(-1)).toMatchObject({ label: 'tools done', event: { type: 'BATCH_DONE' } })
  expect(capped?.steps.at(-1)?.transitions).toEqual([
    'running.executing: BATCH_DONE → running.checking',
    'running.checking: always [isAtCap] → capped',
  ])
  expect(capped?.name).toMatch(/tools done → capped \(done\)$/)
})

test('transitions of the initial macrostep count', () => {
  const machine = createMachine({
    initial: 'a',
    states: { a: { always: 'b' }, b: { entry: [], always: 'c' }, c: { type: 'final' } },
  })
  const { paths, coverage } = generatePaths(machine, { alphabet: [] })
  expect(paths).toHaveLength(1)
  expect(paths[0]?.steps).toHaveLength(1)
  expect(coverage.transitions.map(({ count }) => count)).toEqual([1, 1])
  expect(coverage.states.every(({ reached }) => reached)).toBe(true)
})

test('an uncovered transition has a reason, with the guard that blocked it', () => {
  const { coverage } = generatePaths(gaps, { alphabet: [{ type: 'ENTER' }, { type: 'BACK' }] })
  const why = coverage.transitions.map(({ id, uncovered }) => [id, uncovered?.reason])
  expect(why).toEqual([
    ['hall: ENTER [isOpen] → vault', 'guard_false'],
    ['hall: ENTER [isLit] → room', undefined],
    ['hall: ENTER → cellar', 'shadowed'],
    ['hall: RING → room', 'event_absent'],
    ['room: BACK → hall', undefined],
    ['vault: BACK → hall', 'source_unreached'],
  ])
  expect(coverage.transitions[0]?.uncovered).toMatchObject({ guard: 'isOpen', timesFalse: 1 })
  expect(coverage.transitions[2]?.uncovered?.instead).toEqual(['hall: ENTER [isLit] → room'])
  expect(coverage.states.filter(({ reached }) => !reached).map(({ id }) => id)).toEqual(['vault', 'cellar'])
  expect(formatCoverage(coverage)).toContain("its guard 'isOpen' was false")
})

test('combined guards are listed individually', () => {
  const machine = setup({ guards: { isOne: () => true, isTwo: () => true } }).createMachine({
    on: { GO: { guard: and(['isOne', not('isTwo')]), actions: [] } },
  })
  const { coverage } = generatePaths(machine, { alphabet: [{ type: 'GO' }] })
  expect(coverage.transitions[0]?.uncovered?.guard).toBe('and(isOne, not(isTwo))')
})

test('a transition that is overridden by another region does not count as taken', () => {
  const machine = createMachine({
    type: 'parallel',
    states: {
      one: { initial: 'a', states: { a: { on: { GO: '#out' } } } },
      two: { initial: 'a', states: { a: { on: { GO: '#out' } } } },
      out: { id: 'out' },
    },
  })
  const { coverage } = generatePaths(machine, { alphabet: [{ type: 'GO' }] })
  expect(coverage.transitions.map(({ count }) => count).filter((count) => count > 0)).toHaveLength(1)
})

test('transition pairs are those that can follow each other, and all are taken', () => {
  const { coverage } = generatePaths(detour, {
    alphabet: [{ type: 'LONG' }, { type: 'SHORT' }, { type: 'ON' }, { type: 'HOME' }],
    coverage: 'transition-pairs',
  })
  const pairs = coverage.pairs?.map(({ first, second }) => `${first} | ${second}`).sort()
  expect(pairs).toEqual([
    'a: LONG → b | b: ON → c',
    'a: SHORT → d | d: HOME → a',
    'a: SHORT → d | d: ON → broken',
    'b: ON → c | c: ON → d2',
    'c: ON → d2 | d2: ON → broken',
    'd: HOME → a | a: LONG → b',
    'd: HOME → a | a: SHORT → d',
  ])
  expect(coverage.pairs?.every(({ count }) => count > 0)).toBe(true)
})

test('the same machine and options give the same paths', () => {
  const [one, two] = [1, 2].map(() => generatePaths(loop, { inputs, alphabet, coverage: 'transition-pairs' }))
  expect(JSON.stringify(one)).toBe(JSON.stringify(two))
})

test('actors report only while they run', () => {
  const machine = setup({ actors: { job: loop } }).createMachine({
    initial: 'idle',
    states: {
      idle: { on: { GO: 'busy', 'xstate.done.actor.job': 'impossible' } },
      busy: { invoke: { id: 'job', src: 'job', input: inputs.plain, onDone: 'idle', onError: 'idle' } },
      impossible: {},
    },
  })
  const { coverage } = generatePaths(machine, {
    alphabet: [{ type: 'GO' }, createDoneActorEvent('job'), createErrorActorEvent('job')],
  })
  expect(coverage.states.find(({ id }) => id === 'impossible')?.reached).toBe(false)
  expect(coverage.transitions.filter(({ count }) => count > 0)).toHaveLength(3)
})

test('the states found are those of the graph package, each at the same distance', () => {
  const events = [...Object.values(alphabet), { type: 'xstate.after.1000.loop.running.requesting' }]
  const theirs = getShortestPaths(loop, {
    input: inputs.plain,
    // Actors report only while they run, and ended actors take no events.
    events: (state: SnapshotFrom<typeof loop>) =>
      events.filter(({ type }) => {
        const actor = /^xstate\.(?:done|error)\.actor\.(.+)$/.exec(type)?.[1]
        return state.status === 'active' && (actor === undefined || actor in state.children)
      }) as never[],
    serializeState: (state) => key(state) + JSON.stringify(Object.keys(state.historyValue)),
    limit: 10_000,
  })
  const distances = new Map<string, number>()
  checkInvariants(
    loop,
    [
      {
        name: 'distance',
        holds: (state, { path }) => {
          distances.set(key(state), Math.min(path.weight, distances.get(key(state)) ?? Infinity))
        },
      },
    ],
    { inputs: [inputs.plain], alphabet },
  )
  const expected = new Map<string, number>()
  for (const { state, weight } of theirs)
    expected.set(key(state), Math.min(weight, expected.get(key(state)) ?? Infinity))
  expect(distances.size).toBeGreaterThan(8)
  expect(Object.fromEntries(distances)).toEqual(Object.fromEntries(expected))
})

test('an unbounded counter stops at the limit and names the keys that grow', () => {
  const error = thrownBy(() => generatePaths(counter, { alphabet: [{ type: 'TICK' }], limit: 200 }))
  expect(error.code).toBe('state_limit')
  expect(error.message).toContain('limit of 200 states')
  expect(error.message).toContain('nested.total (200 values)')
  expect(error.message).toContain('ticks (200 values)')
  expect(error.message).not.toContain('still')
})

test('serializeState bounds an unbounded context', () => {
  const { coverage } = generatePaths(counter, {
    alphabet: [{ type: 'TICK' }],
    limit: 10,
    serializeState: ({ context }) => String(Math.min(context.ticks, 3)),
  })
  expect(coverage.explored.states).toBe(4)
})

test('a serializeState that omits keys that guards read is detected', () => {
  const machine = setup({
    types: {} as { context: { armed: boolean } },
    guards: { isArmed: ({ context }) => context.armed },
  }).createMachine({
    context: { armed: false },
    initial: 'a',
    states: {
      a: { on: { ARM: { target: 'b', actions: assign({ armed: true }) }, LEAVE: 'b' } },
      b: { on: { FIRE: { guard: 'isArmed', target: 'c' } } },
      c: { type: 'final' },
    },
  })
  const options = {
    alphabet: [{ type: 'ARM' }, { type: 'LEAVE' }, { type: 'FIRE' }],
    coverage: 'transition-pairs',
  } as const
  expect(generatePaths(machine, options).coverage.pairs).toHaveLength(1)
  const error = thrownBy(() => generatePaths(machine, { ...options, serializeState: () => 'same' }))
  expect(error.code).toBe('coarse_states')
  expect(error.message).toContain("'FIRE' should have led to c (done), but led to b")
})

test('a guard that throws is named, with the event and the path to it', () => {
  const machine = setup({
    guards: {
      isBad: () => {
        throw new Error('no such key')
      },
    },
  }).createMachine({
    initial: 'a',
    states: { a: { on: { GO: 'b' } }, b: { always: { guard: 'isBad', target: 'a' } } },
  })
  const error = thrownBy(() => generatePaths(machine, { alphabet: [{ type: 'GO' }] }))
  expect(error).toMatchObject({ code: 'guard_threw', subject: 'isBad' })
  expect(error.message).toContain("The guard 'isBad' threw on GO in a: no such key")
})

test('a guard without an implementation, a throwing action and an endless loop are distinguished', () => {
  const go = { alphabet: [{ type: 'GO' }] }
  const missing = createMachine({ on: { GO: { guard: 'nowhere', actions: 'x' } } })
  expect(thrownBy(() => generatePaths(missing, go))).toMatchObject({
    code: 'guard_missing',
    subject: 'nowhere',
  })

  const throwing = createMachine({
    context: () => {
      throw new Error('no input')
    },
  })
  expect(thrownBy(() => generatePaths(throwing, go)).code).toBe('action_threw')

  const endless = createMachine({
    initial: 'a',
    states: { a: { on: { GO: 'b' } }, b: { always: 'c' }, c: { always: 'b' } },
  })
  expect(thrownBy(() => generatePaths(endless, go)).code).toBe('endless_loop')
})

test.each([
  ['undefined', undefined, 'not_a_machine'],
  ['a string', 'machine', 'not_a_machine'],
  ['a config', { states: {} }, 'not_a_machine'],
  ['the result of setup()', setup({}), 'not_a_machine'],
  ['a machine of XState v4', { __xstatenode: true, withContext: () => undefined, config: {} }, 'xstate_v4'],
  [
    'a config of XState v4 in v5',
    createMachine({ initial: 'a', states: { a: { on: { GO: { target: 'a', cond: 'isIt' } as never } } } }),
    'xstate_v4',
  ],
])('%s is refused', (_, value, code) => {
  expect(thrownBy(() => generatePaths(value as never, { alphabet: [] })).code).toBe(code)
})

test.each([
  ['no options', undefined],
  ['no alphabet', {}],
  ['an event without a type', { alphabet: [{ kind: 'GO' }] }],
  ['a limit of zero', { alphabet: [], limit: 0 }],
  ['an infinite limit', { alphabet: [], limit: Infinity }],
  ['no inputs', { alphabet: [], inputs: [] }],
  ['an unknown coverage', { alphabet: [], coverage: 'states' }],
  ['a serializeState that returns an object', { alphabet: [], serializeState: () => ({}) }],
  [
    'an alphabet that throws',
    {
      alphabet: () => {
        throw new Error('x')
      },
    },
  ],
])('%s is refused with a typed error', (_, options) => {
  expect(thrownBy(() => generatePaths(loop, options as never)).code).toMatch(/bad_option|action_threw/)
})

test('a cyclic context is refused', () => {
  const self: Record<string, unknown> = {}
  self.self = self
  const machine = createMachine({ context: self })
  expect(thrownBy(() => generatePaths(machine, { alphabet: [] })).code).toBe('unserializable_state')
})

test('progress is reported during the search and at the end', () => {
  const seen: number[] = []
  generatePaths(counter, {
    alphabet: [{ type: 'TICK' }],
    serializeState: ({ context }) => String(Math.min(context.ticks, 1200)),
    onProgress: ({ states }) => seen.push(states),
  })
  expect(seen).toEqual([501, 1001, 1201])
})

test('the machine itself is not modified', () => {
  const before = JSON.stringify(loop.definition)
  generatePaths(loop, { inputs, alphabet })
  expect(JSON.stringify(loop.definition)).toBe(before)
  expect(loop.options.maxIterations).toBe(Infinity)
})

test('every reachable transition of a random machine is on a path, and every path can be walked', () => {
  const size = 6
  const edges = fc.array(fc.tuple(fc.nat(size - 1), fc.nat(2), fc.nat(size - 1)), { maxLength: 20 })
  fc.assert(
    fc.property(edges, (list) => {
      const states: Record<string, { on: Record<string, string> }> = {}
      for (let i = 0; i < size; i++) states[`s${i}`] = { on: {} }
      for (const [from, event, to] of list) states[`s${from}`]!.on[`E${event}`] = `s${to}`
      const machine = createMachine({ initial: 's0', states })
      const { paths, coverage } = generatePaths(machine, {
        alphabet: [{ type: 'E0' }, { type: 'E1' }, { type: 'E2' }],
        coverage: 'transition-pairs',
      })
      const reachable = new Set(['s0'])
      for (const state of reachable)
        for (const to of Object.values(states[state]?.on ?? {})) reachable.add(to)
      expect(new Set(coverage.states.filter((s) => s.reached && s.id !== '(root)').map((s) => s.id))).toEqual(
        reachable,
      )
      for (const { count, source } of coverage.transitions) expect(count > 0).toBe(reachable.has(source))
      expect(coverage.pairs?.every(({ count }) => count > 0)).toBe(true)
      for (const path of paths) {
        let at = 's0'
        for (const { event, state } of path.steps.slice(1)) {
          at = states[at]?.on[event.type] ?? at
          expect(state.value).toBe(at)
        }
      }
    }),
    { numRuns: sampled(60) },
  )
})
