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

const margin = 24
const padding = 14
const rowGap = 160
const laneHeight = 30
const labelStep = 16
const chipSize = 13
const chipHeight = 26
const chipStep = 31
const headRoom = 30
const wordStep = 17

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
        state.type !== 'history' &&
        listInnermostStates(state).length <= (state.id === first ? 20 : 9) &&
        measureDepth(state) <= 2,
    )
  )
}

function measureDepth({ states }: ChartState): number {
  return states.length === 0 ? 0 : 1 + Math.max(...states.map(measureDepth))
}

/** The innermost descendants, which are the states a machine can be in. An atomic state returns itself. */
function listInnermostStates(state: ChartState): ChartState[] {
  if (state.type === 'history') return []
  return state.states.length === 0 ? [state] : state.states.flatMap(listInnermostStates)
}

/**
 * Lays out the initial state on top with its contents, the other states in a row below, and final states on the
 * right. Edges do not cross. Transitions to final states are listed in their boxes; only the main path gets an
 * edge.
 *
 * General graph layouts of the agent machine are larger (dagre 3.1: 2,527 × 1,509 pixels; ELK 0.12: 1,426 × 1,934;
 * instead of 1,249 × 1,050) and their edges four times as long, and some run through labels.
 */
export function layOutFlow(chart: Chart, look: Look, y: number) {
  const overview = toOverview(chart, look)
  const { states: tops, anywhere } = overview
  const first = tops.find(({ state }) => chart.root.initial.includes(state.id))
  if (!first) throw new Error('A machine without an initial state cannot be drawn as a flow.')
  const hubId = first.state.id
  const lines = listLines(overview)
  const finals = tops.map(({ state }) => state).filter(({ type }) => type === 'final')
  const good = first.transitions.find(({ to, main }) => main && finals.some(({ id }) => id === to))
  const others = tops
    .map(({ state }) => state)
    .filter((state) => state.id !== hubId && state.type !== 'final')

  const create = (state: ChartState, width: number, room: number, inside?: Inside): Piece =>
    createPiece(state, {
      width,
      colors: { fill: palette.areas[0], line: palette.line },
      isDescribed: true,
      notes: collectNotes(state, { states: [], anywhere }, room),
      ...(inside && { inside }),
    })
  const pieces = orderByNeighbours(others, lines).map((state) => create(state, measureWidth(state, 200), 200))
  const rowWidth = measureRow(pieces, rowGap)
  const inner = layOutHubContent(chart, look, first.state)
  const belowLast = rowWidth > 0 ? rowWidth - (pieces.at(-1)?.width ?? 0) + 120 : 0
  const hubWidth = Math.max(inner.width + 2 * padding, belowLast, 300)
  const hub = create(first.state, hubWidth, hubWidth - 2 * padding, inner).place(margin, y + 26)

  const starts = placeInRow(pieces, margin, rowGap)
  const centres = pieces.map(({ width }, index) => {
    const x = starts[index] ?? 0
    return (x + Math.min(x + width, margin + hubWidth)) / 2
  })
  const links = centres.map((x, index) => {
    const [before, after] = [centres[index - 1], centres[index + 1]]
    return {
      pair: listBetween(lines, hubId, pieces[index]?.state.id),
      x,
      left: Math.min(170, before === undefined ? x - margin - 18 : (x - before) / 2 - 24),
      right: Math.min(170, after === undefined ? 170 : (after - x) / 2 - 24),
    }
  })
  const notes = links.flatMap(({ pair, left, right }) =>
    pair.map((line) => wrapWayLabels(line, line.from === hubId && pair.length > 1 ? left : right).length),
  )
  const rowY = hub.y + hub.height + Math.max(0, ...notes) * labelStep + 44
  const row = drawRow(pieces, lines, margin, rowY)
  const svg = [
    ...row.blocks.flatMap((below, index) => {
      const link = links[index]
      return link ? drawUprightLines(hub, below, link.pair, link) : []
    }),
    ...row.svg,
    ...hub.svg,
    drawInitialMarker(hub.x + 40, hub.y),
  ]
  const rowBottom = pieces.length === 0 ? hub.y + hub.height : row.bottom
  if (finals.length === 0)
    return { width: 2 * margin + Math.max(hubWidth, rowWidth), height: rowBottom + margin, svg }

  const ends = createEnds(finals, overview, look, hubId, good?.to)
  const x = Math.max(hub.x + hub.width + 56, pieces.length === 0 ? 0 : margin + rowWidth + 28)
  const total = ends.reduce((sum, { head }) => sum + head + 3, 0)
  const gap = Math.max(12, Math.min(26, (rowBottom - hub.y - total) / Math.max(1, ends.length - 1)))
  let endY = hub.y
  for (const { state, head, place } of ends) {
    const at = endY + 22
    if (good && state.id === good.to)
      svg.push(...drawLine({ ...good, from: hub.id }, [], [hub.x + hub.width, at], [x, at]))
    svg.push(...place(x, endY, head + 3).svg)
    endY += head + 3 + gap
  }
  const width = x + (ends[0]?.width ?? 0) + margin
  return { width, height: Math.ceil(Math.max(rowBottom, endY - gap) + margin), svg }
}

/** The final state of the main path comes first. */
function createEnds(
  finals: readonly ChartState[],
  overview: Overview,
  look: Look,
  first: string,
  good: string | undefined,
): Piece[] {
  const sorted = finals.toSorted((a, b) => Number(b.id === good) - Number(a.id === good))
  const heads = sorted.flatMap((state) => collectNotes(state, overview, 300).map(({ head }) => head))
  const needed = Math.max(
    130,
    ...sorted.map(({ key }) => measureText(key, fontSizes.name, true)),
    ...heads.map((head) => measureText(head, fontSizes.words)),
  )
  const room = Math.ceil(Math.min(320, needed))
  return sorted.map((state) =>
    createPiece(state, {
      width: room + 2 * padding,
      colors: toneColors[look.tones[state.id] ?? 'neutral'],
      notes: collectNotes(state, overview, room, state.id === good ? first : undefined),
    }),
  )
}

interface Line extends OverviewTransition {
  from: string
}

function listLines({ states }: Pick<Overview, 'states'>): Line[] {
  return states.flatMap(({ state, transitions }) => transitions.map((way) => ({ ...way, from: state.id })))
}

function listBetween(lines: readonly Line[], a: string | undefined, b: string | undefined): Line[] {
  return lines.filter(({ from, to }) => (from === a && to === b) || (from === b && to === a))
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

interface Note {
  head: string
  lines: readonly WayLabel[]
  way: Line
  /** Whether an edge is drawn in addition to the text. */
  hasLine: boolean
}

function collectNotes(
  { id }: ChartState,
  { anywhere, states }: Pick<Overview, 'anywhere' | 'states'>,
  room: number,
  first?: string,
): Note[] {
  const ways = [...anywhere.map((way): Line => ({ ...way, from: '(root)' })), ...listLines({ states })]
  return ways
    .filter(({ to }) => to === id)
    .map((way) => ({
      head: way.from === '(root)' ? 'from anywhere' : `from ${way.from}`,
      lines: wrapWayLabels(way, room),
      way,
      hasLine: way.main && way.from === first,
    }))
}

const measureRow = (boxes: readonly { width: number }[], gap: number): number =>
  boxes.reduce((sum, { width }) => sum + width, Math.max(0, boxes.length - 1) * gap)

const placeInRow = (boxes: readonly { width: number }[], x: number, gap: number): number[] =>
  boxes.map((_, index) => boxes.slice(0, index).reduce((sum, { width }) => sum + width + gap, x))

function drawRow(pieces: readonly Piece[], lines: readonly Line[], x: number, y: number) {
  const states = pieces.map(({ state }) => state)
  const findPair = (index: number): Line[] => listBetween(lines, states[index]?.id, states[index + 1]?.id)
  const far = lines.filter((line) => isFar(states, line))
  const needed = states.slice(1).map((_, index) => measureLevelHeight(findPair(index)))
  const height = Math.max(0, ...pieces.map((piece) => piece.height), ...needed)
  const starts = placeInRow(pieces, x, rowGap)
  const blocks = pieces.map((piece, index) => {
    const own = Math.max(piece.height, needed[index - 1] ?? 0, needed[index] ?? 0)
    return piece.place(starts[index] ?? 0, y, far.length > 0 ? height : own)
  })
  const findBlock = (id: string): Block | undefined => blocks.find((block) => block.id === id)
  return {
    blocks,
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
    const chips = regions.map((region) => ({ region, width: Math.ceil(measureText(region.key, 13)) + 24 }))
    const draw = (x: number, y: number): string[] => {
      const starts = placeInRow(chips, x, 8)
      return chips.flatMap(({ region, width }, index) => drawChip(region, starts[index] ?? 0, y, width))
    }
    return { width: measureRow(chips, 8), height: chipHeight, draw }
  }
  const lines = listLines(toOverview(chart, look, state.id))
  const colors = { fill: palette.areas[1], line: palette.line }
  const pieces = regions.map((region) => createPiece(region, { width: measureWidth(region, 150), colors }))
  const width = measureRow(pieces, rowGap)
  return {
    width,
    height: drawRow(pieces, lines, 0, 0).bottom,
    draw: (x, y, room) => drawRow(pieces, lines, x + Math.max(0, (room - width) / 2), y).svg,
  }
}

function stackChips(state: ChartState): Inside {
  const chips = state.states.length === 0 ? [] : listInnermostStates(state)
  return {
    width: Math.max(0, ...chips.map(({ key }) => measureText(key, chipSize) + 20)),
    height: Math.max(0, chips.length * chipStep - 5),
    draw: (x, y, width) => chips.flatMap((chip, index) => drawChip(chip, x, y + index * chipStep, width)),
  }
}

function drawChip(state: ChartState, x: number, y: number, width: number): string[] {
  return drawStateGroup(state, `state chip ${state.type}`, [
    `<rect x="${x}" y="${y}" width="${width}" height="${chipHeight}" rx="7" fill="${palette.card}" stroke="${palette.rule}" stroke-width="1"/>`,
    drawLabel(state.key, x + 10, y + 17.5, { size: chipSize, width: width - 16 }),
  ])
}

export interface Block {
  id: string
  x: number
  y: number
  width: number
  height: number
  svg: readonly string[]
}

interface Piece {
  state: ChartState
  width: number
  /** The height without the content. */
  head: number
  height: number
  place: (x: number, y: number, height?: number) => Block
}

function measureWidth(state: ChartState, least: number): number {
  const needed = Math.max(measureText(state.key, fontSizes.name, true), stackChips(state).width)
  return Math.ceil(Math.min(420, Math.max(least, needed + 2 * padding)))
}

interface PieceOptions {
  width: number
  colors: { fill: string; line: string }
  /** Shows the description in the box instead of only in the tooltip. */
  isDescribed?: boolean
  notes?: readonly Note[]
  /** Defaults to one chip per innermost state. */
  inside?: Inside
}

function createPiece(
  state: ChartState,
  { width, colors, isDescribed = false, notes = [], inside = stackChips(state) }: PieceOptions,
): Piece {
  const room = width - 2 * padding
  const description = isDescribed ? wrapWords(state.description, room, fontSizes.words) : []
  const notesHeight = notes.reduce((sum, { lines }) => sum + lines.length * wordStep + 20, 0)
  const gap = description.length + notes.length > 0 ? 6 : 0
  const head = headRoom + description.length * wordStep + notesHeight + gap
  const ownHeight = head + (inside.height > 0 ? 4 + inside.height + padding : 6)
  const place = (x: number, y: number, height = ownHeight): Block => {
    const left = x + padding
    let line = y + 22
    const parts = [drawLabel(state.key, left, line, { size: fontSizes.name, bold: true, width: room })]
    if (isDescribed) line += 3
    for (const words of description)
      parts.push(drawLabel(words, left, (line += wordStep), { color: palette.quiet, width: room }))
    for (const { head: note, lines, way, hasLine } of notes) {
      line += 3
      parts.push(
        hasLine ? '<g class="told">' : `<g class="told way" ${formatWay(way)}>`,
        drawLabel(note, left, (line += wordStep), { color: palette.quiet, width: room }),
        ...lines.map((word) => drawWayLabel(word, left, (line += wordStep), { width: room })),
        '</g>',
      )
    }
    const svg = drawStateGroup(state, `state ${state.type}`, [
      `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="10" fill="${colors.fill}" stroke="${colors.line}" stroke-width="1.4"/>`,
      ...parts,
      ...inside.draw(left, y + head + 4, room),
    ])
    return { id: state.id, x, y, width, height, svg }
  }
  return { state, width, head, height: ownHeight, place }
}

interface WayLabel {
  text: string
  ids: readonly string[]
}

function wrapWayLabels({ events, causes }: OverviewTransition, room: number): WayLabel[] {
  return events.flatMap((event, index) =>
    wrapWords(event, room, fontSizes.words).map((text) => ({ text, ids: causes[index] ?? [] })),
  )
}

function drawWayLabel({ text, ids }: WayLabel, x: number, y: number, options: LabelOptions): string {
  return `<g class="word" ${formatTransitions(ids)}>${drawLabel(text, x, y, options)}</g>`
}

type Point = readonly [x: number, y: number]

function drawLine(line: Line, words: readonly string[], ...points: Point[]): string[] {
  const { color, width, length, half } = line.main
    ? { color: palette.main, width: 3.2, length: 11, half: 6 }
    : { color: palette.line, width: 1.6, length: 9, half: 4.5 }
  const [end = [0, 0], before = [0, 0]] = [points.at(-1), points.at(-2)]
  const [dx, dy] = [Math.sign(end[0] - before[0]), Math.sign(end[1] - before[1])]
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
function drawLevelLines(left: Block, right: Block, lines: readonly Line[]): string[] {
  const [x1, x2] = [left.x + left.width, right.x]
  const room = x2 - x1 - 4
  const draw = (line: Line, from: number, to: number, y: number, wordsY: number): string[] => {
    const words = wrapWayLabels(line, room).map((word, index) =>
      drawWayLabel(word, (x1 + x2) / 2, wordsY + index * labelStep, { width: room + 8, anchor: 'middle' }),
    )
    return drawLine(line, words, [from, y], [to, y])
  }
  const there = lines.find(({ from }) => from === left.id)
  const back = lines.find(({ from }) => from === right.id)
  const thereY = left.y + 24 + (there ? wrapWayLabels(there, room).length * labelStep : 0)
  const backY = there ? thereY + 24 : left.y + 34
  return [
    ...(there ? draw(there, x1, x2, thereY, left.y + 18) : []),
    ...(back ? draw(back, x2, x1, backY, backY + 20) : []),
  ]
}

function measureLevelHeight(lines: readonly Line[]): number {
  const count = lines.reduce((sum, line) => sum + wrapWayLabels(line, rowGap - 4).length, 0)
  return 24 + count * labelStep + (lines.length > 1 ? 24 : 0) + 16
}

function drawLaneBelow(from: Block, to: Block, line: Line, y: number): string[] {
  const apart = from.x > to.x ? -8 : 8
  const [x1, x2] = [from.x + from.width / 2 + apart, to.x + to.width / 2 - apart]
  const label = { width: Math.abs(x1 - x2) - 24, anchor: 'middle' } as const
  const words = drawLabel(line.events.join(' · '), (x1 + x2) / 2, y - 6, label)
  return drawLine(line, [words], [x1, from.y + from.height], [x1, y], [x2, y], [x2, to.y + to.height])
}

/** Edges between a state and one below it: downward labels on the left, upward labels on the right. */
function drawUprightLines(
  above: Block,
  below: Block,
  lines: readonly Line[],
  { x, left, right }: { x: number; left: number; right: number },
): string[] {
  const [top, bottom] = [above.y + above.height, below.y]
  const down = lines.find(({ from }) => from === above.id)
  const up = lines.find(({ from }) => from === below.id)
  const apart = down && up ? 9 : 0
  const draw = (line: Line, lineX: number, from: number, to: number, isLeft: boolean): string[] => {
    const width = isLeft ? left : right
    const words = wrapWayLabels(line, width)
    const start = (top + bottom) / 2 - ((words.length - 1) * labelStep) / 2 + 4
    const wordsX = isLeft ? x - apart - 9 : x + apart + 9
    const options: LabelOptions = { width, ...(isLeft && { anchor: 'end' }) }
    const drawn = words.map((word, index) => drawWayLabel(word, wordsX, start + index * labelStep, options))
    return drawLine(line, drawn, [lineX, from], [lineX, to])
  }
  return [
    ...(down ? draw(down, x - apart, top, bottom, up !== undefined) : []),
    ...(up ? draw(up, x + apart, bottom, top, false) : []),
  ]
}
