import { readdirSync, readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { createMachine } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import { type ChartState, toChart, flattenStates, readTransitionCounts } from '../../src/diagram/chart.js'
import { createNodeNames, toDot } from '../../src/diagram/dot.js'
import { agentLook } from '../../src/diagram/look.js'
import { toOverview } from '../../src/diagram/overview.js'
import { toOverviewSvg, toSvg } from '../../src/diagram/svg.js'
import { single, workshop } from './machines.js'
import { sampled } from '../support/extent.js'
import { unicodeText } from '../support/unicode-text.js'

const chart = toChart(agentMachine)
const states = flattenStates(chart.root)

/** The readable text of a picture, one item per element. */
function textsOf(svg: string): string[] {
  return [...svg.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map(([, text = '']) =>
    text
      .replaceAll(/&#160;/g, ' ')
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&quot;', '"')
      .replaceAll('&#45;', '-')
      .replaceAll('&amp;', '&')
      .replaceAll(/\s+/g, ' ')
      .trim(),
  )
}

function attributesOf(svg: string, name: string): string[] {
  return [...svg.matchAll(new RegExp(` ${name}="([^"]*)"`, 'g'))].map(([, value = '']) =>
    value
      .replaceAll('&#10;', '\n')
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&quot;', '"')
      .replaceAll('&amp;', '&'),
  )
}

/** The overview lines that touch another line by mistake. Each line consists of horizontal and vertical segments. */
function crossings(svg: string): string[] {
  const lines = [...svg.matchAll(/<path class="line" d="([^"]*)"/g)].map(([, d = '']) => {
    const numbers = [...d.matchAll(/(-?[\d.]+),(-?[\d.]+)/g)].map(
      ([, x, y]) => [Number(x), Number(y)] as const,
    )
    return { d, pieces: numbers.slice(1).map((point, index) => [numbers[index] ?? point, point] as const) }
  })
  const meets = (a: (typeof lines)[number], b: (typeof lines)[number]): boolean =>
    a.pieces.some(([p, q]) =>
      b.pieces.some(
        ([r, s]) =>
          Math.max(Math.min(p[0], q[0]), Math.min(r[0], s[0])) <=
            Math.min(Math.max(p[0], q[0]), Math.max(r[0], s[0])) &&
          Math.max(Math.min(p[1], q[1]), Math.min(r[1], s[1])) <=
            Math.min(Math.max(p[1], q[1]), Math.max(r[1], s[1])),
      ),
    )
  return lines.flatMap((a, index) =>
    lines
      .slice(index + 1)
      .filter((b) => meets(a, b))
      .map((b) => `${a.d} ${b.d}`),
  )
}

const count = (text: string, part: string): number => text.split(part).length - 1

function expectAll({ states: nested, ...state }: ChartState, texts: readonly string[]): void {
  expect(texts).toContain(state.key)
  for (const { src } of state.invokes) expect(texts).toContain(src)
  for (const { on, when, targets } of state.transitions) {
    if (on !== '') expect(texts).toContain(on)
    if (when !== null) expect(texts).toContain(when === 'else' ? 'else' : `[${when}]`)
    for (const target of targets) {
      expect(
        texts.some((text) => text === `→ ${target}` || `→ ${target}`.endsWith(`.${text.slice(2)}`)),
      ).toBe(true)
    }
  }
  for (const child of nested) expectAll(child, texts)
}

describe('the picture of the agent machine', () => {
  it('shows every state, actor, event, guard and target', async () => {
    expectAll(chart.root, textsOf(await toSvg(chart)))
  })

  it('draws only the path of a successful turn in bold', async () => {
    const svg = await toSvg(chart)
    expect(count(svg, 'stroke-width="3.2"')).toBeGreaterThanOrEqual(agentLook.mainPath.length)
    expect(count(toDot(chart), 'penwidth=3.2')).toBe(agentLook.mainPath.length)
  })

  it.each([
    'RUNNING.preparing',
    'RUNNING.asking',
    'RUNNING.judging',
    'WAITING_FOR_TOOL',
    'WAITING_FOR_INPUT',
  ])('has a separate sheet of %s', async (state) => {
    const texts = textsOf(await toSvg(chart, { state }))
    const shown = states.find(({ id }) => id === state)
    if (!shown) throw new Error(`There is no ${state}.`)
    expectAll(shown, texts)
    const outside = states.filter(
      ({ id, key, type }) => type !== 'final' && !id.startsWith(state) && key !== 'whereItWas',
    )
    expect(
      outside.filter(
        ({ key, states: nested }) => nested.length === 0 && key !== 'PAUSED' && texts.includes(key),
      ),
    ).toEqual([])
  })

  it('has every transition in its files, with each sheet narrow enough to read', async () => {
    const folder = new URL('../../visualizations/', import.meta.url)
    const pictures = readdirSync(folder).filter((name) => name.endsWith('.svg'))
    const svgs = pictures.map((name) => readFileSync(new URL(name, folder), 'utf8'))
    const widths = svgs.map((svg) => Number(/ width="(\d+)/.exec(svg)?.[1]))
    expect(widths.filter((width) => !(width <= 1_250))).toEqual([])
    const shown = new Set(
      svgs.flatMap((svg) => attributesOf(svg, 'data-transition')).flatMap((ids) => ids.split('\n')),
    )
    const all = states.flatMap(({ transitions }) => transitions)
    // The machine and PAUSED have no sheet with the events that they ignore.
    const drawn = all.filter(
      ({ source, targets }) => !/^(\(root\)|PAUSED)$/.test(source) || targets.length > 0,
    )
    expect(drawn.map(({ id }) => id).filter((id) => !shown.has(id))).toEqual([])
    expect(svgs.filter((svg) => svg.includes('on entry'))).toEqual([])
  })

  it('has a sheet for a state in the style of the overview, with its neighbors and its events', async () => {
    const texts = textsOf(await toOverviewSvg(chart, agentLook, 'RUNNING.asking'))
    expect(texts).toEqual(expect.arrayContaining(['stays', 'judging →', 'PAUSED →', '← backingOff']))
    expect(texts).not.toContain('RUNNING →')
  })

  it('has an overview with the top-level states', async () => {
    const texts = textsOf(await toOverviewSvg(chart))
    for (const { key } of chart.root.states) expect(texts).toContain(key)
    expect(texts).toEqual(
      expect.arrayContaining(['from anywhere', 'CANCEL', 'RESUME', 'from WAITING_FOR_TOOL', 'asking']),
    )
  })

  it('has in the overview every state of a run, and each path between two states once', async () => {
    const svg = await toOverviewSvg(chart)
    const named = attributesOf(svg, 'data-state')
    const remaining = states
      .filter(({ id, type }) => id !== '(root)' && type !== 'history')
      .map(({ id }) => id)
    expect(named.toSorted()).toEqual(remaining.toSorted())
    const { states: tops, anywhere } = toOverview(chart)
    const ways = [...anywhere, ...tops.flatMap((top) => top.transitions)]
    const inside = new Set(['RUNNING.preparing', 'RUNNING.asking', 'RUNNING.judging'])
    const within = toOverview(chart, agentLook, 'RUNNING').states.flatMap((top) =>
      top.transitions.filter(({ to }) => inside.has(to)),
    )
    expect(attributesOf(svg, 'data-to').toSorted()).toEqual(
      [...ways, ...within].map(({ to }) => to).toSorted(),
    )
    // Drawn lines do not cross.
    expect(crossings(svg)).toEqual([])
    // The box of an end state lists its incoming transitions.
    const texts = textsOf(svg).join(' ')
    for (const { events } of ways) for (const event of events) expect(texts).toContain(event)
  })

  it('has machine-readable names on each state, row and line', async () => {
    const svg = await toSvg(chart)
    const ids = new Set(states.map(({ id }) => id).filter((id) => id !== '(root)'))
    expect(new Set(attributesOf(svg, 'data-state'))).toEqual(ids)
    const rows = new Set(attributesOf(svg, 'data-transition').flatMap((value) => value.split('\n')))
    expect(rows).toEqual(new Set(states.flatMap(({ transitions }) => transitions.map(({ id }) => id))))
    expect(svg).not.toContain('<a ')
  })

  it('describes events in the overview, and names neither states nor guards', () => {
    const { states: tops, anywhere } = toOverview(chart)
    const guards = states.flatMap(({ transitions }) => transitions.flatMap(({ when }) => when ?? []))
    const names = new Set([...states.map(({ key }) => key), ...guards])
    const ways = [...anywhere, ...tops.flatMap((top) => top.transitions)]
    expect(ways).toHaveLength(22)
    // Each event with its transitions. None leads elsewhere.
    const targets = new Map(
      states.flatMap(({ transitions }) => transitions.map(({ id, targets }) => [id, targets])),
    )
    for (const { to, events, causes } of ways) {
      expect(causes).toHaveLength(events.length)
      for (const id of causes.flat())
        expect(targets.get(id)?.some((path) => path === to || path.startsWith(`${to}.`))).toBe(true)
      expect(causes.every((ids) => ids.length > 0)).toBe(true)
    }
    expect(ways.filter(({ events }) => events.some((event) => names.has(event)))).toEqual([])
    // Transitions without a custom event have labels, because 'requestModel is done' explains too little.
    expect(
      ways.filter(({ events }) => events.some((event) => / is done$| fails$|on entry/.test(event))),
    ).toEqual([])
  })

  it('shows for a state with regions the transitions between them, and out of it', () => {
    const { states: tops, outside, anywhere } = toOverview(chart, agentLook, 'RUNNING')
    const waysOf = (key: string) => tops.find(({ state }) => state.key === key)?.transitions ?? []
    expect(anywhere.map(({ to }) => to)).toEqual(['TIMED_OUT', 'RUNNING.whereItWas'])
    expect(waysOf('preparing').filter(({ main }) => main)).toMatchObject([{ to: 'RUNNING.asking' }])
    expect(waysOf('asking').filter(({ main }) => main)).toMatchObject([{ to: 'RUNNING.judging' }])
    expect(waysOf('judging')).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ to: 'WAITING_FOR_TOOL', main: true, events: ['the model calls tools'] }),
      ]),
    )
    expect(outside.map(({ key }) => key)).toEqual([
      'WAITING_FOR_TOOL',
      'WAITING_FOR_INPUT',
      'PAUSED',
      'COMPLETED',
      'TIMED_OUT',
      'MAX_STEPS',
      'BUDGET_EXCEEDED',
      'BLOCKED',
      'ERROR',
    ])
    expect(() => toOverview(chart, agentLook, 'PAUSED')).toThrow("'PAUSED' is not a state with nested states")
  })

  it('contains only text and lines of existing states and guards', () => {
    const known = new Set([
      ...states.map(({ id }) => id),
      ...states.flatMap(({ transitions }) => transitions.flatMap(({ when }) => when?.split(' ')[0] ?? [])),
    ])
    expect(Object.keys(agentLook.words ?? {}).filter((key) => !known.has(key))).toEqual([])
    expect(agentLook.mainPath.flat().filter((name = '') => !known.has(name))).toEqual([])
  })

  it.each(['whole', 'overview'])('has a dark variant for each color of the %s', async (kind) => {
    const svg = kind === 'whole' ? await toSvg(chart) : await toOverviewSvg(chart)
    const [style = ''] = /<style>[^]*<\/style>/.exec(svg) ?? []
    expect(style).toContain('@media (prefers-color-scheme: dark)')
    const used = new Set(
      [...svg.replace(style, '').matchAll(/ (?:fill|stroke)="([^"]+)"/g)].map(([, color]) => color),
    )
    const missing = [...used].filter(
      (color) =>
        color !== 'none' &&
        color !== 'transparent' &&
        !style.includes(`[fill="${color}"] { fill: var(--chart-`),
    )
    expect(missing).toEqual([])
    // Each variable has a color per theme, and a page can override it.
    const [light = '', dark = ''] = [...style.matchAll(/:root \{([^}]*)\}/g)].map(([, rules]) => rules)
    const names = (rules: string) => [...rules.matchAll(/--chart-[\w-]+/g)].map(([name]) => name)
    expect(new Set([...style.matchAll(/var\((--chart-[\w-]+)\)/g)].map(([, name]) => name))).toEqual(
      new Set(names(light)),
    )
    expect(names(dark)).toEqual(names(light))
    expect(light).toContain('--chart-page: #ffffff;')
    expect(dark).not.toContain('--chart-page: #ffffff;')
  })

  it('marks initial states, and draws transitions of a whole state or the machine', () => {
    const dot = toDot(chart)
    const nameOf = createNodeNames(chart)
    const leads = (from: string, to: string): boolean =>
      new RegExp(`^${nameOf(from)}:\\w+:\\w -> ${nameOf(to)} \\[`, 'm').test(dot)
    expect(leads('(root)', 'CANCELLED')).toBe(true)
    expect(leads('(root)', 'TIMED_OUT')).toBe(true)
    expect(leads('RUNNING', 'RUNNING.whereItWas')).toBe(true)
    expect(dot).toContain(`start_${nameOf('(root)')} -> start_${nameOf('RUNNING')} `)
    expect(dot).toContain(`start_${nameOf('RUNNING')} -> start_${nameOf('RUNNING.preparing')} `)
    const first = nameOf('RUNNING.preparing.starting')
    expect(dot).toContain(`start_${nameOf('RUNNING.preparing')} -> ${first} `)
  })

  it('is the same each time', async () => {
    expect(await toSvg(chart)).toBe(await toSvg(toChart(agentMachine)))
  })
})

describe('the coverage overlay', () => {
  const transitions = states.flatMap((state) => state.transitions)
  const missed = transitions.find(
    ({ source, on }) => source === 'RUNNING.asking.concluding' && on === 'onError',
  )
  const coverage = {
    machine: 'agent',
    transitions: transitions.map(({ id }, index) => ({ id, count: id === missed?.id ? 0 : index + 1 })),
  }

  it('states how often each transition was taken, and marks the one that never was', async () => {
    const svg = await toSvg(chart, { counts: readTransitionCounts(coverage, chart) })
    const texts = textsOf(svg)
    expect(texts.filter((text) => /^\d+×$/.test(text))).toHaveLength(transitions.length - 1)
    expect(texts.filter((text) => text === 'never')).toHaveLength(1)
  })

  it('refuses a coverage that does not belong to this machine', () => {
    const refusal = (value: unknown): unknown => {
      try {
        return readTransitionCounts(value, chart)
      } catch (error) {
        return error
      }
    }
    for (const value of [
      null,
      7,
      [],
      {},
      { machine: 'agent', transitions: [{ id: 'x', count: -1 }] },
      { ...coverage, machine: 'other' },
      { machine: 'agent', transitions: [{ id: 'gone', count: 1 }] },
    ]) {
      expect(refusal(value)).toMatchObject({ name: 'DiagramError', code: 'bad_coverage' })
    }
  })
})

describe('any machine', () => {
  it('is drawn with timers, parallel regions, combined guards and unusual names', async () => {
    const texts = textsOf(await toSvg(toChart(workshop)))
    expect(texts).toEqual(
      expect.arrayContaining([
        'a state',
        'a-state',
        'after 1000',
        '[and(isOpen, not(is "late" & <old>))]',
        'fetchIt',
        'left',
        'off',
      ]),
    )
  })

  it('is refused if the requested state has no nested states, with a list of those that have', async () => {
    await expect(toSvg(toChart(workshop), { state: 'gone' })).rejects.toMatchObject({
      code: 'unknown_state',
      message: "'gone' is not a state with nested states. States with nested states: both, both.left.",
    })
  })

  it('is refused if it has no states', async () => {
    await expect(toSvg(toChart(single))).rejects.toMatchObject({ code: 'unknown_state' })
  })

  it('is drawn with all its cards, for any state names', async () => {
    const name = unicodeText({ minLength: 1, maxLength: 12 }).filter(
      (text) => !/[.#]/.test(text) && text !== '__proto__',
    )
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(name, { minLength: 1, maxLength: 4 }), async (names) => {
        const machine = createMachine({
          id: 'm',
          initial: names[0] ?? '',
          states: Object.fromEntries(
            names.map((key) => [key, { description: key, on: { E: { guard: 'g' } } }]),
          ),
        })
        const svg = await toSvg(toChart(machine))
        expect(textsOf(svg).filter((text) => text === '[g]')).toHaveLength(names.length)
      }),
      { numRuns: sampled(60) },
    )
  })
})
