import { type BudgetRow, listStoredBudgets } from '../../fleet/create-budget.js'
import { defineCommand, writeNotice } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { storeOption } from '../options.js'
import { formatIsoTime, writeRows } from '../output.js'
import { withSessionStore } from '../session-store.js'

export const budgetsCommand = defineCommand({
  name: 'budgets',
  about: 'Shows the spent, reserved and remaining amounts of shared budgets.',
  options: { json: { about: 'print one line of JSON for each budget' }, ...storeOption },
  notes: ['createBudget() from statewright/fleet creates a budget in its store.'],
  execute: ({ values }, io) =>
    withSessionStore(values.store, io, async (store) => {
      const { rows, damaged } = await listStoredBudgets(store)
      for (const { message } of damaged) writeNotice(io, message)
      const empty = 'There are no budgets in this store. createBudget() from statewright/fleet creates one.'
      const heads = ['budget', 'spent', 'reserved', 'left', 'in progress', 'limits', 'resets']
      writeRows(rows, { isJson: values.json, empty, heads, toCells }, io)
      return damaged.length > 0 ? exitCodes.error : exitCodes.completed
    }),
})

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
