import { palette, toneColors } from '../diagram/look.js'
import { escapeXml, formatTransitions } from '../diagram/svg-parts.js'
import type { ChartState, ChartTransition, ChartView } from './protocol.js'

/**
 * At text size for a narrow pane: each outer state lists its inner states and the outer states that it leads to.
 * Uses the same classes and names as the overview. `visited` null draws all of it.
 */
export function drawVisitedChart(chart: ChartView, visited: ReadonlySet<string> | null): string {
  const placed = placeVisitedChart(chart, visited)
  const [style = ''] = styleElement.exec(chart.sheets[0]?.svg ?? '') ?? []
  const title = escapeXml(`${chart.id}, ${visited ? 'visited by this run' : 'the whole chart'}`)
  return `<svg role="img" aria-label="${title}" viewBox="0 0 ${placed.width} ${placed.height}" data-width="${placed.width}" xmlns="http://www.w3.org/2000/svg">${style}${drawParts(placed)}</svg>`
}

export const drawParts = ({ boxes, rows }: PlacedChart): string =>
  [...boxes.map(drawBox), ...rows.map(drawWay)].join('')

export type PlacedChart = ReturnType<typeof placeVisitedChart>

export function placeVisitedChart(chart: ChartView, visited: ReadonlySet<string> | null) {
  const states = chart.states.filter(({ path, type }) => (visited?.has(path) ?? true) && type !== 'history')
  const transitions = chart.transitions.filter(({ id }) => visited?.has(id) ?? true)
  const tops: Pick<ChartState, 'path' | 'type'>[] = states.filter(({ path }) => !path.includes('.'))
  // Transitions from any state, such as a cancellation, are drawn above the last end state.
  if (transitions.some(({ source, target }) => source === anywhere && target))
    tops.splice(-1, 0, { path: anywhere, type: 'atomic' })
  const boxes: Box[] = []
  let height = 12
  const paths = states.map(({ path }) => path)
  for (const top of tops) {
    const box = placeBox({ ...top, y: height }, paths, transitions)
    boxes.push(box)
    height += box.height + boxGap
  }
  const byPath = new Map(boxes.map((box) => [box.path, box]))
  // Lines to the same state share a lane.
  const lanes = new Map<string, number>()
  const rows = boxes.flatMap((box) => box.rows)
  for (const row of rows) row.arrow = placeArrow(row, byPath.get(row.target), lanes)
  return { boxes, rows, width: boxWidth + edge * 2 + 14 + lanes.size * laneStep, height }
}

/** The machine itself. Its transitions apply in every state. */
const anywhere = '(root)'

const styleElement = /<style>[^]*?<\/style>/

const edge = 10
const boxWidth = 410
const boxGap = 18
const padding = 10
const chipHeight = 22
const chipGap = 5
const rowHeight = 20
const headHeight = 28
const laneStep = 11
const columnGap = 20

export interface Row {
  ids: string[]
  words: string[]
  target: string
  y: number
  /** The line to the target. Undefined if the target is not drawn. */
  arrow?: Arrow | undefined
}

export interface Arrow {
  ids: string[]
  d: string
  head: string
}

export interface Part {
  path: string
  name: string
  x: number
  y: number
  width: number
  height: number
  kind: 'chip' | 'column'
}

export interface Box extends Omit<Part, 'name' | 'kind'> {
  kind: 'box'
  type: string
  parts: Part[]
  arrows: Arrow[]
  rows: Row[]
}

function placeBox(
  { path, type, y }: Pick<Box, 'path' | 'type' | 'y'>,
  states: readonly string[],
  transitions: readonly ChartTransition[],
): Box {
  const inner = states.filter((one) => one.startsWith(`${path}.`))
  const children = inner.filter((one) => one.split('.').length === path.split('.').length + 1)
  const isCompound = children.some((one) => inner.some((other) => other.startsWith(`${one}.`)))
  const parts: Part[] = []
  const arrows: Box['arrows'] = []
  const room = boxWidth - 2 * padding
  let bottom = y + headHeight
  if (isCompound) {
    const width = (room - columnGap * (children.length - 1)) / children.length
    const columns = children.map((child, index): Part => {
      const leaves = inner.filter((one) => one.startsWith(`${child}.`) && !hasInner(one, inner))
      const x = edge + padding + index * (width + columnGap)
      const top = bottom
      for (const [at, leaf] of leaves.entries())
        parts.push(createChip(leaf, child, x + 5, top + 24 + at * (chipHeight + chipGap), width - 10))
      const height = 24 + leaves.length * (chipHeight + chipGap) + 3
      return { path: child, name: child.slice(path.length + 1), x, y: top, width, height, kind: 'column' }
    })
    parts.unshift(...columns)
    const lowest = Math.max(...columns.map((column) => column.y + column.height))
    arrows.push(...drawArrows(columns, transitions, lowest))
    const hasBack = arrows.some(({ d }) => d.includes('V'))
    bottom = lowest + (hasBack ? 20 : 8)
  } else if (children.length > 0) {
    const perRow = 2
    const width = (room - chipGap * (perRow - 1)) / perRow
    for (const [at, child] of children.entries()) {
      const x = edge + padding + (at % perRow) * (width + chipGap)
      parts.push(createChip(child, path, x, bottom + Math.floor(at / perRow) * (chipHeight + chipGap), width))
    }
    bottom += Math.ceil(children.length / perRow) * (chipHeight + chipGap) + 4
  }
  const rows: Row[] = []
  for (const way of groupWays(path, transitions)) {
    rows.push({ ...way, y: bottom + rowHeight / 2 })
    bottom += rowHeight
  }
  return { path, type, kind: 'box', x: edge, y, width: boxWidth, height: bottom - y + 4, parts, arrows, rows }
}

const createChip = (path: string, above: string, x: number, y: number, width: number): Part => {
  return { path, name: path.slice(above.length + 1), x, y, width, height: chipHeight, kind: 'chip' }
}

const hasInner = (path: string, states: readonly string[]): boolean =>
  states.some((one) => one.startsWith(`${path}.`))

const topOf = (path: string): string => path.split('.')[0] ?? path

function groupWays(path: string, transitions: readonly ChartTransition[]): Iterable<Omit<Row, 'y'>> {
  const groups = new Map<string, Omit<Row, 'y'>>()
  for (const { id, source, target: to, words } of transitions) {
    if (to === null || topOf(source) !== path || topOf(to) === path) continue
    const target = topOf(to)
    const group = groups.get(target)
    if (!group) groups.set(target, { ids: [id], words: [words], target })
    else {
      group.ids.push(id)
      if (!group.words.includes(words)) group.words.push(words)
    }
  }
  return groups.values()
}

function drawArrows(
  columns: readonly Part[],
  transitions: readonly ChartTransition[],
  bottom: number,
): Box['arrows'] {
  const columnOf = (path: string): number =>
    columns.findIndex((column) => path === column.path || path.startsWith(`${column.path}.`))
  const groups = new Map<string, string[]>()
  for (const { id, source, target } of transitions) {
    const [from, to] = [columnOf(source), columnOf(target ?? '')]
    if (from === -1 || to === -1 || from === to) continue
    groups.set(`${from} ${to}`, [...(groups.get(`${from} ${to}`) ?? []), id])
  }
  let level = 0
  return [...groups].flatMap(([key, ids]) => {
    const [from = 0, to = 0] = key.split(' ').map(Number)
    const [one, other] = [columns[from], columns[to]]
    if (!one || !other) return []
    if (to === from + 1) {
      const y = one.y + 13
      const [x1, x2] = [one.x + one.width, other.x]
      return [{ ids, d: `M${x1},${y}L${x2 - 7},${y}`, head: `M${x2},${y}l-8,-4v8z` }]
    }
    level += 1
    const y = bottom + 4 + level * 5
    const [x1, x2] = [one.x + one.width / 2 + level * 8, other.x + other.width / 2 - level * 8]
    const end = other.y + other.height
    return [{ ids, d: `M${x1},${one.y + one.height}V${y}H${x2}V${end + 7}`, head: `M${x2},${end}l-4,8h8z` }]
  })
}

const font = 'font-family="Helvetica,Arial,sans-serif"'

function drawBox(box: Box): string {
  const [fill, line] = getColors(box)
  const kind = box.type === 'final' ? 'final' : box.parts.length > 0 ? 'compound' : 'atomic'
  const y = box.y
  const isState = box.path !== anywhere
  const name = isState ? escapeXml(box.path) : 'From any state'
  const head = `<g${isState ? ` class="state ${kind}" data-state="${name}"` : ''}><rect x="${edge}" y="${y}" width="${boxWidth}" height="${box.height}" rx="8" fill="${fill}" stroke="${line}" stroke-width="1.4"/><text x="${edge + padding}" y="${y + 19}" fill="${palette.text}" ${font} font-size="13.5" font-weight="bold">${name}</text></g>`
  const parts = box.parts.map((part) => {
    const { path, name, x, y: top, width, height } = part
    return part.kind === 'column'
      ? `<g class="state compound" data-state="${escapeXml(path)}"><rect x="${x}" y="${top}" width="${width}" height="${height}" rx="6" fill="${palette.areas[1]}" stroke="${palette.rule}"/><text x="${x + 6}" y="${top + 16}" fill="${palette.text}" ${font} font-size="12.5" font-weight="bold">${escapeXml(name)}</text></g>`
      : `<g class="state chip atomic" data-state="${escapeXml(path)}"><rect x="${x}" y="${top}" width="${width}" height="${height}" rx="5" fill="${palette.card}" stroke="${palette.rule}"/>${drawChipName(part, palette.text)}</g>`
  })
  return [head, ...parts, ...box.arrows.map((arrow) => drawArrow(arrow))].join('')
}

/** `look` follows the color, and can make the name bold. */
export const drawChipName = ({ name, x, y }: Part, color: string, look = ''): string =>
  `<text x="${x + 6}" y="${y + 15}" fill="${color}"${look} ${font} font-size="12">${escapeXml(name)}</text>`

function getColors({ path, type }: Box): [fill: string, line: string] {
  if (type !== 'final') return [palette.areas[0], palette.line]
  if (path === 'CANCELLED') return [toneColors.neutral.fill, palette.line]
  const isError = path === 'ERROR' || path === 'BLOCKED'
  const { fill, line } = toneColors[path === 'COMPLETED' ? 'success' : isError ? 'error' : 'limit']
  return [fill, line]
}

/** The number of characters that fit into a box. */
const mostOfRow = 62

/** The first two conditions if they fit, or else the first one. The arrow's title contains the others. */
function formatConditions({ words, target }: Row): string {
  const show = (count: number, most = Infinity): string => {
    const shown = words.slice(0, count).join(', ')
    const end = `${words.length > count ? ` +${words.length - count}` : ''} → ${target}`
    const room = most - end.length
    return `${shown.length > room ? `${shown.slice(0, room - 1)}…` : shown}${end}`
  }
  const two = show(2)
  return two.length > mostOfRow ? show(1, mostOfRow) : two
}

function placeArrow(
  { ids, target, y }: Row,
  box: Box | undefined,
  lanes: Map<string, number>,
): Arrow | undefined {
  if (!box) return undefined
  const at = lanes.get(target) ?? lanes.size
  lanes.set(target, at)
  const lane = edge + boxWidth + 14 + at * laneStep
  const end = box.y + 14 + (at % 3) * 5
  const x = edge + boxWidth
  return { ids, d: `M${x - 6},${y}H${lane}V${end}H${x + 7}`, head: `M${x},${end}l8,-4v8z` }
}

export const drawWords = (row: Row, color: string): string =>
  `<text x="${edge + padding}" y="${row.y + 4}" fill="${color}" ${font} font-size="12">${escapeXml(formatConditions(row))}</text>`

function drawWay(row: Row): string {
  const title = `<title>${escapeXml(`${row.words.join('\n')}\n→ ${row.target}`)}</title>`
  const words = `<g class="${row.arrow ? '' : 'told '}word" ${formatTransitions(row.ids)}>${title}${drawWords(row, palette.quiet)}</g>`
  return row.arrow ? drawArrow(row.arrow, words) : words
}

const drawArrow = ({ ids, d, head }: Arrow, words = ''): string =>
  `<g class="way" ${formatTransitions(ids)}><path class="line" d="${d}" fill="none" stroke="${palette.line}" stroke-width="1.6"/><path class="head" d="${head}" fill="${palette.line}"/>${words}</g>`
