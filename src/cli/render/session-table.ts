import type { SessionInList, ListedState } from '../session-row.js'
import { formatAgo } from './format-time.js'
import type { Paint, Style } from '../../core/format/paint.js'
import { styleOf } from '../../core/format/summary.js'
import { count, money, shorten } from '../../core/format/words.js'

const columnHeads = ['session', 'state', 'when', 'messages', 'tokens', 'cost', 'title']
const numeric: ReadonlySet<string> = new Set(['messages', 'tokens', 'cost'])

/** The least that is left for titles, however narrow the terminal. */
const minTitleWidth = 20

/** A list of sessions for people: one line each, under a line of heads. */
export function formatSessionTable(
  rows: readonly SessionInList[],
  { now, width, paint }: { now: number; width: number; paint: Paint },
): string {
  const cells = rows.map((row) => [
    shorten(row.id, 200),
    row.state,
    formatAgo(row.updatedAt, now),
    count(row.messages),
    count(row.totalTokens),
    row.cost === null ? '?' : money(row.cost),
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
    return [
      id,
      paint(chooseStyle(row.state), state),
      ...rest,
      shorten(row.name ?? row.title, titleWidth),
    ].join('  ')
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
      return state === state.toUpperCase() ? styleOf(state as Parameters<typeof styleOf>[0]) : 'red'
  }
}
