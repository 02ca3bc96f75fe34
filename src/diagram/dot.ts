import {
  type Chart,
  type ChartState,
  type ChartTransition,
  expectChart,
  flattenStates,
  type TransitionCounts,
  unknownStateError,
} from './chart.js'
import { agentLook, isMainTransition, type Look, palette, toneColors } from './look.js'
import { type Attributes, escapeXml, formatAttributes, wrapWords } from './svg-parts.js'

/** Options for drawing a chart with Graphviz. */
export interface DotOptions {
  /** Draws only this compound state. Targets outside it appear as row labels. Defaults to the whole machine. */
  state?: string | undefined
  /** Shows how often each transition was taken and highlights transitions that were never taken. */
  counts?: TransitionCounts | undefined
  /** Defaults to `agentLook`. */
  look?: Look | undefined
  /** Card positions from a previous layout, used to pick the side on which each edge leaves. */
  places?: Places | undefined
  /** Adds ids to the Graphviz output: states by node name, transitions as `t3,4` by their index in document order. */
  isNamed?: boolean | undefined
}

/** Card centers by node name. X grows to the right, y upwards. */
export type Places = ReadonlyMap<string, { x: number; y: number }>

/** More edges to final states would cover the others. The rows still name the target. */
const maxTransitionsWithLines = 30

/**
 * Renders a chart in Graphviz's DOT language with one card per state, one row per transition, and edges from rows to
 * cards. Use it with your own Graphviz installation; `toSvg` renders it for you.
 *
 * @example await writeFile('machine.dot', toDot(toChart(machine)))
 * @throws {DiagramError} `unknown_state`
 */
export function toDot(chart: Chart, options: DotOptions = {}): string {
  expectChart('toDot', chart, 'options', options)
  const { state, counts, look = agentLook, places, isNamed = false } = options
  const states = new Map(flattenStates(chart.root).map((each) => [each.id, each]))
  const shown = state === undefined ? chart.root : states.get(state)
  if (!shown || shown.states.length === 0) throw unknownStateError(state ?? chart.id, chart)
  const getName = createNodeNames(chart)
  const inside = new Map(flattenStates(shown).map((each) => [each.id, each]))
  const isBusy =
    [...inside.values()].flatMap(({ transitions }) => transitions).length > maxTransitionsWithLines
  const order = isNamed ? indexTransitions(chart) : undefined
  const cards = createCards(look, counts, order)

  function drawNode(each: ChartState, depth: number, isRegion = false): string[] {
    if (each.states.length === 0)
      return [`${getName(each.id)} [${formatId(each)}label=<${cards.drawAtomic(each, isRegion)}>]`]
    return [
      `subgraph cluster_${getName(each.id)} {`,
      formatId(each),
      `margin=16 label="" style="rounded,filled${isRegion ? ',dashed' : ''}"`,
      `fillcolor="${palette.areas[Math.min(depth, palette.areas.length - 1)] ?? ''}"`,
      ...drawContent(each, 19, depth + 1),
      '}',
    ]
  }

  function formatId({ id }: ChartState): string {
    return isNamed ? `id="${getName(id)}" ` : ''
  }

  function drawContent(each: ChartState, size: number, depth: number): string[] {
    const name = getName(each.id)
    const isInitial = ({ id }: ChartState): boolean => each.initial.includes(id)
    return [
      // The heading is a node too, because edges avoid nodes but cross labels.
      `${name} [label=<${cards.drawHeading(each, size)}>]`,
      `${toMarkerName(each.id)} [shape=circle width=0.16 label="" style=filled fillcolor="${palette.text}" color="${palette.text}"]`,
      ...each.states.flatMap((child) => drawNode(child, depth, each.type === 'parallel')),
      `${name} -> ${toMarkerName(each.id)} [style=invis weight=8]`,
      ...each.states.map((child) =>
        isInitial(child)
          ? `${toMarkerName(each.id)} -> ${findLanding(child.id)} [color="${palette.text}" weight=8]`
          : `${name} -> ${findLanding(child.id)} [style=invis weight=0]`,
      ),
    ]
  }

  function toMarkerName(id: string): string {
    return `start_${getName(id)}`
  }

  function findLanding(id: string): string {
    const isEntered = (states.get(id)?.states.length ?? 0) > 0
    return isEntered ? toMarkerName(id) : getName(id)
  }

  function drawEdges(from: ChartState): string[] {
    const isAtomic = from.states.length === 0
    const lines = new Map<string, { transition: ChartTransition; row: number }>()
    for (const [row, transition] of from.transitions.entries()) {
      for (const target of transition.targets) {
        // Targets outside the drawn state are named in the row only. Edges to them would widen the sheet
        // without adding information.
        if (!inside.has(target)) continue
        const isEnd = isBusy && isAtomic && states.get(target)?.type === 'final'
        if (isEnd && !isMainTransition(look, transition)) continue
        const to = findLanding(target)
        const drawn = lines.get(to)
        // Only one edge is drawn per target, from the main row or else the last row.
        if (!drawn || !isMainTransition(look, drawn.transition)) lines.set(to, { transition, row })
      }
    }
    return [...lines].map(([to, { transition, row }]) => {
      const isTaken = from.transitions.some(
        ({ id, targets }) => Boolean(counts?.get(id)) && targets.some((target) => findLanding(target) === to),
      )
      const style = counts
        ? `color="${isTaken ? palette.covered : palette.missed}" penwidth=1.6${isTaken ? '' : ' style=dashed'}`
        : isMainTransition(look, transition)
          ? `color="${palette.main}" penwidth=3.2 weight=12`
          : getToneStyle(transition.targets)
      const ids = from.transitions
        .filter(({ targets }) => targets.some((target) => findLanding(target) === to))
        .map(({ id }) => order?.get(id))
      return `${getName(from.id)}:${chooseExit(from, row, to)} -> ${to} [${order ? `id="t${ids.join()}" ` : ''}${style}]`
    })
  }

  function getToneStyle(targets: readonly string[]): string {
    const [tone] = targets.flatMap((id) => look.tones[id] ?? [])
    return tone === undefined ? '' : `color="${toneColors[tone].line}"`
  }

  function chooseExit(from: ChartState, row: number, to: string): string {
    const [here, there] = [places?.get(getName(from.id)), places?.get(to)]
    if (!here || !there) return `${rowPort(row)}:e`
    const isLast = row === from.transitions.length - 1
    if (isLast && there.y < here.y) return `${rowPort(row)}:s`
    return there.x < here.x ? `${rowPort(row, 'left')}:w` : `${rowPort(row)}:e`
  }

  const body = drawContent(shown, 24, 0)
  const lines = [...inside.values()].flatMap(drawEdges)
  return [
    'digraph {',
    'graph [rankdir=TB fontname="Helvetica" fontsize=15 nodesep=0.35 ranksep=0.55]',
    `graph [style="rounded,filled" color="${palette.line}" penwidth=1.4 labeljust=l]`,
    `graph [bgcolor="${palette.page}"]`,
    `node [shape=plain fontname="Helvetica" fontsize=15 fontcolor="${palette.text}" color="${palette.line}"]`,
    `edge [arrowsize=0.9 color="${palette.line}" penwidth=1.3]`,
    ...body,
    `{ rank=min ${getName(shown.id)} }`,
    ...lines,
    ...(isBusy ? drawFinalsBelow(shown, inside, getName) : []),
    '}',
  ].join('\n')
}

function drawFinalsBelow(
  shown: ChartState,
  inside: ReadonlyMap<string, ChartState>,
  getName: (id: string) => string,
): string[] {
  const finals = shown.states.filter(({ type }) => type === 'final').map(({ id }) => getName(id))
  const [first] = finals
  if (first === undefined) return []
  const sources = [...inside.values()].filter(({ states, type }) => states.length === 0 && type === 'atomic')
  return [
    `{ rank=same ${finals.join(' ')} }`,
    ...sources.map(({ id }) => `${getName(id)} -> ${first} [style=invis weight=0]`),
  ]
}

/** Graphviz does not accept every character or very long names, so nodes get generated names. */
export function createNodeNames(chart: Chart): (id: string) => string {
  const order = new Map(flattenStates(chart.root).map(({ id }, index) => [id, index]))
  return (id) => `n${order.get(id) ?? ''}`
}

function indexTransitions(chart: Chart): Map<string, number> {
  return new Map(
    flattenStates(chart.root)
      .flatMap(({ transitions }) => transitions)
      .map(({ id }, index) => [id, index]),
  )
}

/** Edges start at rows, so they need no labels. */
function createCards(look: Look, counts?: TransitionCounts, order?: ReadonlyMap<string, number>) {
  function countColumns(state: ChartState): number {
    return 2 + (hasEvents(state) ? 1 : 0) + (counts ? 1 : 0)
  }

  function drawAtomic(state: ChartState, isRegion = false): string {
    if (state.type === 'history') {
      const name = `${toBold(state.history === 'deep' ? 'H*' : 'H')} ${escapeXml(state.key)}`
      const frame = { border: 1, style: 'rounded,dashed', color: palette.quiet }
      return drawTable(frame, `<tr>${drawCell(toColored(palette.quiet, name))}</tr>`)
    }
    const tone = state.type === 'final' ? toneColors[look.tones[state.id] ?? 'neutral'] : undefined
    const rows = drawRows(state)
    return drawTable(
      {
        border: tone ? 2 : 1,
        style: isRegion ? 'rounded,dashed' : 'rounded',
        color: tone?.line ?? palette.line,
        bgcolor: tone?.fill ?? palette.card,
      },
      `${drawHead(state, { width: 46, colspan: countColumns(state) })}${rows === '' ? '' : `<hr/>${rows}`}`,
    )
  }

  function drawHeading(state: ChartState, size: number): string {
    const space = '<tr><td height="8"></td></tr>'
    return drawTable(
      { border: 0 },
      `${drawHead(state, { width: 72, size, colspan: countColumns(state) })}${drawRows(state)}${space}`,
    )
  }

  function drawRows(state: ChartState): string {
    return state.transitions.map((transition, index) => drawRow(state, transition, index)).join('')
  }

  function drawRow(state: ChartState, transition: ChartTransition, index: number): string {
    const { on, when, targets } = transition
    const main = !counts && isMainTransition(look, transition)
    const count = counts?.get(transition.id) ?? 0
    const place = order?.get(transition.id)
    const fill = {
      ...(counts && count === 0 && { bgcolor: palette.missedFill }),
      ...(place !== undefined && { href: `#t${place}` }),
    }
    const guard = toColored(main ? palette.main : palette.text, escapeXml(`[${when}]`) + gap)
    const condition = when === null ? (on === '' ? 'always' : '') : when === 'else' ? 'else' : null
    const to = targets.map((id) => drawTarget(id, state, main)).join(' ')
    const taken = count > 0 ? toColored(palette.covered, `${count}×`) : toColored(palette.missed, 'never')
    // Each cell holds text of one kind, because only then do all cells of a row share a baseline.
    const cells = [
      ...(hasEvents(state) ? [toBold(escapeXml(on) + gap)] : []),
      condition === null ? guard : toColored(palette.quiet, condition + gap),
      to === '' ? toColored(palette.quiet, 'stays') : to,
      ...(counts ? [taken] : []),
    ]
    const ports: Record<number, Attributes> = {
      [cells.length - 1]: { port: rowPort(index) },
      0: { port: rowPort(index, 'left') },
    }
    return `<tr>${cells.map((content, column) => drawCell(content, { ...fill, ...ports[column] })).join('')}</tr>`
  }

  function drawTarget(id: string, from: ChartState, main: boolean): string {
    const tone = look.tones[id]
    const name = escapeXml(`→ ${toRelativeName(id, from)}`)
    const color = tone ? toneColors[tone].line : main ? palette.main : palette.text
    return toColored(color, main ? toBold(name + gap) : name)
  }

  return { drawAtomic, drawHeading }
}

function rowPort(index: number, side: 'left' | 'right' = 'right'): string {
  return `${side}${index}`
}

function hasEvents({ transitions }: ChartState): boolean {
  return transitions.some(({ on }) => on !== '')
}

function drawHead(
  { key, type, description, invokes }: ChartState,
  { width, size = 17, colspan = 1 }: { width: number; size?: number; colspan?: number },
): string {
  const lines = [
    `<font point-size="${size}">${toBold(escapeXml(key) + gap)}</font>`,
    ...(type === 'parallel' ? [toColored(palette.quiet, 'in all of these at once')] : []),
    ...wrapWords(description, width).map((line) => toColored(palette.quiet, escapeXml(line))),
    ...invokes.map(({ src }) => `${toColored(palette.quiet, 'invoke')} ${toBold(escapeXml(src))}`),
  ]
  return lines.map((line) => `<tr>${drawCell(line, { colspan })}</tr>`).join('')
}

function toRelativeName(id: string, { id: from }: ChartState): string {
  const parent = from.slice(0, from.lastIndexOf('.') + 1)
  return parent !== '' && id.startsWith(parent) ? id.slice(parent.length) : id
}

/** Extra space, because some fonts are wider than the one Graphviz measures. */
const gap = '&#160;&#160;'

function drawTable(attributes: Attributes, content: string): string {
  return `<table${formatAttributes({ cellborder: 0, cellspacing: 0, cellpadding: 3, ...attributes })}>${content}</table>`
}

function drawCell(content: string, attributes: Attributes = {}): string {
  return `<td${formatAttributes({ align: 'left', ...attributes })}>${content}</td>`
}

function toColored(color: string, content: string): string {
  if (content === '') return ''
  return `<font color="${color}">${content}</font>`
}

/** Uses a bold font name because Graphviz shifts the baseline of `<b>`. */
function toBold(content: string): string {
  return content === '' ? '' : `<font face="Helvetica-Bold">${content}</font>`
}
