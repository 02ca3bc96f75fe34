import type { OverviewCard, Row } from './overview-card.js'
import { palette } from './theme.js'
import { drawDot, drawPath } from './svg-parts.js'

/** Pixels from one lane to the next. */
export const laneWidth = 16
/** From the cards to the first lane, and from the last one on. */
export const laneMargin = 22

const thin = 1.6
const thick = 3.4

/**
 * The lines of one side of the cards. All that lead to one state share an upright lane; each starts at its row and
 * joins the lane, and from the lane an arrow leads into the card. Lines meet at dots only: what one of them passes over
 * is interrupted.
 */
export function drawLanes(
  targets: readonly OverviewCard[],
  sources: readonly OverviewCard[],
  side: 'left' | 'right',
): string[] {
  const all = targets.map((target, index) => drawLane(target, index, sources, side))
  return [...all.flatMap(({ upright }) => upright), ...all.flatMap(({ across }) => across)]
}

function drawLane(
  target: OverviewCard,
  index: number,
  sources: readonly OverviewCard[],
  side: 'left' | 'right',
): { upright: string[]; across: string[] } {
  const rows = sources.flatMap((card) => card.rows.filter(({ to }) => to === target.id))
  const [first] = sources
  if (!first || rows.length === 0) return { upright: [], across: [] }
  const edge = side === 'left' ? first.x : first.x + first.width
  const lane = edge + (laneMargin + index * laneWidth) * (side === 'left' ? -1 : 1)
  const end = target.y + 16
  const heights = [end, ...rows.map(({ y }) => y)]
  const [top, bottom] = [Math.min(...heights), Math.max(...heights)]
  const main = rows.filter(({ isMain }) => isMain)
  const [plain] = rows.filter(({ isMain }) => !isMain)
  const last: Row = { ...(main[0] ?? plain ?? rows[0]), y: end } as Row
  const isBend = (y: number): boolean => y === top || y === bottom
  const joins = [...rows, last].filter(({ y }) => !isBend(y))
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
}

/** A level line, and before it the gap in what it passes over. */
function drawLevelLine(from: number, to: number, { y, color, isMain }: Row): string[] {
  const [left, right] = [Math.min(from, to) + 5, Math.max(from, to) - 5]
  const gap = right > left ? [drawPath(`M${left},${y}H${right}`, palette.page, 8)] : []
  return [...gap, drawPath(`M${from},${y}H${to}`, color, isMain ? thick : thin)]
}
