import { formatDuration } from '../core/format/format-words.js'
import { formatCost } from './costs.js'
import { cutToWidth, escapeXml, measureText, wrapPieces } from '../diagram/svg-parts.js'
import { formatShort, getSessionTone, type Tone } from './format.js'
import { createTimeAxis, findFirstPlaces, listSeenBars, placeLanes } from './timeline-layout.js'
import type { ExportedSession, SessionView } from './protocol.js'
import { drawParts, type PlacedChart, placeVisitedChart } from './visited-chart.js'

export function drawCard(data: ExportedSession): string {
  const { session: view } = data
  const title = drawTitle(view)
  const verdict = drawVerdict(view)
  const numbersTop = title.bottom + verdict.height + 62
  const chart = placeChart(placeVisitedChart(data.chart, listVisited(data)), cardHeight)
  return drawDocument(title.name, cardHeight, [
    `<rect width="${width}" height="${cardHeight}" fill="#ffffff"/>`,
    ...title.parts,
    ...verdict.drawAt(title.bottom),
    ...drawNumbers(view, numbersTop),
    ...drawWaterfall(view, numbersTop + 56),
    drawChartArea(cardHeight, '#f6f8fa'),
    // All visited lines are lit.
    chart.wrap(chart.inner.replaceAll('#848d97', accent)),
    drawWords('statewright', left, cardHeight - 26, { size: 15, colour: quiet }),
  ])
}

const lanes = {
  model: ['Model', '#a9c7ee'],
  tools: ['Tools', '#a5d3b3'],
  children: ['Sub-agents', '#d6bcf5'],
  waits: ['Waits', '#e3d3f7'],
} as const

const laneGap = 10
const [lowestLine, highestLine] = [8, 30]

function drawWaterfall(view: SessionView, from: number): string[] {
  const axis = createTimeAxis(view.rows, view.gaps)
  const drawn = placeLanes(view, Object.keys(lanes) as (keyof typeof lanes)[])
  const lines = drawn.reduce((sum, lane) => sum + lane.lines, 0)
  const room = (cardHeight - 64 - from - drawn.length * laneGap) / Math.max(1, lines)
  const step = Math.floor(Math.min(highestLine, Math.max(lowestLine, room)))
  const high = step - 3
  const parts: string[] = []
  let top = from
  for (const { lane, placed, lines: count } of drawn) {
    const [name, colour] = lanes[lane]
    parts.push(drawWords(name, left, top + high / 2 + 5, { size: 13, colour: quiet }))
    for (const { bar, line, left: start, right: end } of listSeenBars(placed, axis)) {
      const x = left + 86 + start * (plotWidth - 86)
      const long = Math.max(2.5, (end - start) * (plotWidth - 86))
      const y = top + line * step
      const fill = bar.status === 'failed' ? '#f2a7ab' : colour
      parts.push(
        `<rect x="${round(x)}" y="${y}" width="${round(long)}" height="${high}" rx="3" fill="${fill}"/>`,
        ...(long > measureText(bar.label, 11.5) + 8 && high > 12
          ? [drawWords(bar.label, x + 5, y + high / 2 + 4, { size: 11.5, colour: ink })]
          : []),
      )
    }
    top += count * step + laneGap
  }
  return parts
}

/** Pixels. The card has the size of a link preview. */
export const [width, cardHeight] = [1200, 630]
export const [left, chartLeft] = [44, 772]
export const plotWidth = chartLeft - left - 36
const font = 'font-family="Helvetica,Arial,sans-serif"'
/** With the styles of `diagram/theme.ts`, these follow the viewer's theme, except for the color of waits. */
export const ink = '#1f2328'
export const quiet = '#59636e'
export const accent = '#0969da'

const toneColours: Record<Tone, string> = {
  good: '#1a7f37',
  limit: '#9a6700',
  bad: '#cf222e',
  wait: '#8250df',
  off: '#9a6700',
  busy: '#9a6700',
}

export function drawTitle({ session }: SessionView) {
  // Measured at a larger size, because the text is bold.
  const title = wrapText(session.title || session.name || session.id, plotWidth, 36, 2)
  return {
    name: escapeXml(title.join(' ')),
    parts: title.map((line, i) => drawWords(line, left, 76 + i * 42, { size: 34, isBold: true })),
    bottom: 96 + (title.length - 1) * 42,
  }
}

export function drawVerdict({ session, verdict }: SessionView) {
  const answer = verdict.answer === '' ? '' : ` “${verdict.answer}”`
  const lines = wrapText(verdict.text + answer, plotWidth - 20, 19, 4)
  const height = lines.length * 27 + 12
  return {
    height,
    drawAt: (top: number): string[] => [
      `<rect x="${left}" y="${top}" width="5" height="${height}" fill="${toneColours[getSessionTone(session)]}"/>`,
      ...lines.map((line, i) => drawWords(line, left + 20, top + 26 + i * 27, { size: 19, colour: quiet })),
    ],
  }
}

export function drawNumbers({ rows, verdict }: SessionView, top: number): string[] {
  const [first, last] = [rows[0], rows.at(-1)]
  const steps = new Set(rows.filter(({ step }) => step > 0).map(({ run, step }) => `${run} ${step}`)).size
  const failed = rows.flatMap(({ calls }) => calls).filter(({ status }) => status !== 'ok').length
  const numbers: [value: string, name: string][] = [
    [formatDuration((last?.at ?? 0) - (first?.at ?? 0)), 'total'],
    [String(steps), steps === 1 ? 'step' : 'steps'],
    [formatShort(last?.tokens ?? 0), 'tokens'],
    [formatCost(verdict.cost), 'cost'],
  ]
  if (failed > 0) numbers.push([String(failed), `${failed === 1 ? 'call' : 'calls'} failed`])
  return numbers.flatMap(([value, name], i) => [
    drawWords(value, left + i * 132, top, { size: 24, isBold: true }),
    drawWords(name, left + i * 132, top + 22, { size: 14, colour: quiet }),
  ])
}

export const listVisited = ({ session, chart }: ExportedSession): Set<string> =>
  new Set(findFirstPlaces(session.rows, chart).keys())

export function placeChart(chart: PlacedChart, height: number) {
  const { width: w, height: h } = chart
  // Pictures do not show titles on hover.
  const inner = drawParts(chart).replaceAll(/<title>[^<]*<\/title>/g, '')
  const [roomX, roomY] = [width - chartLeft - 32, height - 72]
  const scale = Math.min(1, roomX / w, roomY / h)
  const x = chartLeft + (roomX - w * scale) / 2
  const y = 36 + (roomY - h * scale) / 2
  const place = `translate(${round(x)} ${round(y)}) scale(${round(scale)})`
  return { inner, wrap: (content: string): string => `<g transform="${place}">${content}</g>` }
}

export const drawChartArea = (height: number, fill: string, line = 'none'): string =>
  `<rect x="${chartLeft - 12}" y="24" width="${width - chartLeft - 8}" height="${height - 48}" rx="14" fill="${fill}" stroke="${line}"/>`

/** `name` must be escaped. */
export const drawDocument = (name: string, height: number, parts: readonly string[]): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${name}">\n${parts.join('\n')}\n</svg>\n`

const dropUnseen = (text: string): string => text.replaceAll(/[\p{Cf}\p{Cc}]/gu, '')

export const round = (value: number): number => Math.round(value * 1_000) / 1_000

/** `room` is in pixels. The last line ends in an ellipsis if text was cut. */
export function wrapText(text: string, room: number, size: number, most: number): string[] {
  const words = text.split(/\s+/).flatMap((word) => cutWord(dropUnseen(word), room, size))
  const lines = wrapPieces(words, ' ', room, size)
  if (lines.length <= most) return lines.length === 0 ? [''] : lines
  return [...lines.slice(0, most - 1), cutToWidth(lines.slice(most - 1, most + 1).join(' '), room, size)]
}

function cutWord(word: string, room: number, size: number): string[] {
  const pieces: string[] = []
  let used = room
  for (const letter of word) {
    const width = measureText(letter, size)
    used += width
    if (used > room) {
      pieces.push('')
      used = width
    }
    pieces[pieces.length - 1] += letter
  }
  return pieces
}

export function drawWords(
  text: string,
  x: number,
  y: number,
  { size, colour = ink, isBold = false }: { size: number; colour?: string; isBold?: boolean },
): string {
  return `<text x="${round(x)}" y="${round(y)}" fill="${colour}" ${font} font-size="${size}"${isBold ? ' font-weight="bold"' : ''}>${escapeXml(dropUnseen(text))}</text>`
}
