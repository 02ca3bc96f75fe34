import {
  escapeXml,
  measureText,
  wrapWords,
  fontSizes,
  drawInitialMarker,
  initialMarkerHeight,
  drawLabel,
  lineHeight,
  drawDot,
  drawPath,
  wrapPieces,
  drawStateGroup,
  formatWay,
} from './svg-parts.js'
import { type Chart, type ChartState, flattenStates } from './chart.js'
import { type Block, isFlow, layOutFlow } from './flow-layout.js'
import { agentLook, type Look, palette, themeStyle, toneColors } from './look.js'
import { toOverview, type OverviewTransition } from './overview.js'

const laneWidth = 16
const laneMargin = 22

const thin = 1.6
const thick = 3.4

/** Edges with the same target share a vertical lane. Edges meet only at dots; crossings are interrupted. */
function drawLanes(
  targets: readonly OverviewCard[],
  sources: readonly OverviewCard[],
  side: 'left' | 'right',
): string[] {
  const [first] = sources
  if (!first) return []
  const edge = side === 'left' ? first.x : first.x + first.width
  const lanes = targets.map((target, index) => {
    const rows = sources.flatMap((card) => card.rows.filter(({ to }) => to === target.id && to !== card.id))
    const main = rows.filter(({ isMain }) => isMain)
    const plain = rows.find(({ isMain }) => !isMain)
    const shown = main[0] ?? plain
    if (!shown) return { upright: [], across: [] }
    const lane = edge + (laneMargin + index * laneWidth) * (side === 'left' ? -1 : 1)
    const end = target.y + 16
    const heights = [end, ...rows.map(({ y }) => y)]
    const [top, bottom] = [Math.min(...heights), Math.max(...heights)]
    const last: Row = { ...shown, y: end }
    const joins = [...rows, last].filter(({ y }) => y !== top && y !== bottom)
    return {
      upright: [
        drawPath(`M${lane},${top}V${bottom}`, plain?.color ?? last.color, thin),
        ...main.map(({ y, color }) => drawPath(`M${lane},${y}V${end}`, color, thick)),
      ],
      across: [
        ...rows.flatMap((row) => drawLevelLine(edge, lane, row)),
        ...drawLevelLine(lane, target.x - 8, last),
        `<path d="M${target.x},${end}l-11,-5.5v11z" fill="${last.color}"/>`,
        ...joins.map(({ y, color, isMain }) => drawDot(lane, y, color, isMain ? 4.5 : 3.2)),
      ],
    }
  })
  return [...lanes.flatMap(({ upright }) => upright), ...lanes.flatMap(({ across }) => across)]
}

function drawLevelLine(from: number, to: number, { y, color, isMain }: Row): string[] {
  const [left, right] = [Math.min(from, to) + 5, Math.max(from, to) - 5]
  const gap = right > left ? [drawPath(`M${left},${y}H${right}`, palette.page, 8)] : []
  return [...gap, drawPath(`M${from},${y}H${to}`, color, isMain ? thick : thin)]
}

const margin = 20
const stateGap = 34
const endGap = 20

/** A flow, or states on the left, and final states or outside targets on the right, connected by lanes. */
export function drawOverview(chart: Chart, look: Look = agentLook, of?: string): string {
  if (of === undefined && isFlow(chart)) return drawFlowSvg(chart, look)
  const { shown, states, ends, anywhere } = createContents(chart, look, of)
  const contents = [...anywhere, ...states]
  const reached = new Set(
    contents.flatMap(({ id, ways }) => ways.map(({ to }) => to).filter((to) => to !== id)),
  )
  const listReached = <Each extends { id: string }>(all: readonly Each[]): Each[] =>
    all.filter(({ id }) => reached.has(id))
  const measureLanes = (all: readonly CardContent[]): number => {
    const { length } = listReached(all)
    return length === 0 ? 0 : laneMargin + length * laneWidth
  }
  const left = margin + measureLanes(states)
  const width = measureCardWidth(contents, 470, 900)
  const right = left + width + measureLanes(ends) + 16
  const endWidth = measureCardWidth(ends, 240, 500)
  const full = (ends.length > 0 ? right + endWidth : left + width) + margin

  const heading = wrapWords(shown.description, full - 2 * margin, fontSizes.words)
  const isMarkedFirst = contents[0] !== undefined && shown.initial.includes(contents[0].id)
  const top =
    margin + fontSizes.title + 12 + heading.length * lineHeight + (isMarkedFirst ? initialMarkerHeight : 0)
  const cards = stackCards(contents, { x: left, y: top, width }, stateGap)
  const height = getBottom(cards) - top
  const endPlace = { x: right, y: top, width: endWidth }
  const needed = getBottom(stackCards(ends, endPlace, 0)) - top
  // Final states are spread over the full height.
  const between = Math.max(endGap, Math.floor((height - needed) / Math.max(1, ends.length - 1)))
  const endCards = stackCards(ends, endPlace, between)
  const all = [...cards, ...endCards]
  const bottom = Math.max(getBottom(cards), getBottom(endCards), top) + margin
  return drawPage(of ?? chart.id, full, bottom, [
    ...heading.map((words, index) =>
      drawLabel(words, margin, margin + 20 + (index + 1) * lineHeight, { color: palette.quiet, width: full }),
    ),
    ...drawLanes(listReached(cards), cards, 'left'),
    ...drawLanes(listReached(endCards), cards, 'right'),
    ...all.flatMap(({ svg }) => svg),
    ...all.filter(({ id }) => shown.initial.includes(id)).map(({ x, y }) => drawInitialMarker(x + 60, y)),
  ])
}

function drawFlowSvg(chart: Chart, look: Look): string {
  const { width, height, svg } = layOutFlow(chart, look, margin + fontSizes.title + 16)
  const x = margin + measureText(chart.id, fontSizes.title, true) + 14
  const options = { color: palette.quiet, width: width - margin - x }
  return drawPage(chart.id, width, height, [
    drawLabel(chart.root.description, x, margin + 18, options),
    ...svg,
  ])
}

function drawPage(title: string, width: number, height: number, parts: readonly string[]): string {
  return [
    `<svg role="img" aria-label="${escapeXml(`${title}, overview`)}" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" xmlns="http://www.w3.org/2000/svg">`,
    themeStyle,
    `<rect width="${width}" height="${height}" rx="8" fill="${palette.page}"/>`,
    drawLabel(title, margin, margin + 18, { size: fontSizes.title, bold: true, width: width - 2 * margin }),
    ...parts,
    '</svg>',
    '',
  ].join('\n')
}

function createContents(chart: Chart, look: Look, of: string | undefined) {
  const { states: tops, outside, anywhere } = toOverview(chart, look, of)
  const shown = flattenStates(chart.root).find(({ id }) => id === of) ?? chart.root
  const isEnd = ({ type }: ChartState): boolean => type === 'final'
  const byId = new Map([...tops.map(({ state }) => state), ...outside].map((state) => [state.id, state]))
  const described = (ways: readonly OverviewTransition[]): CardContent['ways'] =>
    ways
      .map((way) => {
        const target = byId.get(way.to)
        const tone = target && isEnd(target) ? getTone(target, look).line : palette.quiet
        const color = way.main ? palette.main : tone
        const isRight = target && (isEnd(target) || outside.includes(target))
        const side: 'left' | 'right' = isRight ? 'right' : 'left'
        return { ...way, name: target?.key ?? way.to, side, color }
      })
      .sort((a, b) => Number(a.side === 'right') - Number(b.side === 'right'))
  const ofTop = ({ state, transitions: ways }: (typeof tops)[number]): CardContent => {
    const inside = state.states.filter(({ type }) => type !== 'history').map(({ key }) => key)
    const { fill, line } = state.type === 'final' ? getTone(state, look) : stateColors
    return {
      ...state,
      isState: true,
      key: state.type === 'history' ? `H ${state.key}` : state.key,
      inside: state.type === 'parallel' ? ['at once:', ...inside] : inside,
      ways: described(ways),
      frame: `fill="${fill}" stroke="${line}" stroke-width="1.8"`,
    }
  }
  const root: CardContent = {
    id: shown.id,
    isState: false,
    key: shown === chart.root ? 'from anywhere' : 'from any state in here',
    description: '',
    inside: [],
    ways: described(anywhere),
    frame: `fill="${palette.page}" stroke="${palette.line}" stroke-width="1.4" stroke-dasharray="5 4"`,
  }
  return {
    shown,
    anywhere: anywhere.length > 0 ? [root] : [],
    states: tops.filter(({ state }) => !isEnd(state)).map(ofTop),
    ends: [
      ...tops.filter(({ state }) => isEnd(state)),
      ...outside.map((state) => ({ state: { ...state, states: [] }, transitions: [] })),
    ].map(ofTop),
  }
}

const stateColors = { fill: palette.areas[0], line: palette.line }

function getTone({ id }: ChartState, look: Look): { fill: string; line: string } {
  return toneColors[look.tones[id] ?? 'neutral']
}

function stackCards(
  contents: readonly CardContent[],
  { x, y, width }: { x: number; y: number; width: number },
  between: number,
): OverviewCard[] {
  return contents.map((content) => {
    const card = drawOverviewCard(content, { x, y, width })
    y += card.height + between
    return card
  })
}

function getBottom(cards: readonly OverviewCard[]): number {
  const last = cards.at(-1)
  return last ? last.y + last.height : 0
}

const padding = 12

interface Row {
  to: string
  isMain: boolean
  color: string
  y: number
}

interface OverviewCard extends Block {
  rows: readonly Row[]
}

interface CardContent {
  id: string
  key: string
  description: string
  inside: readonly string[]
  ways: readonly (OverviewTransition & { name: string; side: 'left' | 'right'; color: string })[]
  isState: boolean
  frame: string
}

/** Edges to other states leave on the left; edges to final states leave on the right, next to the target's name. */
function drawOverviewCard(
  { id, key, description, inside, ways, frame, isState }: CardContent,
  place: { x: number; y: number; width: number },
): OverviewCard {
  const { x, width } = place
  const room = width - 2 * padding
  let y = place.y + padding + 10
  const svg = [drawLabel(key, x + padding, y, { size: fontSizes.name, bold: true, width: room })]
  const say = (lines: readonly string[], color: string): void => {
    for (const words of lines)
      svg.push(drawLabel(words, x + padding, (y += lineHeight), { color, width: room }))
  }
  y += 3
  say(wrapWords(description, room, fontSizes.words), palette.quiet)
  if (inside.length > 0) y += 5
  say(wrapPieces(inside, ' · ', room, fontSizes.words), palette.text)
  if (ways.length > 0) {
    y += 11
    svg.push(drawPath(`M${x},${y}H${x + width}`, palette.line, 0.8))
  }
  const rows = ways.map(({ to, name, events, main, side, color, causes }): Row => {
    const start = y + lineHeight - 3
    const bold = { color, bold: true, width: room }
    const label = to === id ? 'stays' : `${name} →`
    const nameWidth = Math.min(room, measureText(label, fontSizes.words, true) + 14)
    svg.push(
      `<g class="row" ${formatWay({ from: id, to, causes })}>`,
      side === 'left'
        ? drawLabel(to === id ? label : `← ${name}`, x + padding, start + 5, bold)
        : drawLabel(label, x + width - padding, start + 5, { ...bold, anchor: 'end' }),
    )
    const wordsAt = side === 'left' ? x + padding + nameWidth : x + padding
    const wordsRoom = room - nameWidth
    y += 2
    for (const words of wrapPieces(events, ' · ', wordsRoom, fontSizes.words))
      svg.push(drawLabel(words, wordsAt, (y += lineHeight), { width: wordsRoom }))
    svg.push('</g>')
    y += 3
    return { to, isMain: main, color, y: start }
  })
  const height = y + padding - place.y
  const border = `<rect x="${x}" y="${place.y}" width="${width}" height="${height}" rx="9" ${frame}/>`
  return {
    id,
    ...place,
    height,
    rows,
    svg: isState ? drawStateGroup({ id, description }, 'state', [border, ...svg]) : [border, ...svg],
  }
}

function measureCardWidth(contents: readonly CardContent[], least: number, most: number): number {
  const needed = contents.flatMap(({ key, inside, ways }) => [
    measureText(key, fontSizes.name, true),
    ...inside.map((word) => measureText(word, fontSizes.words)),
    ...ways.flatMap(({ name, events }) =>
      events.map(
        (event) =>
          measureText(`${name} →`, fontSizes.words, true) + 14 + measureText(`${event} ·`, fontSizes.words),
      ),
    ),
  ])
  return Math.ceil(Math.min(most, Math.max(least, ...needed.map((width) => width + 2 * padding))))
}
