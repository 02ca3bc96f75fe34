import { formatCount, formatDuration, formatMoney } from '../core/format/format-words.js'
import { cutToWidth } from '../diagram/svg-parts.js'
import { themeStyle } from '../diagram/look.js'
import { StatewrightError } from '../core/base/errors.js'
import { formatShort, formatStatePath } from './client/format.js'
import { lightChart } from './film-chart.js'
import { FilmReel } from './film-reel.js'
import { listScenes, type Scene } from './film-scenes.js'
import { unpackMoment } from './pack-moments.js'
import {
  accent,
  drawChartArea,
  drawDocument,
  drawNumbers,
  drawTitle,
  drawVerdict,
  drawVisited,
  drawWords,
  left,
  measurePicture,
  placeChart,
  plotWidth,
  quiet,
  width,
  wrapText,
} from './picture-parts.js'
import type { ExportedSession, ShownMessage } from './protocol.js'

/** Pixels: as high as the chart needs, within bounds. */
const [lowest, highest] = [680, 920]
const [card, rule] = ['#fefefe', '#c6cdd5']

/**
 * A session as a film (one SVG, which moves by CSS): what was asked, the chart with the way of the run as it took it, its
 * transcript, and at the end the verdict and what it cost.
 *
 * @throws {StatewrightError} `no_film` for a session in which no run has begun, and for one whose log is damaged
 */
export function drawFilm(data: ExportedSession): string {
  const { session: view, moments } = data
  const { id, problem } = view.session
  if (problem !== null) throw new StatewrightError('no_film', `A film needs a whole log. ${problem}`, id)
  const scenes = listScenes(view.rows)
  if (scenes.length === 0) {
    const text = 'This session has no run yet, and a film shows one: begin a run in it, then export it.'
    throw new StatewrightError('no_film', text, id)
  }
  const picture = drawVisited(data)
  const height = Math.round(Math.min(highest, Math.max(lowest, measurePicture(picture)[1] * 0.86 + 72)))
  const chart = placeChart(picture, height)
  const reel = new FilmReel(scenes)
  const title = drawTitle(view)
  const said = drawVerdict(view)
  const numbersTop = height - 84
  const saidTop = numbersTop - 40 - said.height
  const top = title.bottom + 84
  const panel: Panel = { x: left, y: top, width: plotWidth, height: saidTop - 16 - top }
  const begin = view.rows[0]?.at ?? 0
  const { transitions } = data.chart
  const parts = [
    `<rect width="${width}" height="${height}" rx="8" fill="#ffffff"/>`,
    ...title.parts,
    ...reel.showEach((scene) => drawScene(scene, begin, title.bottom)),
    drawPanel(panel),
    ...reel.showEach(
      ({ row }) => drawTranscript(unpackMoment(moments, row.seq)?.transcript ?? [], panel),
      true,
    ),
    drawChartArea(height, card, rule),
    chart.wrap(chart.inner + lightChart(reel, picture, { transitions, hasTrail: true }).join('')),
    reel.showFrom(
      scenes.length - 1,
      [...said.drawAt(saidTop), ...drawNumbers(view, numbersTop)].join(''),
      true,
    ),
    drawWords('statewright', left, height - 22, { size: 15, colour: quiet }),
  ]
  return drawDocument(title.name, height, [themeStyle, reel.style, ...parts])
}

/** What happened, the state to which it led, and how far the session was by then. */
function drawScene({ row, count, skipped }: Scene, begin: number, top: number): string {
  const facts = [
    `+${formatDuration(Math.max(0, row.at - begin))}`,
    ...(row.step > 0 ? [`step ${row.step}`] : []),
    `${formatShort(row.tokens)} tokens`,
    ...(row.cost === null ? [] : [formatMoney(row.cost)]),
    ...(skipped > 0 ? [`after ${formatCount(skipped, 'record')} that the film leaves out`] : []),
  ]
  const label = `${row.label}${count > 1 ? ` ×${formatCount(count)}` : ''}`
  return [
    drawWords(cutToWidth(label, plotWidth, 18, true), left, top + 20, { size: 18, isBold: true }),
    drawWords(cutToWidth(formatStatePath(row.to), plotWidth, 16), left, top + 44, {
      size: 16,
      colour: accent,
    }),
    drawWords(facts.join(' · '), left, top + 66, { size: 14, colour: quiet }),
  ].join('')
}

/** Where the transcript is shown. */
export interface Panel {
  x: number
  y: number
  width: number
  height: number
}

export const drawPanel = ({ x, y, width, height }: Panel): string =>
  `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="10" fill="${card}" stroke="${rule}"/>`

const lineHeight = 19
const textSize = 14
/** Characters of a text, and of one line, that are looked at: more have no room. */
const [mostText, mostOfLine] = [2_000, 300]

/** The end of a transcript, as much as there is room for. */
export function drawTranscript(transcript: readonly ShownMessage[], { x, y, width, height }: Panel): string {
  const most = Math.max(1, Math.floor((height - 26) / lineHeight))
  const room = width - 28
  const lines: Line[] = []
  for (const message of transcript.toReversed()) {
    lines.unshift(...listLines(message, room))
    if (lines.length >= most) break
  }
  return lines
    .slice(-most)
    .map(({ text, colour, isBold = false, indent = 0 }, at) =>
      drawWords(text, x + 14 + indent, y + 27 + at * lineHeight, {
        size: textSize,
        isBold,
        ...(colour !== undefined && { colour }),
      }),
    )
    .join('')
}

interface Line {
  text: string
  colour?: string
  isBold?: boolean
  indent?: number
}

function listLines({ role, text, calls }: ShownMessage, room: number): Line[] {
  const said = text.slice(-mostText)
  const cut = (words: string, indent: number): string =>
    cutToWidth(words.slice(0, mostOfLine).replaceAll(/\s+/g, ' '), room - indent, textSize)
  return [
    ...(said.trim() === ''
      ? []
      : wrapText(said, room, textSize * 1.06, Infinity).map((line) => ({
          text: line,
          isBold: role === 'user',
        }))),
    ...calls.flatMap(({ name, arguments: given, result, status }): Line[] => [
      { text: cut(`${name} ${given === '{}' ? '' : given}`, 0), colour: accent },
      ...(result !== null
        ? [{ text: cut(result, indent), colour: quiet, indent }]
        : status === 'waits for approval'
          ? [{ text: 'waits for approval', colour: '#9a6700', indent }]
          : []),
    ]),
  ]
}

const indent = 16
