import type { ChartState } from './chart.js'
import { type Box, type Line, type WayLabel, drawWayLabel } from './flow-lines.js'
import { measureText, wrapWords, fontSizes, drawLabel, drawStateGroup, formatWay } from './svg-parts.js'
import { palette } from './look.js'

export interface Block extends Box {
  svg: readonly string[]
}

export interface BlockColors {
  fill: string
  line: string
}

const chipSize = 13
const chipHeight = 26
const chipStep = 31
const headRoom = 30
const wordStep = 17
export const padding = 14

/** The innermost descendants, which are the states a machine can be in. An atomic state returns itself. */
export function listInnermostStates(state: ChartState): ChartState[] {
  if (state.type === 'history') return []
  return state.states.length === 0 ? [state] : state.states.flatMap(listInnermostStates)
}

export interface BlockContent {
  state: ChartState
  /** Shows the description in the box instead of only in the tooltip. */
  isDescribed: boolean
  colors: BlockColors
  /** Incoming transitions listed as text below the description. */
  notes?: readonly Note[]
}

export interface Note {
  head: string
  lines: readonly WayLabel[]
  way: Line
  /** Whether an edge is drawn in addition to the text. */
  hasLine: boolean
}

/** The smallest width that fits the name and every chip. */
export function measureBlockWidth({ state }: BlockContent, least: number): number {
  const chips = state.states.length === 0 ? [] : listInnermostStates(state)
  const needed = [
    measureText(state.key, fontSizes.name, true),
    ...chips.map(({ key }) => measureText(key, chipSize) + 20),
  ]
  return Math.ceil(Math.min(420, Math.max(least, ...needed.map((width) => width + 2 * padding))))
}

export function measureHeadHeight({ state, isDescribed, notes = [] }: BlockContent, width: number): number {
  const room = width - 2 * padding
  const words = isDescribed ? wrapWords(state.description, room, fontSizes.words).length : 0
  const told = measureNotesHeight(notes)
  return headRoom + words * wordStep + told + (words + notes.length > 0 ? 6 : 0)
}

/** Draws a box with the state's name, description, and one chip per innermost state. */
export function drawBlock(
  content: BlockContent,
  { x, y, width, height }: { x: number; y: number; width: number; height?: number },
): Block {
  const { state, isDescribed, colors, notes = [] } = content
  const room = width - 2 * padding
  const chips = state.states.length === 0 ? [] : listInnermostStates(state)
  const head = measureHeadHeight(content, width)
  const needed = head + (chips.length > 0 ? 4 + chips.length * chipStep + padding - 5 : 6)
  const full = height ?? needed
  let line = y + 22
  const parts = [drawLabel(state.key, x + padding, line, { size: fontSizes.name, bold: true, width: room })]
  const say = (words: string, color: string): void => {
    parts.push(drawLabel(words, x + padding, (line += wordStep), { color, width: room }))
  }
  if (isDescribed) {
    line += 3
    for (const words of wrapWords(state.description, room, fontSizes.words)) say(words, palette.quiet)
  }
  parts.push(...drawNotes(notes, { x: x + padding, y: line, room }))
  return {
    id: state.id,
    x,
    y,
    width,
    height: full,
    svg: drawStateGroup(state, `state ${state.type}`, [
      `<rect x="${x}" y="${y}" width="${width}" height="${full}" rx="10" fill="${colors.fill}" stroke="${colors.line}" stroke-width="1.4"/>`,
      ...parts,
      ...chips.flatMap((chip, index) =>
        drawChip(chip, { x: x + padding, y: y + head + 4 + index * chipStep, width: room }),
      ),
    ]),
  }
}

export function drawNotes(
  notes: readonly Note[],
  { x, y, room }: { x: number; y: number; room: number },
): string[] {
  let line = y
  return notes.flatMap(({ head, lines, way, hasLine }) => {
    line += 3
    return [
      hasLine ? '<g class="told">' : `<g class="told way" ${formatWay(way)}>`,
      drawLabel(head, x, (line += wordStep), { color: palette.quiet, width: room }),
      ...lines.map((word) => drawWayLabel(word, x, (line += wordStep), { width: room })),
      '</g>',
    ]
  })
}

export function measureNotesHeight(notes: readonly Note[]): number {
  return notes.reduce((sum, { lines }) => sum + lines.length * wordStep + 20, 0)
}

/** A chip for an innermost state. */
export function drawChip(
  state: ChartState,
  { x, y, width }: { x: number; y: number; width: number },
): string[] {
  return drawStateGroup(state, `state chip ${state.type}`, [
    `<rect x="${x}" y="${y}" width="${width}" height="${chipHeight}" rx="7" fill="${palette.card}" stroke="${palette.rule}" stroke-width="1"/>`,
    drawLabel(state.key, x + 10, y + 17.5, { size: chipSize, width: width - 16 }),
  ])
}
