import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { assign, createMachine, emit, fromPromise, setup } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import type { AgentContext } from '../../machines/agent/context.js'
import { findContextStep, toAction } from '../../machines/agent/update-action.js'
import {
  agentInputs,
  agentSpace,
  createDoneActorEvent,
  createMachineHarness,
  diffMachines,
  generateJestTests,
  PathError,
  replay,
} from '../../src/testing/index.js'
import { sampled } from '../support/extent.js'
import { counter, detour, gaps } from './machines.js'

const go = [{ type: 'GO' }, { type: 'BACK' }]

describe('diffMachines', () => {
  test('finds no difference between equal machines', () => {
    const same = diffMachines(detour, detour.provide({}), { events: [{ type: 'LONG' }, { type: 'ON' }] })
    expect(same).toMatchObject({ differences: [], bounded: null, declared: { added: [], removed: [] } })
    expect(String(same)).toBe(`The machines behave the same in all ${same.pairs} pairs of states.`)
  })

  test('shows the shortest trace to a state that differs, under the transition that changed', () => {
    const open = gaps.provide({ guards: { isOpen: () => true } })
    const { differences } = diffMachines(gaps, open, {
      events: [{ type: 'ENTER' }, { type: 'RING' }, { type: 'BACK' }],
    })
    expect(differences.map(({ kind, transition }) => [kind, transition])).toEqual([
      ['state', { before: 'hall: ENTER [isLit] → room', after: 'hall: ENTER [isOpen] → vault' }],
    ])
    expect(String(differences[0])).toBe(
      'hall: ENTER [isLit] → room: is not taken. Taken instead: hall: ENTER [isOpen] → vault\n' +
        'Starting with input 1:\n  start → hall\n  ENTER\n    before → room\n    after  → vault',
    )
  })

  test('names transitions that are new, or missing', () => {
    const before = createMachine({ initial: 'a', states: { a: { on: { GO: 'b' } }, b: {} } })
    const after = createMachine({ initial: 'a', states: { a: {}, b: {} } })
    const gone = diffMachines(before, after, { events: go })
    expect(gone.declared).toEqual({ added: [], removed: ['a: GO → b'] })
    expect(gone.differences.map(({ title }) => title)).toEqual(['a: GO → b: is missing'])
    const back = diffMachines(after, before, { events: go })
    expect(back.differences.map(({ title }) => title)).toEqual(['a: GO → b: is new'])
    expect(String(back)).toMatch(
      /^The machines differ at 1 transition\. The comparison covers all 1 pairs of states\.\nDeclared only after:\n {2}a: GO → b\n\n1\. a: GO/,
    )
  })

  test('detects changed emits, outputs and initial states', () => {
    const machineOf = (word: string, start: 'a' | 'b') =>
      setup({ types: {} as { emitted: { type: 'said'; word: string } } }).createMachine({
        initial: start,
        output: { word },
        states: {
          a: { on: { GO: { target: 'b', actions: emit({ type: 'said', word }) } } },
          b: { type: 'final' },
        },
      })
    const { differences } = diffMachines(machineOf('yes', 'a'), machineOf('no', 'a'), { events: go })
    expect(differences.map(({ kind, title }) => [kind, title])).toEqual([
      ['emitted', 'a: GO → b: has a different list of emitted events'],
    ])
    expect(String(differences[0])).toContain('before → b (done), emits said {"word":"yes"}')
    const silent = (word: string) =>
      createMachine({
        initial: 'a',
        output: { word },
        states: { a: { on: { GO: 'b' } }, b: { type: 'final' } },
      })
    expect(String(diffMachines(silent('yes'), silent('no'), { events: go }))).toContain(
      'after  → b (done) with the output {"word":"no"}',
    )
    expect(
      diffMachines(machineOf('yes', 'a'), machineOf('yes', 'b'), { events: go }).differences,
    ).toMatchObject([{ kind: 'state', title: 'The machine starts with a different state' }])
  })

  test('returns one trace per transition, the shortest first', () => {
    const machineOf = (b: string, c: string) =>
      createMachine({
        initial: 'a',
        states: {
          a: { on: { GO: 'b', FAR: 'd' } },
          b: { on: { GO: b } },
          c: {},
          d: { on: { GO: 'e' } },
          e: { on: { GO: c, BACK: 'a' } },
        },
      })
    const events = [{ type: 'GO' }, { type: 'BACK' }, { type: 'FAR' }]
    const { differences } = diffMachines(machineOf('c', 'c'), machineOf('a', 'b'), { events })
    expect(differences.map(({ transition, before }) => [transition.before, before.weight])).toEqual([
      ['b: GO → c', 2],
      ['e: GO → c', 3],
    ])
  })

  test('reports a difference of the contexts before one of the states', () => {
    const machineOf = (step: number) =>
      setup({ types: {} as { context: { count: { ticks: number } } } }).createMachine({
        context: { count: { ticks: 0 } },
        initial: 'on',
        states: {
          on: {
            always: { guard: ({ context }) => context.count.ticks > 3, target: 'off' },
            on: {
              GO: { actions: assign({ count: ({ context }) => ({ ticks: context.count.ticks + step }) }) },
            },
          },
          off: {},
        },
      })
    const { differences } = diffMachines(machineOf(1), machineOf(2), { events: go })
    expect(differences).toMatchObject([{ contexts: { step: 1, label: 'GO', keys: ['count.ticks'] } }])
    expect(String(differences[0])).toContain("(from 'GO' on, the contexts differ in count.ticks)")
  })

  test('lets an actor that runs in only one machine report to that machine', () => {
    const machineOf = (hasModel: boolean) =>
      setup({ actors: { model: fromPromise(() => Promise.resolve()) } }).createMachine({
        initial: 'a',
        states: {
          a: {
            ...(hasModel && { invoke: { id: 'model', src: 'model', onDone: 'b' } }),
            on: { 'xstate.done.actor.*': 'c' },
          },
          b: {},
          c: {},
        },
      })
    const { differences } = diffMachines(machineOf(true), machineOf(false), {
      events: [createDoneActorEvent('model')],
    })
    expect(differences).toMatchObject([{ transition: { before: 'a: model done → b', after: null } }])
  })

  test('uses the events of both machines, including timers', () => {
    const machineOf = (ms: number) =>
      createMachine({ initial: 'a', states: { a: { after: { [ms]: 'b' } }, b: {} } })
    const { differences } = diffMachines(machineOf(1), machineOf(2), { events: [] })
    expect(differences.map(({ title }) => title)).toEqual([
      'a: after 1 → b: is missing',
      'a: after 2 → b: is new',
    ])
  })

  test('stops at the limit, and reports it', () => {
    const diff = diffMachines(counter, counter.provide({}), { events: [{ type: 'TICK' }], limit: 5 })
    expect(diff).toMatchObject({ pairs: 5, differences: [] })
    expect(String(diff)).toMatch(
      /^The machines behave the same in the first 5 pairs of states\.\nStopped at the limit of 5/,
    )
  })

  test.each([
    ['no events', [detour, detour, {}], /needs \{ events \}/],
    ['no options', [detour, detour, undefined], /needs \{ events \}/],
    ['invalid events', [detour, detour, { events: [{}] }], /'events' must be made of events/],
    [
      'not a machine',
      [detour, {}, { events: [] }],
      /^diffMachines\(before, after\): 'after': Expected an XState/,
    ],
    [
      'a machine that breaks',
      [
        gaps,
        gaps.provide({
          guards: {
            isOpen: () => {
              throw new Error('stuck')
            },
          },
        }),
        { events: [{ type: 'ENTER' }] },
      ],
      /^The machine after: The guard 'isOpen' threw on ENTER in hall: stuck/,
    ],
  ])('refuses %s', (_, input, pattern) => {
    const call = () => diffMachines(...(input as Parameters<typeof diffMachines>))
    expect(call).toThrow(PathError)
    expect(call).toThrow(pattern)
  })
})

test('the traces are tests that the changed machine fails', async () => {
  const machineOf = (word: string, end: string) =>
    setup({ types: {} as { emitted: { type: 'said'; word: string } } }).createMachine({
      initial: 'a',
      output: { end },
      states: {
        a: { on: { GO: { target: end, actions: emit({ type: 'said', word }) }, BACK: 'c' } },
        b: {},
        c: { type: 'final' },
      },
    })
  const [before, after] = [machineOf('yes', 'b'), machineOf('no', 'c')]
  const diffs = [
    diffMachines(before, after, { events: go }),
    diffMachines(before, machineOf('no', 'b'), { events: go }),
  ]
  const paths = diffs.flatMap(({ differences }) => differences.map((difference) => difference.before))
  expect(paths).toHaveLength(3)
  for (const [i, path] of paths.entries()) {
    expect(await replay(path, createMachineHarness(before))).toMatchObject({ ok: true })
    expect(await replay(path, createMachineHarness(i < 2 ? after : machineOf('no', 'b')))).toMatchObject({
      ok: false,
    })
  }
  const text = generateJestTests(paths, { imports: [] })
  expect(text).toContain('"status":"done"}, output: {"end":"b"} }')
  expect(text).toContain('emitted: [{"type":"said","word":"yes"}] }')
})

test('a difference in the output becomes a test even if one machine has no output', () => {
  const ending = { initial: 'a', states: { a: { on: { GO: 'b' } }, b: { type: 'final' as const } } }
  const silent = createMachine(ending)
  const { differences } = diffMachines(silent, createMachine({ ...ending, output: { word: 'new' } }), {
    events: go,
  })
  expect(differences.map(({ kind }) => kind)).toEqual(['output'])
  const paths = differences.map(({ before }) => before)
  expect(generateJestTests(paths, { imports: [] })).toContain('"status":"done"}, output: undefined }')
})

/** The agent machine with guards that no longer excuse polling tools. */
const impatient = agentMachine.provide({
  actions: Object.fromEntries(
    (['judgeCalls', 'judgeResults'] as const).map((name) => {
      const step = findContextStep(agentMachine.implementations.actions[name])
      const action = toAction((context, event, tell) => {
        const tools = Object.fromEntries(
          Object.entries(context.tools).map(([tool, traits]) => [tool, { ...traits, polling: false }]),
        )
        const next = step?.({ ...context, tools }, event, tell, undefined) as AgentContext | undefined
        return next && { ...next, tools: context.tools }
      })
      return [name, action]
    }),
  ) as never,
})

test('a change that drops the polling exemption is detected', () => {
  const name = 'watching repetition, halting immediately'
  const { inputs, alphabet, serializeState } = agentSpace({ only: [name] })
  const input = agentInputs[name]
  const polling = input && {
    ...input,
    tools: { ...input.tools, look: { readOnly: true, idempotent: true, polling: true } },
  }
  const options = {
    events: alphabet,
    inputs: { 'a tool that waits': polling } as typeof inputs,
    serializeState: serializeState as never,
  }
  expect(diffMachines(agentMachine, agentMachine.provide({}), options).differences).toEqual([])
  const diff = diffMachines(agentMachine, impatient, options)
  const page = readFileSync('docs/compare-machines.md', 'utf8')
  expect(page).toContain(`1. ${String(diff.differences[0])}\n`)
  expect(diff.differences[0]?.contexts?.keys).toEqual(['calls.0.fact.polling'])
  expect(diff.differences[0]?.after.steps.filter(({ label }) => label === 'model: another call')).not.toEqual(
    [],
  )
  expect(diff.differences.map(({ transition }) => transition)).toContainEqual({
    before: expect.anything(),
    after: expect.stringContaining('[isHalted]'),
  })
})

/** Small machines that differ in at most one place. */
const types = ['x', 'y']
const somePair = fc.integer({ min: 1, max: 5 }).chain((size) =>
  fc.record({
    edges: fc.array(fc.array(fc.option(fc.nat(size - 1)), { minLength: 2, maxLength: 2 }), {
      minLength: size,
      maxLength: size,
    }),
    state: fc.nat(size - 1),
    event: fc.nat(1),
    to: fc.option(fc.nat(size - 1)),
  }),
)

function toMachine(edges: readonly (readonly (number | null)[])[]) {
  const states = edges.map((targets, i) => [
    `s${i}`,
    { on: Object.fromEntries(targets.flatMap((to, k) => (to === null ? [] : [[types[k] ?? '', `s${to}`]]))) },
  ])
  return createMachine({ initial: 's0', states: Object.fromEntries(states) as Record<string, object> })
}

test('two machines differ exactly if the changed transition can be reached, and by a shortest trace', () => {
  fc.assert(
    fc.property(somePair, ({ edges, state, event, to }) => {
      const changed = edges.map((targets, i) =>
        targets.map((old, k) => (i === state && k === event ? to : old)),
      )
      const { differences } = diffMachines(toMachine(edges), toMachine(changed), {
        events: types.map((type) => ({ type })),
      })
      // The distance of the state from the start, in transitions that both machines have.
      let level = new Set([0])
      const seen = new Map<number, number>()
      for (let depth = 0; level.size > 0; depth++) {
        for (const at of level) seen.set(at, depth)
        const next = [...level].flatMap((at) =>
          (edges[at] ?? []).filter(
            (target, k) => target !== null && !seen.has(target) && !(at === state && k === event),
          ),
        )
        level = new Set(next as number[])
      }
      const [old, now] = [edges[state]?.[event] ?? state, to ?? state]
      const isMet = old !== now && seen.has(state)
      expect(differences.map(({ before }) => before.weight)).toEqual(
        isMet ? [(seen.get(state) ?? 0) + 1] : [],
      )
    }),
    { numRuns: sampled(500) },
  )
})
