import {
  wrapWords,
  fontSizes,
  drawLabel,
  type LabelOptions,
  formatTransitions,
  formatWay,
} from './svg-parts.js'
import type { OverviewTransition } from './overview.js'
import { palette } from './look.js'

const thin = 1.6
const thick = 3.2
export const labelStep = 16

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

export interface WayLabel {
  text: string
  ids: readonly string[]
}

export function wrapWayLabels(
  { events, causes }: Pick<OverviewTransition, 'events' | 'causes'>,
  room: number,
): WayLabel[] {
  return events.flatMap((event, index) =>
    wrapWords(event, room, fontSizes.words).map((text) => ({ text, ids: causes[index] ?? [] })),
  )
}

export function drawWayLabel({ text, ids }: WayLabel, x: number, y: number, options: LabelOptions): string {
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
export function drawLevelLines(left: Box, right: Box, lines: readonly Line[]): string[] {
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

export function measureLevelHeight(lines: readonly Line[], room: number): number {
  const count = lines.reduce((sum, line) => sum + wrapWayLabels(line, room - 4).length, 0)
  return 24 + count * labelStep + (lines.length > 1 ? 24 : 0) + 16
}

export function drawLaneBelow(from: Box, to: Box, line: Line, y: number): string[] {
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
export function drawUprightLines(
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
