import { type BudgetRow, listStoredBudgets } from '../../fleet/create-budget.js'
import { stripControls } from '../../core/format/format-words.js'
import { badUsageError } from '../cli-error.js'
import type { Command } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { withSessionStore } from '../open-session-store.js'
import { parseOptions } from '../parse-options.js'
import { formatIsoTime } from '../render/format-time.js'
import { formatJsonLine } from '../render/json-renderer.js'
import { sessionOptionSpecs } from './sessions/session-options.js'

const options = {
  json: { about: 'print one line of JSON for each budget' },
  ...sessionOptionSpecs,
}

export const budgetsCommand: Command = {
  name: 'budgets',
  about: 'Shows the budgets that runs share: what is spent, reserved and left.',
  positional: '',
  options,
  notes: ['A budget is in the store that createBudget() of statewright/fleet was given.'],
  execute: async (args, io) => {
    const { positionals, has, text } = parseOptions(args, options)
    if (positionals.length > 0)
      throw badUsageError(`This command takes no argument: '${positionals.join(' ')}'.`)
    let isDamaged = false
    await withSessionStore(text('store'), io, async (store) => {
      const { rows, damaged } = await listStoredBudgets(store)
      for (const { message } of damaged) io.stderr.write(`statewright: ${stripControls(message)}\n`)
      isDamaged = damaged.length > 0
      if (has('json')) for (const row of rows) io.stdout.write(formatJsonLine(row))
      else io.stdout.write(formatRows(rows))
    })
    return isDamaged ? exitCodes.error : exitCodes.completed
  },
}

function formatRows(rows: readonly BudgetRow[]): string {
  if (rows.length === 0)
    return 'There are no budgets in this store. createBudget() of statewright/fleet makes one.\n'
  const amounts = ({ usd, tokens }: { usd?: number; tokens?: number }, { limits }: BudgetRow): string =>
    [
      ...(limits.usd === undefined || usd === undefined ? [] : [`${Number(usd.toPrecision(6))} USD`]),
      ...(limits.tokens === undefined || tokens === undefined ? [] : [`${tokens} tokens`]),
    ].join(', ')
  const cells = [
    ['BUDGET', 'SPENT', 'RESERVED', 'LEFT', 'UNDER WAY', 'LIMITS', 'WHOLE AGAIN'],
    ...rows.map((row) => [
      row.id,
      amounts(row.spent, row),
      amounts(row.reserved, row),
      amounts(row.left, row),
      String(row.live),
      row.terms,
      row.resetsAt === null ? 'never' : (formatIsoTime(row.resetsAt) ?? 'never'),
    ]),
  ]
  const widths = cells[0]?.map((_, i) => Math.max(...cells.map((line) => line[i]?.length ?? 0))) ?? []
  return cells
    .map(
      (line) =>
        `${line
          .map((cell, i) => cell.padEnd(widths[i] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}
