import { measureText } from '../diagram/svg-parts.js'
import { createTimeAxis } from './client/timeline-axis.js'
import { listSeenBars, placeBars } from './client/timeline-layout.js'
import {
  accent,
  cardHeight as height,
  drawChartArea,
  drawDocument,
  drawNumbers,
  drawTitle,
  drawVerdict,
  drawVisited,
  drawWords,
  ink,
  left,
  placeChart,
  plotWidth,
  quiet,
  round,
  width,
} from './picture-parts.js'
import type { Bar, ExportedSession, SessionView } from './protocol.js'

/** A session as one picture (SVG): what was asked, the chart with the way of the run, its times, the verdict and what it cost. */
export function drawCard(data: ExportedSession): string {
  const { session: view } = data
  const title = drawTitle(view)
  const said = drawVerdict(view)
  const numbersTop = title.bottom + said.height + 62
  const chart = placeChart(drawVisited(data), height)
  return drawDocument(title.name, height, [
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    ...title.parts,
    ...said.drawAt(title.bottom),
    ...drawNumbers(view, numbersTop),
    ...drawWaterfall(view, numbersTop + 56),
    drawChartArea(height, '#f6f8fa'),
    // Its lines are lit: it has only what the run has taken.
    chart.wrap(chart.inner.replaceAll('#848d97', accent)),
    drawWords('statewright', left, height - 26, { size: 15, colour: quiet }),
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
