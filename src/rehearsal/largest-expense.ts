import type { Scenario } from './scenario.js'

const pace = { delayMs: 120, chunkDelayMs: 15 }

/**
 * An agent finds the largest expense in `examples/notes`. The agent is rate limited once, calls tools in parallel, and
 * runs out of output tokens in the middle of its answer.
 *
 * Expects the tools `list_files {}`, `read_file { path }` and `calculate { expression }`.
 *
 * @example
 * const rehearsal = await startRehearsal({ scenario: largestExpense })
 * console.log(rehearsal.remaining) // its turns
 * await rehearsal.close()
 */
export const largestExpense: Scenario = {
  name: 'largest-expense',
  description: 'Finds the largest expense of the quarter in a folder of notes.',
  turns: [
    {
      text: 'I will look at what is in the folder first.',
      toolCalls: [{ name: 'list_files' }],
      usage: { input: 318, output: 24 },
      ...pace,
    },
    { status: 429, retryAfter: 1 },
    {
      text: 'Three notes. I will read them all.',
      toolCalls: [
        { name: 'read_file', arguments: { path: 'laptops.txt' } },
        { name: 'read_file', arguments: { path: 'offsite.txt' } },
        { name: 'read_file', arguments: { path: 'software.txt' } },
      ],
      usage: { input: 365, output: 71 },
      ...pace,
    },
    {
      text:
        'Laptops and offsite are close, and each has a catch: the shop took 240.00 off, and the deposit for Lisbon ' +
        'is already in the invoice. I will add up all three.',
      toolCalls: [
        { name: 'calculate', arguments: { expression: '3 * (1189.00 + 96.50) - 240.00' } },
        { name: 'calculate', arguments: { expression: '2646.00 + 814.50 + 391.20' } },
        { name: 'calculate', arguments: { expression: '3 * (164.00 + 5 * 15.00 + 89.00)' } },
      ],
      usage: { input: 812, output: 148, cached: 256 },
      ...pace,
    },
    {
      text:
        'The largest expense is the **team offsite in Lisbon: 3,851.70 EUR**.\n\n' +
        '| Expense | Total (EUR) |\n| --- | ---: |\n| Team offsite | 3,851.70 |\n| Laptops | 3,616.50 |\n| Software | 984.00 |\n\n' +
        'It is ahead by 235.20. Without the 240.00 for the old',
      finishReason: 'length',
      usage: { input: 1014, output: 64, cached: 768 },
      ...pace,
    },
    {
      text: ' machines, the laptops would have come first, by 4.80.',
      usage: { input: 1102, output: 46, cached: 1024 },
      ...pace,
    },
  ],
}
