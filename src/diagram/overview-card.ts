import {
  measureText,
  wrapPieces,
  wrapWords,
  fontSizes,
  drawLabel,
  lineHeight,
  drawPath,
  drawStateGroup,
  formatWay,
} from './svg-parts.js'
import type { OverviewTransition } from './overview.js'
import { palette } from './look.js'

const padding = 12

export interface Row {
  to: string
  isMain: boolean
  color: string
  y: number
}

export interface OverviewCard {
  id: string
  x: number
  y: number
  width: number
  height: number
  rows: readonly Row[]
  svg: readonly string[]
}

export interface CardContent {
  id: string
  key: string
  description: string
  inside: readonly string[]
  ways: readonly (OverviewTransition & { name: string; side: 'left' | 'right'; color: string })[]
  isState: boolean
  frame: string
}

/** Edges to other states leave on the left; edges to final states leave on the right, next to the target's name. */
export function drawOverviewCard(
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
    const nameWidth = Math.min(room, measureText(`${name} →`, fontSizes.words, true) + 14)
    svg.push(
      `<g class="row" ${formatWay({ from: id, to, causes })}>`,
      side === 'left'
        ? drawLabel(`← ${name}`, x + padding, start + 5, bold)
        : drawLabel(`${name} →`, x + width - padding, start + 5, { ...bold, anchor: 'end' }),
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

/** The width at which no text is truncated, within the given bounds. */
export function measureCardWidth(contents: readonly CardContent[], least: number, most: number): number {
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
