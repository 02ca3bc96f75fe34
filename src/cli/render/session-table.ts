import type { SessionInList, ListedState } from '../session-row.js'
import { ago } from './ago.js'
import type { Paint, Style } from '../../core/format/paint.js'
import { styleOf } from '../../core/format/summary.js'
import { count, money, shorten } from '../../core/format/words.js'

const heads = ['session', 'state', 'when', 'messages', 'tokens', 'cost', 'title']
const numeric: ReadonlySet<string> = new Set(['messages', 'tokens', 'cost'])

/** The least that is left for titles, however narrow the terminal. */
const leastTitle = 20

/** A list of sessions for people: one line each, under a line of heads. */
export function sessionTable(
  rows: readonly SessionInList[],
  { now, width, paint }: { now: number; width: number; paint: Paint },
): string {
  const cells = rows.map((row) => [
    shorten(row.id, 200),
    row.state,
    ago(row.updatedAt, now),
    count(row.messages),
    count(row.totalTokens),
    row.cost === null ? '?' : money(row.cost),
  ])
  const widths = heads
    .slice(0, -1)
    .map((head, i) => Math.max(head.length, ...cells.map((line) => (line[i] ?? '').length)))
  const titleWidth = Math.max(leastTitle, width - widths.reduce((sum, each) => sum + each + 2, 0))
  const aligned = (line: readonly string[]): string[] =>
    line.map((cell, i) =>
      numeric.has(heads[i] ?? '') ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0),
    )
  const lines = rows.map((row, i) => {
    const [id = '', state = '', ...rest] = aligned(cells[i] ?? [])
    return [id, paint(styleIn(row.state), state), ...rest, shorten(row.name ?? row.title, titleWidth)].join(
      '  ',
    )
  })
  return [paint('dim', [...aligned(heads.slice(0, -1)), 'title'].join('  ')), ...lines, ''].join('\n')
}

function styleIn(state: ListedState): Style {
  switch (state) {
    case 'interrupted':
      return 'yellow'
    case 'new':
      return 'dim'
    default:
      return state === state.toUpperCase() ? styleOf(state as Parameters<typeof styleOf>[0]) : 'red'
  }
}
