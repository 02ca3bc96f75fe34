import type { ChartState } from './chart.js'
import { type Box, type Line, type WayLabel, drawWayLabel } from './flow-lines.js'
import { measureText, wrapWords, fontSizes, drawLabel, drawStateGroup, formatWay } from './svg-parts.js'
import { palette } from './look.js'

/** A state drawn as a box. */
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
/** Between the border of a box and what is in it. */
export const padding = 14

/** The innermost states inside, which is where a machine can be; a state without others is one itself. */
export function listInnermostStates(state: ChartState): ChartState[] {
  if (state.type === 'history') return []
  return state.states.length === 0 ? [state] : state.states.flatMap(listInnermostStates)
}

/** What is said of a state in its box. */
export interface BlockContent {
  state: ChartState
  /** Whether its purpose is told, and not only on pointing at it. */
  isDescribed: boolean
  colors: BlockColors
  /** What leads there and has no words at a line, below the purpose. */
  notes?: readonly Note[]
}

export interface Note {
  /** Where from. */
  head: string
  lines: readonly WayLabel[]
  way: Line
  /** Whether there is a line, too, which stands for the way. */
  hasLine: boolean
}

/** The least width in which no chip or name of the state is cut. */
export function measureBlockWidth({ state }: BlockContent, least: number): number {
  const chips = state.states.length === 0 ? [] : listInnermostStates(state)
  const needed = [
    measureText(state.key, fontSizes.name, true),
    ...chips.map(({ key }) => measureText(key, chipSize) + 20),
  ]
  return Math.ceil(Math.min(420, Math.max(least, ...needed.map((width) => width + 2 * padding))))
}

/** Where the chips of a state begin below its top. */
export function measureHeadHeight({ state, isDescribed, notes = [] }: BlockContent, width: number): number {
  const room = width - 2 * padding
  const words = isDescribed ? wrapWords(state.description, room, fontSizes.words).length : 0
  const told = measureNotesHeight(notes)
  return headRoom + words * wordStep + told + (words + notes.length > 0 ? 6 : 0)
}

/** A box with the name of a state, its purpose, and a chip for each state that is innermost in it. */
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

/** What leads to a state, told instead of drawn: below `y`. */
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

/** An innermost state: where the token lies. */
export function drawChip(
  state: ChartState,
  { x, y, width }: { x: number; y: number; width: number },
): string[] {
  return drawStateGroup(state, `state chip ${state.type}`, [
    `<rect x="${x}" y="${y}" width="${width}" height="${chipHeight}" rx="7" fill="${palette.card}" stroke="${palette.rule}" stroke-width="1"/>`,
    drawLabel(state.key, x + 10, y + 17.5, { size: chipSize, width: width - 16 }),
  ])
}
