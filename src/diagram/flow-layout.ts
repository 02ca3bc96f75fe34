import type { Chart, ChartState } from './chart.js'
import { type Look, palette, toneColors } from './look.js'
import { type Overview, type OverviewTransition, toOverview } from './overview.js'
import {
  drawInitialMarker,
  drawLabel,
  drawStateGroup,
  fontSizes,
  formatTransitions,
  formatWay,
  type LabelOptions,
  measureText,
  wrapWords,
} from './svg-parts.js'

const thin = 1.6
const thick = 3.2
const labelStep = 16

export interface Box {
  id: string
  x: number
  y: number
  width: number
  height: number
}

export interface Line extends OverviewTransition {
  from: string
}

interface WayLabel {
  text: string
  ids: readonly string[]
}

function wrapWayLabels(
  { events, causes }: Pick<OverviewTransition, 'events' | 'causes'>,
  room: number,
): WayLabel[] {
  return events.flatMap((event, index) =>
    wrapWords(event, room, fontSizes.words).map((text) => ({ text, ids: causes[index] ?? [] })),
  )
}

function drawWayLabel({ text, ids }: WayLabel, x: number, y: number, options: LabelOptions): string {
  return `<g class="word" ${formatTransitions(ids)}>${drawLabel(text, x, y, options)}</g>`
}

type Point = readonly [x: number, y: number]

export function drawLine(line: Line, points: readonly Point[], words: readonly string[]): string[] {
  const color = line.main ? palette.main : palette.line
  const width = line.main ? thick : thin
  const [end = [0, 0], before = [0, 0]] = [points.at(-1), points.at(-2)]
  const [dx, dy] = [Math.sign(end[0] - before[0]), Math.sign(end[1] - before[1])]
  const length = line.main ? 11 : 9
  const half = line.main ? 6 : 4.5
  const [bx, by] = [end[0] - dx * length, end[1] - dy * length]
  const head = `M${end[0]},${end[1]}L${bx + dy * half},${by + dx * half}L${bx - dy * half},${by - dx * half}z`
  // The line ends inside the arrowhead, so that the blunt end of the line is hidden.
  const drawn = [...points.slice(0, -1), [bx + dx * 2, by + dy * 2] as const]
  return [
    `<g class="way${line.main ? ' main' : ''}" ${formatWay(line)}>`,
    `<path class="line" d="${toRoundedPath(drawn)}" fill="none" stroke="${color}" stroke-width="${width}"/>`,
    `<path class="head" d="${head}" fill="${color}"/>`,
    ...words,
    '</g>',
  ]
}

function toRoundedPath(points: readonly Point[]): string {
  const radius = 9
  return points
    .map(([x, y], index) => {
      const [before, after] = [points[index - 1], points[index + 1]]
      if (!before) return `M${x},${y}`
      if (!after) return `L${x},${y}`
      const to = ([ax, ay]: Point): string =>
        `${x + Math.sign(ax - x) * Math.min(radius, Math.abs(ax - x))},${y + Math.sign(ay - y) * Math.min(radius, Math.abs(ay - y))}`
      return `L${to(before)}Q${x},${y} ${to(after)}`
    })
    .join('')
}

/** Edges between neighbors in a row: forward with labels above, backward below it with labels beneath. */
function drawLevelLines(left: Box, right: Box, lines: readonly Line[]): string[] {
  const [x1, x2] = [left.x + left.width, right.x]
  const room = x2 - x1 - 4
  const middle = (x1 + x2) / 2
  const there = lines.find(({ from }) => from === left.id)
  const back = lines.find(({ from }) => from === right.id)
  const thereY = left.y + 24 + (there ? wrapWayLabels(there, room).length * labelStep : 0)
  const backY = there ? thereY + 24 : left.y + 34
  const say = (words: readonly WayLabel[], y: number): string[] =>
    words.map((word, index) =>
      drawWayLabel(word, middle, y + index * labelStep, { width: room + 8, anchor: 'middle' }),
    )
  const draw = (line: Line | undefined, from: Point, to: Point, y: number): string[] =>
    line ? drawLine(line, [from, to], say(wrapWayLabels(line, room), y)) : []
  return [
    ...draw(there, [x1, thereY], [x2, thereY], left.y + 18),
    ...draw(back, [x2, backY], [x1, backY], backY + 20),
  ]
}

function measureLevelHeight(lines: readonly Line[], room: number): number {
  const count = lines.reduce((sum, line) => sum + wrapWayLabels(line, room - 4).length, 0)
  return 24 + count * labelStep + (lines.length > 1 ? 24 : 0) + 16
}

function drawLaneBelow(from: Box, to: Box, line: Line, y: number): string[] {
  const isBack = from.x > to.x
  const [x1, x2] = [from.x + from.width / 2 + (isBack ? -8 : 8), to.x + to.width / 2 + (isBack ? 8 : -8)]
  const words = line.events.join(' · ')
  return drawLine(
    line,
    [
      [x1, from.y + from.height],
      [x1, y],
      [x2, y],
      [x2, to.y + to.height],
    ],
    [drawLabel(words, (x1 + x2) / 2, y - 6, { width: Math.abs(x1 - x2) - 24, anchor: 'middle' })],
  )
}

/** Edges between a state and one below it: downward labels on the left, upward labels on the right. */
function drawUprightLines(
  above: Box,
  below: Box,
  lines: readonly Line[],
  { x, left, right }: { x: number; left: number; right: number },
): string[] {
  const [top, bottom] = [above.y + above.height, below.y]
  const down = lines.find(({ from }) => from === above.id)
  const up = lines.find(({ from }) => from === below.id)
  const apart = down && up ? 9 : 0
  const say = (line: Line, side: 'left' | 'right'): string[] => {
    const room = side === 'left' ? left : right
    const words = wrapWayLabels(line, room)
    const start = (top + bottom) / 2 - ((words.length - 1) * labelStep) / 2 + 4
    return words.map((word, index) =>
      drawWayLabel(word, side === 'left' ? x - apart - 9 : x + apart + 9, start + index * labelStep, {
        width: room,
        ...(side === 'left' && { anchor: 'end' }),
      }),
    )
  }
  const draw = (line: Line | undefined, from: Point, to: Point, side: 'left' | 'right'): string[] =>
    line ? drawLine(line, [from, to], say(line, side)) : []
  return [
    ...draw(down, [x - apart, top], [x - apart, bottom], up ? 'left' : 'right'),
    ...draw(up, [x + apart, bottom], [x + apart, top], 'right'),
  ]
}

interface Flow {
  width: number
  height: number
  svg: readonly string[]
}

const margin = 24
const rowGap = 160
const laneHeight = 30

/** Whether the machine is small enough for a flow, with one initial state and few other states with few nested states. */
export function isFlow({ root }: Chart): boolean {
  const live = root.states.filter(({ type }) => type !== 'final')
  const [first] = root.initial
  return (
    root.type === 'compound' &&
    live.some(({ id }) => id === first) &&
    live.length <= 4 &&
    live.every(
      (state) =>
        state.type !== 'history' && listInnermostStates(state).length <= 20 && measureDepth(state) <= 2,
    ) &&
    live.every((state) => state.id === first || listInnermostStates(state).length <= 9)
  )
}

function measureDepth({ states }: ChartState): number {
  return states.length === 0 ? 0 : 1 + Math.max(...states.map(measureDepth))
}

/**
 * Lays out the initial state on top with its contents, the other states in a row below, and final states on the
 * right. Edges do not cross. Transitions to final states are listed in their boxes; only the main path gets an
 * edge.
 *
 * A general graph layout (dagre 3.1) of the agent machine takes 2,527 × 1,509 pixels instead of 1,249 × 996, and its
 * edges run through labels and other edges.
 */
export function layOutFlow(chart: Chart, look: Look, y: number): Flow {
  const overview = toOverview(chart, look)
  const { states: tops } = overview
  const first = tops.find(({ state }) => chart.root.initial.includes(state.id))
  if (!first) throw new Error('A machine without an initial state cannot be drawn as a flow.')
  const lines = listLines(overview)
  const isEnd = (id: string): boolean => tops.some(({ state }) => state.id === id && state.type === 'final')
  const good = first.transitions.find(({ to, main }) => main && isEnd(to))
  const others = orderByNeighbours(
    tops.filter(({ state }) => state !== first.state && state.type !== 'final').map(({ state }) => state),
    lines,
  )

  const describe = (state: ChartState, room: number): BlockContent => ({
    state,
    isDescribed: true,
    colors: { fill: palette.areas[0], line: palette.line },
    notes: collectNotes(state, overview, { room, anywhereOnly: true }),
  })
  const contents = others.map((state) => describe(state, 200))
  const widths = contents.map((content) => measureBlockWidth(content, 200))
  const rowWidth = widths.reduce((sum, width) => sum + width, 0) + Math.max(0, widths.length - 1) * rowGap
  const inner = layOutHubContent(chart, look, first.state)
  const hubWidth = Math.max(
    inner.width + 2 * padding,
    rowWidth > 0 ? rowWidth - (widths.at(-1) ?? 0) + 120 : 0,
    300,
  )
  const hub = drawBlock(
    { ...describe(first.state, hubWidth - 2 * padding), inside: inner },
    { x: margin, y: y + 26, width: hubWidth },
  )

  const centres = widths.map((width, index) => {
    const x = widths.slice(0, index).reduce((sum, each) => sum + each + rowGap, margin)
    return (x + Math.min(x + width, margin + hubWidth)) / 2
  })
  const links = centres.map((x, index) => {
    const [before, after] = [centres[index - 1], centres[index + 1]]
    return {
      pair: lines.filter((line) => hasSameEnds(line, first.state.id, others[index]?.id ?? '')),
      x,
      left: Math.min(170, before === undefined ? x - margin - 18 : (x - before) / 2 - 24),
      right: Math.min(170, after === undefined ? 170 : (after - x) / 2 - 24),
    }
  })
  const notes = links.flatMap(({ pair, left, right }) =>
    pair.map((line) => {
      const isLeft = line.from === first.state.id && pair.length > 1
      return wrapWayLabels(line, isLeft ? left : right).length
    }),
  )
  const rowY = hub.y + hub.height + Math.max(0, ...notes) * labelStep + 44
  const row = drawRow(contents, widths, lines, { x: margin, y: rowY })

  const svg = [
    ...row.blocks.flatMap((below, index) => {
      const link = links[index]
      return link ? drawUprightLines(hub, below, link.pair, link) : []
    }),
    ...row.svg,
    ...hub.svg,
    drawInitialMarker(hub.x + 40, hub.y),
  ]
  const rowBottom = others.length === 0 ? hub.y + hub.height : row.bottom
  const left = margin + Math.max(hubWidth, rowWidth) + margin

  const ends = listEnds(overview, look, { first: first.state.id, good: good?.to })
  if (ends.contents.length === 0) return { width: left, height: rowBottom + margin, svg }
  const x = Math.max(hub.x + hub.width + 56, others.length === 0 ? 0 : margin + rowWidth + 28)
  const needed = ends.contents.map((content) => measureHeadHeight(content, ends.width) + 3)
  const total = needed.reduce((sum, height) => sum + height, 0)
  const gap = Math.max(12, Math.min(26, (rowBottom - hub.y - total) / Math.max(1, needed.length - 1)))
  let endY = hub.y
  for (const [index, content] of ends.contents.entries()) {
    const end = drawBlock(content, { x, y: endY, width: ends.width, height: needed[index] ?? 0 })
    if (good && content.state.id === good.to) {
      const at = endY + 22
      const start = [hub.x + hub.width, at] as const
      svg.push(...drawLine({ ...good, from: hub.id }, [start, [x, at]], []))
    }
    svg.push(...end.svg)
    endY += (needed[index] ?? 0) + gap
  }
  return { width: x + ends.width + margin, height: Math.ceil(Math.max(rowBottom, endY - gap) + margin), svg }
}

function listEnds(
  overview: Overview,
  look: Look,
  { first, good }: { first: string; good: string | undefined },
): { contents: BlockContent[]; width: number } {
  const states = overview.states.map(({ state }) => state).filter(({ type }) => type === 'final')
  const sorted = states.toSorted((a, b) => Number(b.id === good) - Number(a.id === good))
  const heads = sorted.flatMap((state) =>
    collectNotes(state, overview, { room: 300 }).map(({ head }) => head),
  )
  const room = Math.max(
    130,
    ...sorted.map(({ key }) => measureText(key, fontSizes.name, true)),
    ...heads.map((head) => measureText(head, fontSizes.words)),
  )
  const width = Math.ceil(Math.min(320, room)) + 2 * padding
  const contents = sorted.map((state) => ({
    state,
    isDescribed: false,
    colors: toneColors[look.tones[state.id] ?? 'neutral'],
    notes: collectNotes(state, overview, { room: width - 2 * padding, ...(state.id === good && { first }) }),
  }))
  return { contents, width }
}

function listLines({ states }: Overview): Line[] {
  return states.flatMap(({ state, transitions }) => transitions.map((way) => ({ ...way, from: state.id })))
}

function hasSameEnds({ from, to }: { from: string; to: string }, a: string, b: string): boolean {
  return (from === a && to === b) || (from === b && to === a)
}

/** Orders states so that most transitions connect neighbors. Ties keep document order. */
function orderByNeighbours(states: readonly ChartState[], lines: readonly Line[]): ChartState[] {
  const strays = (order: readonly ChartState[]): number => lines.filter((line) => isFar(order, line)).length
  return listPermutations(states).reduce((best, order) => (strays(order) < strays(best) ? order : best))
}

/** Whether a line connects two states of a row that are not neighbors. */
function isFar(row: readonly ChartState[], { from, to }: Line): boolean {
  const [a, b] = [row.findIndex(({ id }) => id === from), row.findIndex(({ id }) => id === to)]
  return a !== -1 && b !== -1 && Math.abs(a - b) > 1
}

function listPermutations<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]]
  return items.flatMap((item) =>
    listPermutations(items.filter((other) => other !== item)).map((rest) => [item, ...rest]),
  )
}

function collectNotes(
  { id }: ChartState,
  { anywhere, states: tops }: Overview,
  { room, first, anywhereOnly = false }: { room: number; first?: string; anywhereOnly?: boolean },
): Note[] {
  const sources = [
    { from: '(root)', head: 'from anywhere', ways: anywhere },
    ...(anywhereOnly
      ? []
      : tops.map(({ state, transitions: ways }) => ({ from: state.id, head: `from ${state.key}`, ways }))),
  ]
  return sources.flatMap(({ from, head, ways }) =>
    ways
      .filter(({ to }) => to === id)
      .map((way) => ({
        head,
        lines: wrapWayLabels(way, room),
        way: { ...way, from },
        hasLine: way.main && from === first,
      })),
  )
}

interface Row {
  blocks: Block[]
  svg: string[]
  width: number
  bottom: number
}

function drawRow(
  contents: readonly BlockContent[],
  widths: readonly number[],
  lines: readonly Line[],
  { x, y }: { x: number; y: number },
): Row {
  const states = contents.map(({ state }) => state)
  const findPair = (index: number): Line[] =>
    lines.filter((line) => hasSameEnds(line, states[index]?.id ?? '', states[index + 1]?.id ?? ''))
  const far = lines.filter((line) => isFar(states, line))
  const heights = contents.map(
    (content, index) => drawBlock(content, { x: 0, y: 0, width: widths[index] ?? 0 }).height,
  )
  const needed = states.slice(1).map((_, index) => measureLevelHeight(findPair(index), rowGap))
  const height = Math.max(0, ...heights, ...needed)
  let at = x
  const blocks = contents.map((content, index) => {
    const width = widths[index] ?? 0
    const own = Math.max(heights[index] ?? 0, needed[index - 1] ?? 0, needed[index] ?? 0)
    const block = drawBlock(content, { x: at, y, width, height: far.length > 0 ? height : own })
    at += width + rowGap
    return block
  })
  const findBlock = (id: string): Block | undefined => blocks.find((block) => block.id === id)
  return {
    blocks,
    width: at - rowGap - x,
    bottom: y + height + far.length * laneHeight + (far.length > 0 ? 4 : 0),
    svg: [
      ...blocks.flatMap((block, index) => {
        const next = blocks[index + 1]
        return next ? drawLevelLines(block, next, findPair(index)) : []
      }),
      ...far.flatMap((line, index) => {
        const [from, to] = [findBlock(line.from), findBlock(line.to)]
        return from && to ? drawLaneBelow(from, to, line, y + height + (index + 1) * laneHeight - 4) : []
      }),
      ...blocks.flatMap(({ svg }) => svg),
    ],
  }
}

interface Inside {
  width: number
  height: number
  draw(x: number, y: number, room: number): string[]
}

function layOutHubContent(chart: Chart, look: Look, state: ChartState): Inside {
  const regions = state.states.filter(({ type }) => type !== 'history')
  if (regions.length === 0) return { width: 0, height: 0, draw: () => [] }
  if (regions.every(({ states }) => states.length === 0)) {
    const widths = regions.map(({ key }) => Math.ceil(measureText(key, 13)) + 24)
    const width = widths.reduce((sum, each) => sum + each + 8, -8)
    return {
      width,
      height: 26,
      draw: (x, y) =>
        regions.flatMap((region, index) =>
          drawChip(region, {
            x: x + widths.slice(0, index).reduce((sum, each) => sum + each + 8, 0),
            y,
            width: widths[index] ?? 0,
          }),
        ),
    }
  }
  const lines = listLines(toOverview(chart, look, state.id))
  const contents = regions.map(
    (region): BlockContent => ({
      state: region,
      isDescribed: false,
      colors: { fill: palette.areas[1], line: palette.line },
    }),
  )
  const widths = contents.map((content) => measureBlockWidth(content, 150))
  const draw = (x: number, y: number): Row => drawRow(contents, widths, lines, { x, y })
  const { width, bottom } = draw(0, 0)
  return { width, height: bottom, draw: (x, y, room) => draw(x + Math.max(0, (room - width) / 2), y).svg }
}

interface Block extends Box {
  svg: readonly string[]
}

const chipSize = 13
const chipHeight = 26
const chipStep = 31
const headRoom = 30
const wordStep = 17
const padding = 14

/** The innermost descendants, which are the states a machine can be in. An atomic state returns itself. */
function listInnermostStates(state: ChartState): ChartState[] {
  if (state.type === 'history') return []
  return state.states.length === 0 ? [state] : state.states.flatMap(listInnermostStates)
}

interface BlockContent {
  state: ChartState
  /** Shows the description in the box instead of only in the tooltip. */
  isDescribed: boolean
  colors: { fill: string; line: string }
  /** Incoming transitions as text. */
  notes?: readonly Note[]
  /** Defaults to one chip per innermost state. */
  inside?: Inside
}

interface Note {
  head: string
  lines: readonly WayLabel[]
  way: Line
  /** Whether an edge is drawn in addition to the text. */
  hasLine: boolean
}

function measureBlockWidth({ state }: BlockContent, least: number): number {
  const needed = Math.max(measureText(state.key, fontSizes.name, true), stackChips(state).width)
  return Math.ceil(Math.min(420, Math.max(least, needed + 2 * padding)))
}

function measureHeadHeight({ state, isDescribed, notes = [] }: BlockContent, width: number): number {
  const room = width - 2 * padding
  const words = isDescribed ? wrapWords(state.description, room, fontSizes.words).length : 0
  const notesHeight = measureNotesHeight(notes)
  return headRoom + words * wordStep + notesHeight + (words + notes.length > 0 ? 6 : 0)
}

function drawBlock(
  content: BlockContent,
  { x, y, width, height }: { x: number; y: number; width: number; height?: number },
): Block {
  const { state, isDescribed, colors, notes = [] } = content
  const room = width - 2 * padding
  const { inside = stackChips(state) } = content
  const head = measureHeadHeight(content, width)
  const full = height ?? head + (inside.height > 0 ? 4 + inside.height + padding : 6)
  let line = y + 22
  const parts = [drawLabel(state.key, x + padding, line, { size: fontSizes.name, bold: true, width: room })]
  const say = (words: string, color: string): void => {
    parts.push(drawLabel(words, x + padding, (line += wordStep), { color, width: room }))
  }
  if (isDescribed) {
    line += 3
    for (const words of wrapWords(state.description, room, fontSizes.words)) say(words, palette.quiet)
  }
  parts.push(...drawNotes(notes, { x: x + padding, y: line, room }))
  return {
    id: state.id,
    x,
    y,
    width,
    height: full,
    svg: drawStateGroup(state, `state ${state.type}`, [
      `<rect x="${x}" y="${y}" width="${width}" height="${full}" rx="10" fill="${colors.fill}" stroke="${colors.line}" stroke-width="1.4"/>`,
      ...parts,
      ...inside.draw(x + padding, y + head + 4, room),
    ]),
  }
}

function stackChips(state: ChartState): Inside {
  const chips = state.states.length === 0 ? [] : listInnermostStates(state)
  return {
    width: Math.max(0, ...chips.map(({ key }) => measureText(key, chipSize) + 20)),
    height: Math.max(0, chips.length * chipStep - 5),
    draw: (x, y, width) =>
      chips.flatMap((chip, index) => drawChip(chip, { x, y: y + index * chipStep, width })),
  }
}

function drawNotes(notes: readonly Note[], { x, y, room }: { x: number; y: number; room: number }): string[] {
  let line = y
  return notes.flatMap(({ head, lines, way, hasLine }) => {
    line += 3
    return [
      hasLine ? '<g class="told">' : `<g class="told way" ${formatWay(way)}>`,
      drawLabel(head, x, (line += wordStep), { color: palette.quiet, width: room }),
      ...lines.map((word) => drawWayLabel(word, x, (line += wordStep), { width: room })),
      '</g>',
    ]
  })
}

function measureNotesHeight(notes: readonly Note[]): number {
  return notes.reduce((sum, { lines }) => sum + lines.length * wordStep + 20, 0)
}

function drawChip(state: ChartState, { x, y, width }: { x: number; y: number; width: number }): string[] {
  return drawStateGroup(state, `state chip ${state.type}`, [
    `<rect x="${x}" y="${y}" width="${width}" height="${chipHeight}" rx="7" fill="${palette.card}" stroke="${palette.rule}" stroke-width="1"/>`,
    drawLabel(state.key, x + 10, y + 17.5, { size: chipSize, width: width - 16 }),
  ])
}
