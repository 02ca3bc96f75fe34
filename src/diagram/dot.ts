import { anyOptions, expectArgument, objectWith } from '../core/base/expect-argument.js'
import { bold, Cards, gap, pill, rowPort, text } from './card.js'
import { type Chart, type ChartState, type ChartTransition, withNested } from './chart.js'
import type { TransitionCounts } from './coverage.js'
import { unknownState } from './errors.js'
import { agentLook, isMain, type Look } from './look.js'
import { palette, toneColors } from './theme.js'

/** What of a machine is drawn, and how. */
export interface DotOptions {
  /** Draws one compound state only, and by name what its transitions lead to. Default: the whole machine. */
  state?: string | undefined
  /** Shows how often each transition was taken, and marks those that never were. */
  counts?: TransitionCounts | undefined
  /** Default: the agent machine's. */
  look?: Look | undefined
  /** Where the cards lie, from a first layout: a line then leaves on the side on which it is needed. */
  places?: Places | undefined
  /**
   * Names states, rows and lines in what Graphviz draws: a state by its node, transitions `t3,4` by their places among
   * the chart's, in document order.
   */
  isNamed?: boolean | undefined
}

/** The centre of each card, by its node's name; x grows to the right, y upwards. */
export type Places = ReadonlyMap<string, { x: number; y: number }>

/** Above this, ways to a final state are told by their rows alone: their lines would hide the others. */
const manyTransitions = 30

/**
 * The machine in Graphviz's language: a card a state, a row a transition, a line from row to card. For a Graphviz of
 * your own; `toSvg` draws it.
 *
 * @example await writeFile('machine.dot', toDot(toChart(machine)))
 * @throws {DiagramError} `unknown_state`
 */
export function toDot(chart: Chart, options: DotOptions = {}): string {
  expectArgument('toDot(chart)', chart, objectWith(['root'], 'a chart: what toChart(machine) returned'))
  expectArgument('toDot(chart, options)', options, anyOptions)
  const { state, counts, look = agentLook, places, isNamed = false } = options
  const states = new Map(withNested(chart.root).map((each) => [each.id, each]))
  const shown = state === undefined ? chart.root : states.get(state)
  if (!shown || shown.states.length === 0) throw unknownState(state ?? chart.id, chart)
  const nameOf = nodeNames(chart)
  const inside = new Map(withNested(shown).map((each) => [each.id, each]))
  const isBusy = [...inside.values()].flatMap(({ transitions }) => transitions).length > manyTransitions
  const order = isNamed ? transitionOrder(chart) : undefined
  const cards = new Cards(look, counts, order)
  const outside = new Set<string>()

  function node(each: ChartState, depth: number, isRegion = false): string[] {
    if (each.states.length === 0)
      return [`${nameOf(each.id)} [${named(each)}label=<${cards.atomic(each, isRegion)}>]`]
    return [
      `subgraph cluster_${nameOf(each.id)} {`,
      named(each),
      `margin=16 label="" style="rounded,filled${isRegion ? ',dashed' : ''}"`,
      `fillcolor="${palette.areas[Math.min(depth, palette.areas.length - 1)] ?? ''}"`,
      ...content(each, 19, depth + 1),
      '}',
    ]
  }

  function named({ id }: ChartState): string {
    return isNamed ? `id="${nameOf(id)}" ` : ''
  }

  /** A heading, the dot at which the state is entered, and what is nested in it. */
  function content(each: ChartState, size: number, depth: number): string[] {
    const name = nameOf(each.id)
    const isInitial = ({ id }: ChartState): boolean => each.initial.includes(id)
    return [
      // The heading is a card too: lines go round cards, but through labels.
      `${name} [label=<${cards.compound(each, size)}>]`,
      `${markerOf(each.id)} [shape=circle width=0.16 label="" style=filled fillcolor="${palette.text}" color="${palette.text}"]`,
      ...each.states.flatMap((child) => node(child, depth, each.type === 'parallel')),
      `${name} -> ${markerOf(each.id)} [style=invis weight=8]`,
      ...each.states.map((child) =>
        isInitial(child)
          ? `${markerOf(each.id)} -> ${landing(child.id)} [color="${palette.text}" weight=8]`
          : `${name} -> ${landing(child.id)} [style=invis weight=0]`,
      ),
    ]
  }

  function markerOf(id: string): string {
    return `start_${nameOf(id)}`
  }

  /** The node at which a transition ends: a card, or the dot of a state that has others in it. */
  function landing(id: string): string {
    if (!inside.has(id)) outside.add(id)
    const isEntered = inside.has(id) && (states.get(id)?.states.length ?? 0) > 0
    return isEntered ? markerOf(id) : nameOf(id)
  }

  function edges(from: ChartState): string[] {
    const isAtomic = from.states.length === 0
    const lines = new Map<string, { transition: ChartTransition; row: number }>()
    for (const [row, transition] of from.transitions.entries()) {
      for (const target of transition.targets) {
        const isEnd = isBusy && isAtomic && states.get(target)?.type === 'final'
        if (isEnd && !isMain(look, transition)) continue
        const to = landing(target)
        const drawn = lines.get(to)
        // Of several rows that lead to one card, one has a line: the main one, or the last.
        if (!drawn || !isMain(look, drawn.transition)) lines.set(to, { transition, row })
      }
    }
    return [...lines].map(([to, { transition, row }]) => {
      const isTaken = from.transitions.some(
        ({ id, targets }) => Boolean(counts?.get(id)) && targets.some((target) => landing(target) === to),
      )
      const style = counts
        ? `color="${isTaken ? palette.taken : palette.missed}" penwidth=1.6${isTaken ? '' : ' style=dashed'}`
        : isMain(look, transition)
          ? `color="${palette.main}" penwidth=3.2 weight=12`
          : toneStyle(transition.targets)
      const ids = from.transitions
        .filter(({ targets }) => targets.some((target) => landing(target) === to))
        .map(({ id }) => order?.get(id))
      return `${nameOf(from.id)}:${exit(from, row, to)} -> ${to} [${order ? `id="t${ids.join()}" ` : ''}${style}]`
    })
  }

  /** A line to an end has the colour of its card. */
  function toneStyle(targets: readonly string[]): string {
    const tone = targets.flatMap((id) => look.tones[id] ?? [])[0]
    return tone === undefined ? '' : `color="${toneColors[tone].line}"`
  }

  function exit(from: ChartState, row: number, to: string): string {
    const [here, there] = [places?.get(nameOf(from.id)), places?.get(to)]
    if (!here || !there) return `${rowPort(row)}:e`
    const isLast = row === from.transitions.length - 1
    if (isLast && there.y < here.y) return `${rowPort(row)}:s`
    return there.x < here.x ? `${rowPort(row, 'left')}:w` : `${rowPort(row)}:e`
  }

  const body = content(shown, 24, 0)
  const lines = [...inside.values()].flatMap(edges)
  return [
    'digraph {',
    'graph [rankdir=TB fontname="Helvetica" fontsize=15 nodesep=0.35 ranksep=0.55]',
    `graph [style="rounded,filled" color="${palette.line}" penwidth=1.4 labeljust=l]`,
    `graph [bgcolor="${palette.page}"]`,
    `node [shape=plain fontname="Helvetica" fontsize=15 fontcolor="${palette.text}" color="${palette.line}"]`,
    `edge [arrowsize=0.9 color="${palette.line}" penwidth=1.3]`,
    ...body,
    `{ rank=min ${nameOf(shown.id)} }`,
    ...lines,
    ...(isBusy ? finalsBelow(shown, inside, nameOf) : []),
    ...[...outside].map((id) => ghost(id, nameOf(id), look, isNamed)),
    '}',
  ].join('\n')
}

/** Finals without a line are set in a row below what leads to them. */
function finalsBelow(
  shown: ChartState,
  inside: ReadonlyMap<string, ChartState>,
  nameOf: (id: string) => string,
): string[] {
  const finals = shown.states.filter(({ type }) => type === 'final').map(({ id }) => nameOf(id))
  const [first] = finals
  if (first === undefined) return []
  const sources = [...inside.values()].filter(({ states, type }) => states.length === 0 && type === 'atomic')
  return [
    `{ rank=same ${finals.join(' ')} }`,
    ...sources.map(({ id }) => `${nameOf(id)} -> ${first} [style=invis weight=0]`),
  ]
}

/** A state that lies outside what is drawn: its path alone. */
function ghost(id: string, name: string, look: Look, isNamed: boolean): string {
  const tone = look.tones[id]
  const color = tone ? toneColors[tone].line : palette.quiet
  return `${name} [${isNamed ? `id="${name}" ` : ''}label=<${pill(bold(text(id) + gap), color)}>]`
}

/** Graphviz' own names for states: it reads neither every character in a name nor very long ones. */
export function nodeNames(chart: Chart): (id: string) => string {
  const order = new Map(withNested(chart.root).map(({ id }, index) => [id, index]))
  return (id) => `n${order.get(id) ?? ''}`
}

/** The place of each transition among those of the chart. */
function transitionOrder(chart: Chart): Map<string, number> {
  return new Map(
    withNested(chart.root)
      .flatMap(({ transitions }) => transitions)
      .map(({ id }, index) => [id, index]),
  )
}
