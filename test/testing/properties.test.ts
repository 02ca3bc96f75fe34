import vm from 'node:vm'
import * as fc from 'fast-check'
import { assign, createMachine, setup } from 'xstate'
import {
  always,
  canReach,
  checkProperties,
  checkStory,
  decreases,
  explore,
  generateStoryTests,
  isFinal,
  leadsTo,
  type Moment,
  never,
  PathError,
  until,
  type Property,
} from '../../src/testing/index.js'
import { sampled } from '../support/extent.js'
import { counter, detour, loop } from './machines.js'

const events = ['LONG', 'SHORT', 'ON', 'HOME'].map((type) => ({ type }))

/** The report on one property of `detour`. */
const checkDetour = (property: Property) => checkProperties(detour, { it: property }, { alphabet: events }).it

const isA = ({ value }: Moment) => value === 'a'

describe('always and never', () => {
  test('hold if nothing breaks them', () => {
    expect(checkDetour(always(({ value }) => value !== 'e'))).toMatchObject({ holds: true, states: 6 })
    expect(checkDetour(never(({ event }) => event.type === 'TOSS')).message).toBe('it: holds in all 6 states')
  })

  test('show the shortest path to a violation, of states and of events', () => {
    expect(checkDetour(never('broken')).message).toBe(
      'it: does not hold in broken\nStarting with input 1:\n  start → a\n  SHORT → d\n  ON    → broken',
    )
    const { counterexample } = checkDetour(always(({ event }) => event.type !== 'HOME'))
    expect(counterexample?.path.steps.map(({ label }) => label)).toEqual(['start', 'HOME'])
    expect(counterexample?.loop).toBeNull()
  })

  test('include events that the machine ignores', () => {
    const { counterexample } = checkDetour(
      never(({ event, value }) => event.type === 'HOME' && value === 'c'),
    )
    expect(counterexample?.path.steps.map(({ label }) => label)).toEqual(['start', 'LONG', 'ON', 'HOME'])
  })
})

describe('leadsTo', () => {
  test('allows a run to rest forever without fairness', () => {
    expect(checkDetour(leadsTo('a', 'broken')).message).toBe(
      "it: 'broken' never holds: without `fair`, no event has to happen\n" +
        'Starting with input 1:\n  start → a\nand stays there forever.',
    )
  })

  test('holds if an event stays possible forever', () => {
    expect(checkDetour(leadsTo('b', 'broken', { fair: ['ON'] }))).toMatchObject({ holds: true, begun: 1 })
    expect(checkDetour(leadsTo('b', 'broken', { fair: ['HOME'] })).holds).toBe(false)
  })

  test('need not hold if an event is only repeatedly possible, as a lasso shows', () => {
    expect(checkDetour(leadsTo('a', 'broken', { fair: true })).message).toBe(
      "it: 'broken' never holds, even if every fair event that stays possible happens\n" +
        'Starting with input 1:\n  start → a\nand then repeats:\n  SHORT → d\n  HOME  → a',
    )
  })

  test('includes every fair event that stays possible in a loop', () => {
    const machine = createMachine({
      initial: 'a',
      states: { a: { on: { X: 'a', Y: 'b', Z: 'end' } }, b: { on: { X: 'a', Y: 'b' } }, end: {} },
    })
    const { it: report } = checkProperties(
      machine,
      { it: leadsTo('a', 'end', { fair: ['X', 'Y', 'Z'] }) },
      { alphabet: ['X', 'Y', 'Z'].map((type) => ({ type })) },
    )
    const labels = report.counterexample?.loop?.map(({ label }) => label)
    // Z is not possible in b. X and Y are possible everywhere.
    expect(labels?.toSorted()).toEqual(['X', 'Y'])
  })

  test('accepts patterns of actor events', () => {
    const options = {
      inputs: { plain: { maxSteps: 1, shielded: false } },
      alphabet: { answers: { type: 'xstate.done.actor.model', output: { calls: 0 } } },
    }
    const properties = { ends: leadsTo('running', isFinal, { fair: ['xstate.done.actor.*'] }) }
    expect(checkProperties(loop, properties, options).ends.holds).toBe(true)
  })

  test('reports that it never starts', () => {
    const machine = createMachine({ initial: 'a', states: { a: {}, b: {} } })
    expect(checkProperties(machine, { it: leadsTo('b', 'a') }, { alphabet: [] }).it).toMatchObject({
      holds: true,
      begun: 0,
    })
  })
})

describe('until', () => {
  test('is strong: the awaited state has to occur', () => {
    expect(checkDetour(until(() => true, 'broken', { fair: true })).counterexample?.loop).toHaveLength(2)
    expect(checkDetour(until(() => true, 'broken', { from: 'b', fair: ['ON'] })).holds).toBe(true)
  })

  test('is violated by the first state that satisfies neither', () => {
    const { counterexample } = checkDetour(until(({ value }) => value !== 'c', 'broken', { from: 'b' }))
    expect(counterexample?.loop).not.toBeNull()
    const fair = checkDetour(until(({ value }) => value !== 'c', 'broken', { from: 'b', fair: ['ON'] }))
    expect(fair.counterexample?.reason).toBe('is violated in c before the goal holds')
    expect(fair.counterexample?.path.steps.map(({ label }) => label)).toEqual(['start', 'LONG', 'ON'])
  })

  test('does not require p when q holds', () => {
    expect(checkDetour(until(isA, ({ value }) => value !== 'a', { fair: ['SHORT'] })).holds).toBe(true)
  })
})

describe('canReach', () => {
  test('shows the nearest state without a path', () => {
    expect(checkDetour(canReach('broken')).holds).toBe(true)
    expect(checkDetour(canReach(isA)).message).toContain('the goal is unreachable from b\n')
    expect(checkDetour(canReach(({ value }) => value === 'e')).message).toContain(
      'no reachable state satisfies it',
    )
  })
})

describe('decreases', () => {
  const retry = (count: boolean) =>
    setup({ types: {} as { context: { left: number } } }).createMachine({
      context: { left: 2 },
      initial: 'asking',
      states: {
        asking: { on: { FAIL: [{ guard: ({ context }) => context.left > 0, target: 'waiting' }, 'failed'] } },
        waiting: {
          on: {
            GO: {
              target: 'asking',
              actions: count ? assign({ left: ({ context }) => context.left - 1 }) : [],
            },
          },
        },
        failed: {},
      },
    })
  const options = { alphabet: [{ type: 'FAIL' }, { type: 'GO' }] }
  const left = decreases(({ context }: Moment<ReturnType<typeof retry>>) => context.left)

  test('holds if every cycle decreases a value', () => {
    expect(checkProperties(retry(true), { left }, options).left.holds).toBe(true)
  })

  test('shows a cycle that decreases nothing, and a step that increases', () => {
    expect(checkProperties(retry(false), { left }, options).left.message).toBe(
      'left: the rank is unchanged when the machine returns to asking\n' +
        'Starting with input 1:\n  start → asking\nand then repeats:\n  FAIL → waiting\n  GO   → asking',
    )
    const grows = decreases(({ context }: Moment<ReturnType<typeof retry>>) => -context.left)
    expect(checkProperties(retry(true), { grows }, options).grows.message).toContain(
      'the rank increases on the way to asking',
    )
  })

  test('compares a list from its first number on', () => {
    const list = decreases(({ context, value }: Moment<ReturnType<typeof retry>>) => [
      context.left,
      value === 'asking' ? 1 : 0,
    ])
    expect(checkProperties(retry(true), { list }, options).list.holds).toBe(true)
  })
})

describe('a machine that is too large', () => {
  const options = { alphabet: [{ type: 'TICK' }], limit: 10 }

  test('is explored up to the limit, and the report states it', () => {
    const { few, on } = checkProperties(
      counter,
      {
        few: always(({ context }) => context.ticks < 100),
        on: canReach(({ context }) => context.ticks > 50),
      },
      options,
    )
    expect(few).toMatchObject({ holds: null, states: 10, counterexample: null })
    expect(few.message).toMatch(/^few: no violation in 10 states\. Stopped at the limit of 10 states.*ticks/)
    expect(on.holds).toBeNull()
  })

  test('can violate a property before the limit', () => {
    const { few } = checkProperties(counter, { few: always(({ context }) => context.ticks < 3) }, options)
    expect(few.holds).toBe(false)
  })

  test('proves nothing about events beyond the limit', () => {
    const { grows, rests } = checkProperties(
      counter,
      {
        grows: leadsTo(
          () => true,
          ({ context }) => context.ticks > 50,
          { fair: ['TICK'] },
        ),
        rests: leadsTo(
          () => true,
          ({ context }) => context.ticks > 50,
        ),
      },
      options,
    )
    expect(grows.holds).toBeNull()
    expect(rests.holds).toBe(false)
  })

  test('becomes small with an abstraction of the context', () => {
    const { odd } = checkProperties(
      counter,
      {
        odd: leadsTo(
          ({ context }) => context.ticks % 2 === 0,
          ({ context }) => context.ticks % 2 === 1,
          { fair: ['TICK'] },
        ),
      },
      { ...options, serializeState: ({ context }) => String(context.ticks % 2) },
    )
    expect(odd).toMatchObject({ holds: true, states: 2, bounded: null })
  })

  test('refuses an abstraction that is too coarse', () => {
    const machine = createMachine({
      types: {} as { context: { ticks: number } },
      context: { ticks: 0 },
      initial: 'on',
      states: {
        on: {
          always: { guard: ({ context }) => context.ticks > 5, target: 'off' },
          on: { TICK: { actions: assign({ ticks: ({ context }) => context.ticks + 1 }) } },
        },
        off: { type: 'final' },
      },
    })
    const check = (serializeState?: () => string) =>
      checkProperties(
        machine,
        { ends: leadsTo('on', 'off', { fair: ['TICK'] }) },
        { alphabet: [{ type: 'TICK' }], ...(serializeState && { serializeState }) },
      )
    expect(check().ends.holds).toBe(true)
    expect(() => check(() => '')).toThrow(/merges different states: .*'ends'/)
  })
})

describe('an unverifiable property is refused', () => {
  const check = (properties: unknown) => () =>
    checkProperties(detour, properties as never, { alphabet: events })
  const bad = (code: string, pattern: RegExp, properties: unknown) => {
    expect(check(properties)).toThrow(PathError)
    expect(check(properties)).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(pattern) }),
    )
  }

  test('by name if it throws', () => {
    const rude = () => {
      throw new TypeError('no such key')
    }
    bad('property_threw', /^The property 'rude' threw after xstate\.init in a: no such key/, {
      rude: always(rude),
    })
    bad('property_threw', /^The property 'rude' threw/, { rude: decreases(rude) })
  })

  test('if it returns no boolean', () => {
    bad('bad_option', /'late' must synchronously return true or false.*a promise/, {
      late: always((() => Promise.resolve(true)) as never),
    })
    bad('bad_option', /'silent' must synchronously return true or false.*undefined/, {
      silent: never((() => undefined) as never),
    })
    bad('bad_option', /rank of the property 'r' must be a number/, { r: decreases(() => 'x' as never) })
  })

  test('if it names states that the machine does not have', () => {
    bad('unknown_state', /no state 'brokn'/, { x: never('brokn') })
    bad(
      'bad_option',
      /'x': no event of the machine matches 'OFF' in \{ fair \}\. Event types: HOME, LONG, ON, SHORT/,
      {
        x: leadsTo('a', 'b', { fair: ['OFF'] }),
      },
    )
  })

  test('if it is not a property', () => {
    bad('bad_option', /at least one property/, {})
    bad('bad_option', /at least one property/, undefined)
    bad('bad_option', /'x' must be created by always/, { x: () => true })
    expect(() => always(7 as never)).toThrow(/always\(p\) must be a state's dotted path/)
    expect(() => leadsTo('a', 'b', { fair: 'ON' as never })).toThrow(/must be a list of event types/)
    expect(() => decreases('a' as never)).toThrow(/must be a function/)
  })
})

describe('stories as tests', () => {
  const machineOf = (home: string) =>
    createMachine({
      initial: 'a',
      states: { a: { on: { SHORT: 'd' } }, d: { on: { ON: 'end', HOME: home } }, end: { type: 'final' } },
    })
  const properties = {
    'no way home': never(({ value, event }: Moment) => value === 'a' && event.type === 'HOME'),
    "it's over in the end": leadsTo('a', isFinal, { fair: ['SHORT', 'ON'] }),
    'a way on': canReach(({ value }: Moment) => value === 'end'),
  }
  const options = {
    alphabet: ({ value }: { value: unknown }) =>
      value === 'd' ? [{ type: 'ON' }, { type: 'HOME' }] : [{ type: 'SHORT' }],
  }
  const reports = checkProperties(machineOf('a'), properties, options)
  const stories = Object.values(reports).flatMap(({ counterexample }) => counterexample ?? [])

  /** Runs a generated file, and returns the arguments of its expectations. */
  function run(machine: ReturnType<typeof machineOf>) {
    const input: Record<string, unknown> = {}
    let name = ''
    const text = generateStoryTests(stories, { imports: [] })
    vm.runInNewContext(text, {
      machine,
      properties,
      options,
      checkStory,
      describe: (_: string, body: () => void) => body(),
      test: (label: string, body: () => void) => {
        name = label
        body()
      },
      expect: (actual: unknown) => ({ toEqual: () => (input[name] = actual) }),
    })
    return input
  }

  test('fail while the machine allows the story', () => {
    expect(run(machineOf('a'))).toMatchObject({
      '1. no way home': { holds: false },
      "2. it's over in the end": { holds: false, message: expect.stringContaining('isFinal never holds') },
    })
  })

  test('pass after the machine is corrected', () => {
    expect(Object.values(run(machineOf('end')))).toEqual([
      { holds: true, message: null },
      { holds: true, message: null },
    ])
  })

  test('have one event per line, with its name', () => {
    expect(
      generateStoryTests(stories.slice(1), { imports: [`import { machine } from './m.js'`], title: 'x' }),
    ).toBe(
      `// Generated from counterexamples of checkProperties.
import { machine } from './m.js'

describe('x', () => {
  // isFinal never holds, even if every fair event that stays possible happens
  test('1. it\\'s over in the end', () => {
    const story = {
      steps: [],
      loop: [
        // SHORT
        {"type":"SHORT"},
        // HOME
        {"type":"HOME"},
      ],
    }
    expect(checkStory(machine, properties['it\\'s over in the end'], story, options)).toEqual({ holds: true, message: null })
  })
})
`,
    )
  })

  test('describe a dead end by the path to it', () => {
    const dead = checkProperties(machineOf('d'), { x: canReach(isA) }, options).x.counterexample
    expect(dead?.path.steps.map(({ label }) => label)).toEqual(['start', 'SHORT'])
    const story = { steps: [{ type: 'SHORT' }] }
    expect(checkStory(machineOf('d'), canReach(isA), story, options).holds).toBe(false)
    expect(checkStory(machineOf('a'), canReach(isA), story, options).holds).toBe(true)
  })

  test('are refused for an invalid story', () => {
    expect(() => checkStory(machineOf('a'), never('a'), undefined as never, options)).toThrow(
      /must be \{ input, steps/,
    )
  })
})

test('explore returns the states, their events and the paths to them', () => {
  const { starts, states, bounded, events: tried } = explore(detour, { alphabet: events })
  expect(states.map(({ snapshot }) => snapshot.value)).toEqual(['a', 'b', 'd', 'c', 'broken', 'd2'])
  expect(starts).toEqual([states[0]])
  expect(states[0]?.moves.map(({ label, to }) => [label, to.snapshot.value])).toEqual([
    ['LONG', 'b'],
    ['SHORT', 'd'],
  ])
  expect(states.find(({ snapshot }) => snapshot.value === 'broken')?.path.name).toBe('SHORT, ON → broken')
  expect({ bounded, tried }).toEqual({ bounded: null, tried: 24 })
  const cut = explore(counter, { alphabet: [{ type: 'TICK' }], limit: 3 })
  expect(cut.bounded).toMatch(/^Stopped at the limit of 3 states/)
  expect(cut.states.map(({ isExpanded }) => isExpanded)).toEqual([true, true, false])
})

/** A small state graph with its events. Properties are decided by enumerating every set of states. */
const types = ['x', 'y', 'z']
const someMachine = fc.integer({ min: 1, max: 5 }).chain((size) =>
  fc.record({
    edges: fc.array(fc.array(fc.option(fc.nat(size - 1), { freq: 2 }), { minLength: 3, maxLength: 3 }), {
      minLength: size,
      maxLength: size,
    }),
    p: fc.array(fc.boolean(), { minLength: size, maxLength: size }),
    q: fc.array(fc.boolean(), { minLength: size, maxLength: size }),
    fair: fc.subarray(types),
  }),
)

type Plan = typeof someMachine extends fc.Arbitrary<infer T> ? T : never

function toMachine({ edges }: Plan) {
  const states = edges.map((targets, i) => [
    `s${i}`,
    { on: Object.fromEntries(targets.flatMap((to, k) => (to === null ? [] : [[types[k] ?? '', `s${to}`]]))) },
  ])
  return createMachine({ initial: 's0', states: Object.fromEntries(states) as Record<string, object> })
}

function reachFrom({ edges }: Plan, from: number[], isInside: (state: number) => boolean): Set<number> {
  const seen = new Set(from.filter(isInside))
  for (const state of seen) for (const to of edges[state] ?? []) if (to !== null && isInside(to)) seen.add(to)
  return seen
}

/** Whether a run can stay in exactly these states forever, and visit each of them infinitely often. */
function isFairSet(plan: Plan, members: number[]): boolean {
  const inside = new Set(members)
  const isConnected = members.every((one) => {
    const reached = reachFrom(plan, [one], (state) => inside.has(state))
    return members.every((other) => reached.has(other))
  })
  return (
    isConnected &&
    plan.fair.every((type) => {
      const targets = members.map((state) => plan.edges[state]?.[types.indexOf(type)] ?? null)
      return targets.some((to) => to === null || inside.has(to))
    })
  )
}

function hasEndlessWait(plan: Plan): boolean {
  const size = plan.edges.length
  const reachable = reachFrom(plan, [0], () => true)
  const begins = [...reachable].filter((state) => plan.p[state] && !plan.q[state])
  const waiting = reachFrom(plan, begins, (state) => !plan.q[state])
  for (let set = 1; set < 2 ** size; set++) {
    const members = plan.edges.flatMap((_, state) => ((set >> state) & 1 ? [state] : []))
    if (members.every((state) => waiting.has(state)) && isFairSet(plan, members)) return true
  }
  return false
}

test('leadsTo is violated exactly if a set of states can keep a fair run forever', () => {
  let broken = 0
  fc.assert(
    fc.property(someMachine, (plan) => {
      const at = (list: boolean[]) => (moment: Moment) => list[Number(String(moment.value).slice(1))] === true
      const possible = new Set(
        plan.edges.flatMap((targets) => targets.flatMap((to, k) => (to === null ? [] : [types[k]]))),
      )
      const fair = plan.fair.filter((type) => possible.has(type))
      const machine = toMachine(plan)
      const options = { alphabet: types.map((type) => ({ type })) }
      const property = leadsTo(at(plan.p), at(plan.q), { fair })
      const { it: report } = checkProperties(machine, { it: property }, options)
      expect(report.holds).toBe(!hasEndlessWait({ ...plan, fair }))
      if (!report.counterexample) return
      broken++
      const { path, loop: round } = report.counterexample
      const story = {
        steps: path.steps.slice(1).map(({ event }) => event),
        loop: round?.map(({ event }) => event) ?? null,
      }
      expect(checkStory(machine, property, story, options).holds).toBe(false)
    }),
    { numRuns: sampled(1_000) },
  )
  expect(broken).toBeGreaterThan(20)
})
