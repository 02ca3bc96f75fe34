import { createPaint } from '../../core/format/format-words.js'
import { type BudgetRow, listStoredBudgets } from '../../fleet/create-budget.js'
import { defineCommand, writeNotice } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { storeOption } from '../options.js'
import { formatIsoTime, formatJsonLine, formatTable, wantsColor } from '../output.js'
import { withSessionStore } from '../session-store.js'

export const budgetsCommand = defineCommand({
  name: 'budgets',
  about: 'Shows the spent, reserved and remaining amounts of shared budgets.',
  options: { json: { about: 'print one line of JSON for each budget' }, ...storeOption },
  notes: ['createBudget() from statewright/fleet creates a budget in its store.'],
  execute: ({ has, text }, io) =>
    withSessionStore(text('store'), io, async (store) => {
      const { rows, damaged } = await listStoredBudgets(store)
      for (const { message } of damaged) writeNotice(io, message)
      if (has('json')) for (const row of rows) io.stdout.write(formatJsonLine(row))
      else if (rows.length === 0)
        io.stdout.write(
          'There are no budgets in this store. createBudget() from statewright/fleet creates one.\n',
        )
      else {
        const paint = createPaint(wantsColor(io.stdout, io.env))
        io.stdout.write(formatTable(heads, rows.map(toCells), { paint }))
      }
      return damaged.length > 0 ? exitCodes.error : exitCodes.completed
    }),
})

const heads = ['budget', 'spent', 'reserved', 'left', 'in progress', 'limits', 'resets']

function toCells(row: BudgetRow): string[] {
  const { limits } = row
  const format = ({ usd, tokens }: { usd?: number; tokens?: number }): string =>
    [
      ...(limits.usd === undefined || usd === undefined ? [] : [`${Number(usd.toPrecision(6))} USD`]),
      ...(limits.tokens === undefined || tokens === undefined ? [] : [`${tokens} tokens`]),
    ].join(', ')
  const resets = row.resetsAt === null ? 'never' : (formatIsoTime(row.resetsAt) ?? 'never')
  const amounts = [row.spent, row.reserved, row.left].map(format)
  return [row.id, ...amounts, String(row.live), row.terms, resets]
}
