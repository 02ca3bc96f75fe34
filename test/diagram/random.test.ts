import * as fc from 'fast-check'
import { render } from 'state-machine-cat'
import { type AnyStateMachine, createMachine } from 'xstate'
import { escapeXml } from '../../src/diagram/svg-parts.js'
import { type Chart, toChart, type ChartState, flattenStates } from '../../src/diagram/chart.js'
import { createNodeNames, toDot } from '../../src/diagram/dot.js'
import { toMachineJson, toMermaid, toScxml } from '../../src/diagram/text-formats.js'
import { toOverview } from '../../src/diagram/overview.js'
import { toOverviewSvg, toSvg } from '../../src/diagram/svg.js'
import { elementsOf } from './elements.js'
import { randomConfig } from './random-config.js'
import { sampled } from '../support/extent.js'

const check = (
  rule: (machine: AnyStateMachine, chart: Chart) => unknown,
  numRuns = sampled(100),
): Promise<void> =>
  fc.assert(
    fc.asyncProperty(randomConfig, async (config) => {
      const machine: AnyStateMachine = createMachine(config)
      await rule(machine, toChart(machine))
    }),
    { numRuns },
  )

const transitionsOf = (states: readonly ChartState[]) => states.flatMap(({ transitions }) => transitions)

test('JSON recreates the same machine', () =>
  check((machine, chart) => {
    expect(toChart(createMachine(JSON.parse(toMachineJson(machine))))).toEqual(chart)
  }))

test('SCXML is XML that another program reads, with every state and transition', () =>
  check(async (_machine, chart) => {
    const scxml = toScxml(chart)
    const states = flattenStates(chart.root)
    const elements = elementsOf(scxml)
    const count = (name: string): number => elements.filter((element) => element === name).length
    const histories = states.filter(({ type }) => type === 'history')
    expect(count('state') + count('parallel') + count('final') + count('history')).toBe(states.length)
    expect(count('transition')).toBe(transitionsOf(states).length + histories.length)
    expect(await render(scxml, { inputType: 'scxml', outputType: 'json' })).toBeTruthy()
    const ids = [...scxml.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
    for (const [, targets = ''] of scxml.matchAll(/ (?:target|initial)="([^"]*)"/g))
      for (const target of targets.split(' ')) expect(ids).toContain(target)
  }))

test('Mermaid output has only lines of its grammar, and draws or notes every transition', () =>
  check((_machine, chart) => {
    const lines = toMermaid(chart).trimEnd().split('\n')
    const forms = [
      /^stateDiagram-v2$/,
      /^ +(?:\[\*\]|\w+) --> \w+(?: : [^:;{}"<>%]*(?:<br\/>[^:;{}"<>%]*)*)?$/,
      /^ +state "[^"]*" as \w+(?: \{)?$/,
      /^ +(?:\}|--|end note)$/,
      /^ +note left of \w+$/,
      /^ {4}[^"{}]+ → stays$/,
      /^ +class(?:Def)? \S+ \S+$/,
    ]
    // Escapes contain semicolons.
    const plain = lines.map((line) => line.replaceAll(/#\d+;/g, '?'))
    for (const line of plain) expect([line, forms.some((form) => form.test(line))]).toEqual([line, true])
    const names = plain.flatMap((line) => /^ +state "[^"]*" as (\w+)/.exec(line)?.[1] ?? [])
    expect(new Set(names).size).toBe(names.length)
    const labels = plain.flatMap((line) => / : (.*)$/.exec(line)?.[1]?.split('<br/>') ?? [])
    const noted = plain.filter((line) => line.endsWith(' → stays'))
    const all = transitionsOf(flattenStates(chart.root))
    expect(noted).toHaveLength(all.filter(({ targets }) => targets.length === 0).length)
    expect(labels.length).toBeGreaterThanOrEqual(all.flatMap(({ targets }) => targets).length)
    for (const [, from = '', to = ''] of lines.flatMap((line) => [/^ +(\w+) --> (\w+)/.exec(line) ?? []]))
      if (from !== '') expect(names).toEqual(expect.arrayContaining([from, to]))
  }))

test('the picture is XML with a row for every transition and a line to every target', () =>
  check(async (_machine, chart) => {
    const states = flattenStates(chart.root)
    const dot = toDot(chart)
    const nameOf = createNodeNames(chart)
    for (const { id, states: inner, transitions } of states) {
      for (const target of transitions.flatMap(({ targets }) => targets)) {
        const to = states.find((state) => state.id === target)
        const isQuiet = transitionsOf(states).length > 30 && inner.length === 0 && to?.type === 'final'
        const end = (to?.states.length ?? 0) > 0 ? `start_${nameOf(target)}` : nameOf(target)
        const line = new RegExp(`^${nameOf(id)}:\\w+:\\w -> ${end} \\[`, 'm')
        if (!isQuiet) expect([id, target, line.test(dot)]).toEqual([id, target, true])
      }
      // A dot leads to each initial state.
      if (inner.length > 0)
        for (const first of states.find((state) => state.id === id)?.initial ?? [])
          expect(dot).toMatch(new RegExp(`^start_${nameOf(id)} -> (?:start_)?${nameOf(first)} \\[`, 'm'))
    }
    const svg = await toSvg(chart)
    elementsOf(svg)
    const targetsIn = (text: string): number => text.split('→').length - 1
    expect(targetsIn(svg.replaceAll(/ data-transition="[^"]*"/g, ''))).toBe(
      transitionsOf(states).flatMap(({ targets }) => targets).length,
    )
  }, 40))

test('the overview is XML with every state and every path between them', () =>
  check(async (_machine, chart) => {
    const svg = await toOverviewSvg(chart)
    elementsOf(svg)
    const { states: tops, anywhere } = toOverview(chart)
    const ways = [...anywhere, ...tops.flatMap((top) => top.transitions)]
    expect(ways.every(({ events }) => events.length > 0)).toBe(true)
    const shown = (name: string): string[] => svg.match(new RegExp(` ${name}="`, 'g')) ?? []
    // States inside a state with separately drawn transitions add to the count.
    expect(shown('data-to').length).toBeGreaterThanOrEqual(ways.length)
    for (const { to } of ways) expect(svg).toContain(` data-to="${escapeXml(to)}"`)
    expect(svg).not.toMatch(/NaN|undefined|Infinity/)
    const topOf = (path: string): string => path.split('.')[0] ?? ''
    for (const { source, targets } of transitionsOf(flattenStates(chart.root))) {
      for (const target of targets) {
        if (topOf(target) === topOf(source)) continue
        const own =
          source === '(root)' ? anywhere : tops.find(({ state }) => state.id === topOf(source))?.transitions
        expect(own?.some(({ to }) => to === topOf(target))).toBe(true)
      }
    }
  }))
