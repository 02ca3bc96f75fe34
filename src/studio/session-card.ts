import { cutToWidth, measureText, wrapPieces } from '../diagram/measure-text.js'
import { escapeXml } from '../diagram/state-card.js'
import { createTimeAxis } from './client/timeline-axis.js'
import { formatDuration, formatMoney, formatShort, getTone } from './client/format.js'
import { listSeenBars, listStates, placeBars } from './client/timeline-layout.js'
import type { Bar, ExportedSession, SessionView } from './protocol.js'
import { drawVisitedChart } from './visited-chart.js'

/** Pixels: as wide and high as links are previewed. */
const [width, height] = [1200, 630]
const [left, chartLeft] = [44, 772]
const plotWidth = chartLeft - left - 36
const font = 'font-family="Helvetica,Arial,sans-serif"'
const ink = '#1f2328'
const quiet = '#59636e'
const accent = '#0969da'

/** A session as one picture (SVG): what was asked, the chart with the way of the run, its times, the verdict and what it cost. */
export function drawCard({ session: view, chart }: ExportedSession): string {
  const { session, verdict, rows } = view
  const known = new Map(chart.transitions.map((one) => [one.id, one]))
  const visited = new Set(rows.flatMap((row) => [...row.taken, ...listStates(row, known)]))
  const tone = session.standing === 'damaged' ? 'bad' : getTone(verdict.state)
  // Bold letters are as wide as larger ones.
  const title = wrapText(session.title || session.name || session.id, plotWidth, 36, 2)
  const answer = verdict.answer === '' ? '' : ` “${verdict.answer}”`
  const said = wrapText(verdict.text + answer, plotWidth - 20, 19, 4)
  const saidTop = 96 + (title.length - 1) * 42
  const numbersTop = saidTop + said.length * 27 + 12 + 62
  const parts = [
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    ...title.map((line, i) => drawWords(line, left, 76 + i * 42, { size: 34, isBold: true })),
    `<rect x="${left}" y="${saidTop}" width="5" height="${said.length * 27 + 12}" fill="${toneColours[tone]}"/>`,
    ...said.map((line, i) => drawWords(line, left + 20, saidTop + 26 + i * 27, { size: 19, colour: quiet })),
    ...drawNumbers(view, numbersTop),
    ...drawWaterfall(view, numbersTop + 56),
    ...drawChart(drawVisitedChart(chart, visited)),
    drawWords('statewright', left, height - 26, { size: 15, colour: quiet }),
  ]
  const name = escapeXml(title.join(' '))
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${name}">\n${parts.join('\n')}\n</svg>\n`
}

/** Without signs that cannot be seen, such as those that turn the direction. */
const dropUnseen = (text: string): string => text.replaceAll(/[\p{Cf}\p{Cc}]/gu, '')

const toneColours: Record<ReturnType<typeof getTone>, string> = {
  good: '#1a7f37',
  limit: '#9a6700',
  bad: '#cf222e',
  wait: '#8250df',
  off: '#9a6700',
  busy: '#9a6700',
}

function drawNumbers({ rows, verdict }: SessionView, top: number): string[] {
  const [first, last] = [rows[0], rows.at(-1)]
  const steps = new Set(rows.filter(({ step }) => step > 0).map(({ run, step }) => `${run} ${step}`)).size
  const failed = rows.flatMap(({ calls }) => calls).filter(({ status }) => status !== 'ok').length
  const numbers: [value: string, name: string][] = [
    [formatDuration((last?.at ?? 0) - (first?.at ?? 0)), 'in all'],
    [String(steps), steps === 1 ? 'step' : 'steps'],
    [formatShort(last?.tokens ?? 0), 'tokens'],
    [`${verdict.isCostWhole ? '' : '≥ '}${formatMoney(verdict.cost)}`, 'cost'],
  ]
  if (failed > 0) numbers.push([String(failed), `${failed === 1 ? 'call' : 'calls'} without success`])
  return numbers.flatMap(([value, name], i) => [
    drawWords(value, left + i * 132, top, { size: 24, isBold: true }),
    drawWords(name, left + i * 132, top + 22, { size: 14, colour: quiet }),
  ])
}

const lanes: Partial<Record<Bar['lane'], readonly [name: string, colour: string]>> = {
  model: ['Model', '#a9c7ee'],
  tools: ['Tools', '#a5d3b3'],
  children: ['Sub-agents', '#d6bcf5'],
  waits: ['Waits', '#e3d3f7'],
}

const laneGap = 10
/** Pixels of a line of bars: as many as there is room for. */
const [lowestLine, highestLine] = [8, 30]

function drawWaterfall({ rows, bars, gaps }: SessionView, from: number): string[] {
  const axis = createTimeAxis(rows, gaps)
  const places = new Map(rows.map(({ seq }, place) => [seq, place]))
  const drawn = Object.entries(lanes).flatMap(([lane, [name, colour]]) => {
    const own = bars.filter((bar) => bar.lane === lane)
    if (own.length === 0) return []
    const placed = placeBars(own, (seq) => places.get(seq) ?? 0, rows.length)
    return [{ name, colour, placed, lines: Math.max(...placed.map(({ line }) => line)) + 1 }]
  })
  const lines = drawn.reduce((sum, lane) => sum + lane.lines, 0)
  const room = (height - 64 - from - drawn.length * laneGap) / Math.max(1, lines)
  const step = Math.floor(Math.min(highestLine, Math.max(lowestLine, room)))
  const high = step - 3
  const parts: string[] = []
  let top = from
  for (const lane of drawn) {
    parts.push(drawWords(lane.name, left, top + high / 2 + 5, { size: 13, colour: quiet }))
    for (const { bar, line, left: start, right: end } of listSeenBars(lane.placed, axis)) {
      const x = left + 86 + start * (plotWidth - 86)
      const long = Math.max(2.5, (end - start) * (plotWidth - 86))
      const y = top + line * step
      const fill = bar.status === 'failed' ? '#f2a7ab' : lane.colour
      parts.push(
        `<rect x="${round(x)}" y="${y}" width="${round(long)}" height="${high}" rx="3" fill="${fill}"/>`,
        ...(long > measureText(bar.label, 11.5) + 8 && high > 12
          ? [drawWords(bar.label, x + 5, y + high / 2 + 4, { size: 11.5, colour: ink })]
          : []),
      )
    }
    top += lane.lines * step + laneGap
  }
  return parts
}

/** The chart beside, as large as there is room, and its lines lit: it has only what the run has taken. */
function drawChart(svg: string): string[] {
  const [, w = '1', h = '1'] = /viewBox="0 0 ([\d.]+) ([\d.]+)"/.exec(svg) ?? []
  const inner = svg
    .replace(/^<svg[^>]*>/, '')
    .replace(/<\/svg>\s*$/, '')
    .replace(/<style>[^]*?<\/style>/, '')
    .replaceAll('#848d97', accent)
  const [roomX, roomY] = [width - chartLeft - 32, height - 72]
  const scale = Math.min(1, roomX / Number(w), roomY / Number(h))
  const x = chartLeft + (roomX - Number(w) * scale) / 2
  return [
    `<rect x="${chartLeft - 12}" y="24" width="${width - chartLeft - 8}" height="${height - 48}" rx="14" fill="#f6f8fa"/>`,
    `<g transform="translate(${round(x)} ${round(36 + (roomY - Number(h) * scale) / 2)}) scale(${round(scale)})">${inner}</g>`,
  ]
}

const round = (value: number): number => Math.round(value * 1_000) / 1_000

/** Lines of at most so many pixels; the last one ends in an ellipsis where there is more. */
function wrapText(text: string, room: number, size: number, most: number): string[] {
  const words = text.split(/\s+/).flatMap((word) => cutWord(dropUnseen(word), room, size))
  const lines = wrapPieces(words, ' ', room, size)
  if (lines.length <= most) return lines.length === 0 ? [''] : lines
  return [...lines.slice(0, most - 1), cutToWidth(lines.slice(most - 1, most + 1).join(' '), room, size)]
}

/** A word in pieces that each have room in a line. */
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

function drawWords(
  text: string,
  x: number,
  y: number,
  { size, colour = ink, isBold = false }: { size: number; colour?: string; isBold?: boolean },
): string {
  return `<text x="${round(x)}" y="${round(y)}" fill="${colour}" ${font} font-size="${size}"${isBold ? ' font-weight="bold"' : ''}>${escapeXml(dropUnseen(text))}</text>`
}
