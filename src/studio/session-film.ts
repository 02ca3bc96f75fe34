import { StatewrightError } from '../core/base/errors.js'
import { formatCount, formatDuration, formatMoney } from '../core/format/format-words.js'
import { themeStyle } from '../diagram/look.js'
import { cutToWidth } from '../diagram/svg-parts.js'
import { formatShort, formatStatePath } from './format.js'
import { FilmReel, lightChart, type Scene } from './film-reel.js'
import { unpackMoment } from './pack-moments.js'
import {
  accent,
  drawChartArea,
  drawDocument,
  drawNumbers,
  drawTitle,
  drawVerdict,
  drawWords,
  left,
  listVisited,
  placeChart,
  plotWidth,
  quiet,
  width,
  wrapText,
} from './session-card.js'
import type { ExportedSession, RecordRow, ShownMessage } from './protocol.js'
import { placeVisitedChart } from './visited-chart.js'

/** Pixels. The height follows the chart within bounds. */
const [lowest, highest] = [680, 920]
const [card, rule] = ['#fefefe', '#c6cdd5']

/** @throws {StatewrightError} `no_film` for a session without a run or with a damaged log */
export function drawFilm(data: ExportedSession): string {
  const { session: view, moments } = data
  const { id, problem } = view.session
  if (problem !== null) throw new StatewrightError('no_film', `A film needs a readable log. ${problem}`, id)
  const scenes = listScenes(view.rows)
  if (scenes.length === 0) {
    const text = 'This session has no run to show. Start a run, then export it.'
    throw new StatewrightError('no_film', text, id)
  }
  const picture = placeVisitedChart(data.chart, listVisited(data))
  const height = Math.round(Math.min(highest, Math.max(lowest, picture.height * 0.86 + 72)))
  const chart = placeChart(picture, height)
  const reel = new FilmReel(scenes)
  const title = drawTitle(view)
  const verdict = drawVerdict(view)
  const numbersTop = height - 84
  const saidTop = numbersTop - 40 - verdict.height
  const top = title.bottom + 84
  const panelHeight = saidTop - 16 - top
  const begin = view.rows[0]?.at ?? 0
  const { transitions } = data.chart
  const end = [...verdict.drawAt(saidTop), ...drawNumbers(view, numbersTop)].join('')
  const parts = [
    `<rect width="${width}" height="${height}" rx="8" fill="#ffffff"/>`,
    ...title.parts,
    ...reel.showEach((scene) => drawScene(scene, begin, title.bottom)),
    `<rect x="${left}" y="${top}" width="${plotWidth}" height="${panelHeight}" rx="10" fill="${card}" stroke="${rule}"/>`,
    ...reel.showEach(
      ({ row }) => drawTranscript(unpackMoment(moments, row.seq)?.transcript ?? [], top, panelHeight),
      true,
    ),
    drawChartArea(height, card, rule),
    chart.wrap(chart.inner + lightChart(reel, picture, transitions).join('')),
    ...reel.showEach((scene) => (scene === scenes.at(-1) ? end : ''), true),
    drawWords('statewright', left, height - 22, { size: 15, colour: quiet }),
  ]
  return drawDocument(title.name, height, [themeStyle, reel.style, ...parts])
}

function drawScene({ row, count, skipped }: Scene, begin: number, top: number): string {
  const facts = [
    `+${formatDuration(Math.max(0, row.at - begin))}`,
    ...(row.step > 0 ? [`step ${row.step}`] : []),
    `${formatShort(row.tokens)} tokens`,
    ...(row.cost === null ? [] : [formatMoney(row.cost)]),
    ...(skipped > 0 ? [`${formatCount(skipped, 'record')} skipped`] : []),
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

const lineHeight = 19
const textSize = 14
/** Maximum characters to measure in a text and in a line. */
const [mostText, mostOfLine] = [2_000, 300]
const room = plotWidth - 28

function drawTranscript(transcript: readonly ShownMessage[], top: number, height: number): string {
  const most = Math.max(1, Math.floor((height - 26) / lineHeight))
  const lines: Line[] = []
  for (const message of transcript.toReversed()) {
    lines.unshift(...listLines(message))
    if (lines.length >= most) break
  }
  return lines
    .slice(-most)
    .map(({ text, indent = 0, ...look }, at) =>
      drawWords(text, left + 14 + indent, top + 27 + at * lineHeight, { size: textSize, ...look }),
    )
    .join('')
}

interface Line {
  text: string
  colour?: string
  isBold?: boolean
  indent?: number
}

function listLines({ role, text, calls }: ShownMessage): Line[] {
  const shownText = text.slice(-mostText)
  const cut = (words: string, indent: number): string =>
    cutToWidth(words.slice(0, mostOfLine).replaceAll(/\s+/g, ' '), room - indent, textSize)
  return [
    ...(shownText.trim() === '' ? [] : wrapText(shownText, room, textSize * 1.06, Infinity)).map((line) => ({
      text: line,
      isBold: role === 'user',
    })),
    ...calls.flatMap(({ name, arguments: args, result, status }): Line[] => [
      { text: cut(`${name} ${args === '{}' ? '' : args}`, 0), colour: accent },
      ...(result !== null
        ? [{ text: cut(result, indent), colour: quiet, indent }]
        : status === 'waiting for approval'
          ? [{ text: 'waiting for approval', colour: '#9a6700', indent }]
          : []),
    ]),
  ]
}

const indent = 16

const nowhere = { to: [], transitionIds: [] }

/** Longer films would be tedious and too large. */
const mostScenes = 48
/** In seconds. A scene lasts as long as the run stayed in its state, within the bounds. */
const [shortest, longest, longestFilm] = [0.6, 2, 60]
/** Longest repeated block, in records. A turn of the loop has about ten, plus one per call. */
const longestBlock = 40
const fewestTimes = 3

/** Repeated blocks appear once, and the middle of a long session is omitted. */
export function listScenes(rows: readonly RecordRow[]): Scene[] {
  // Rows before the first run have no state, and snapshots do not change it.
  const shown = rows.filter(
    ({ type, from, to }) => to.length > 0 && (type !== 'snapshot' || from.join() !== to.join()),
  )
  const each = shown.map((row, place): Scene => {
    const stay = Math.max(0, ((shown[place + 1] ?? row).at - row.at) / 1_000)
    return { row, count: 1, skipped: 0, passed: nowhere, seconds: stay }
  })
  const scenes = cutMiddle(mergeBlocks(mergeBlocks(each, 1), longestBlock))
  const most = Math.min(longest, longestFilm / scenes.length)
  return scenes.map((scene) => ({ ...scene, seconds: Math.min(most, Math.max(shortest, scene.seconds)) }))
}

function mergeBlocks(scenes: readonly Scene[], most: number): Scene[] {
  const names = new Map<string, number>()
  const kinds = scenes.map(({ row: { label, to, transitionIds } }) => {
    const name = JSON.stringify([label, to, transitionIds])
    const kind = names.get(name) ?? names.size
    names.set(name, kind)
    return kind
  })
  const merged: Scene[] = []
  let at = 0
  while (at < scenes.length) {
    const { length, times } = findBlock(kinds, at, most)
    for (let part = 0; part < length; part += 1) {
      // Uses the last repeat, so that times and counts continue from there.
      const repeats = scenes.slice(at + part, at + length * times).filter((_, i) => i % length === 0)
      const scene = repeats.at(-1)
      if (scene) merged.push({ ...scene, count: repeats.reduce((sum, { count }) => sum + count, 0) })
    }
    at += length * times
  }
  return merged
}

/** The repeated block at this position that covers the most scenes. */
function findBlock(kinds: readonly number[], at: number, most: number): { length: number; times: number } {
  let best = { length: 1, times: 1 }
  for (let length = 1; length <= most; length += 1) {
    let same = 0
    while (at + same + length < kinds.length && kinds[at + same] === kinds[at + same + length]) same += 1
    const times = Math.floor(same / length) + 1
    const isBlock = length === 1 ? times > 1 : times >= fewestTimes
    if (isBlock && length * times > best.length * best.times) best = { length, times }
  }
  return best
}

/** The scene after the cut counts the skipped records. */
function cutMiddle(scenes: readonly Scene[]): Scene[] {
  if (scenes.length <= mostScenes) return [...scenes]
  const half = mostScenes / 2
  const cut = scenes.slice(half, -half)
  const skipped = cut.reduce((sum, { count }) => sum + count, 0)
  const passed = {
    to: [...new Set(cut.flatMap(({ row }) => row.to))],
    transitionIds: [...new Set(cut.flatMap(({ row }) => row.transitionIds))],
  }
  return [
    ...scenes.slice(0, half),
    ...scenes.slice(-half).map((scene, i) => (i === 0 ? { ...scene, skipped, passed } : scene)),
  ]
}
