import type { SessionInList, ListedState } from '../session-row.js'
import { formatAgo } from './format-time.js'
import type { Paint, Style } from '../../core/format/paint.js'
import { getStateStyle } from '../../core/format/run-summary.js'
import { formatCount, formatMoney, shorten } from '../../core/format/format-words.js'

const columnHeads = ['session', 'state', 'when', 'messages', 'tokens', 'cost', 'title']
const numeric: ReadonlySet<string> = new Set(['messages', 'tokens', 'cost'])

/** The least width of titles, even on narrow terminals. */
const minTitleWidth = 20

/** A table of sessions: a header line, then one line each. */
export function formatSessionTable(
  rows: readonly SessionInList[],
  { now, width, paint }: { now: number; width: number; paint: Paint },
): string {
  const cells = rows.map((row) => [
    shorten(row.id, 200),
    row.state,
    formatAgo(row.updatedAt, now),
    formatCount(row.messages),
    formatCount(row.totalTokens),
    row.cost === null ? '?' : formatMoney(row.cost),
  ])
  const widths = columnHeads
    .slice(0, -1)
    .map((head, i) => Math.max(head.length, ...cells.map((line) => (line[i] ?? '').length)))
  const titleWidth = Math.max(minTitleWidth, width - widths.reduce((sum, each) => sum + each + 2, 0))
  const aligned = (line: readonly string[]): string[] =>
    line.map((cell, i) =>
      numeric.has(columnHeads[i] ?? '') ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0),
    )
  const lines = rows.map((row, i) => {
    const [id = '', state = '', ...rest] = aligned(cells[i] ?? [])
    return [id, paint(chooseStyle(row.state), state), ...rest, shorten(row.title, titleWidth)].join('  ')
  })
  return [paint('dim', [...aligned(columnHeads.slice(0, -1)), 'title'].join('  ')), ...lines, ''].join('\n')
}

function chooseStyle(state: ListedState): Style {
  switch (state) {
    case 'interrupted':
      return 'yellow'
    case 'new':
      return 'dim'
    default:
      return state === state.toUpperCase()
        ? getStateStyle(state as Parameters<typeof getStateStyle>[0])
        : 'red'
  }
}
