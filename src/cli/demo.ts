import * as z from 'zod'
import type { ToolEntry } from '../core/tools/tool-set.js'
import { defineTool } from '../core/tools/define-tool.js'
import { largestExpense, type RecordedRequest, type Scenario, type Turn } from '../rehearsal/index.js'
import { createNoteTools } from './note-tools.js'

/** The run that `statewright run --rehearsal` performs. It calls `largestExpense`, and makes a payment that needs approval. */

export const demoPrompt = 'What was the largest expense of the quarter? Pay its open invoice.'

const knownPrompt = /expens|cost|spen[dt]|invoice|quarter|notes/i

const declined =
  'I am a script, not a model: I only know the question about the largest expense. ' +
  'Run the command without a prompt to see it, or ask a real model.'

/** Low enough for the warning about the reserve to appear. */
export const demoSettings = { limits: { tokenBudget: 6_000 }, guardrails: { reserveTokens: 2_500 } }

export function createDemoTools(): readonly ToolEntry[] {
  const pay = defineTool({
    name: 'pay',
    description: 'Pays an invoice in EUR.',
    input: z.object({ invoice: z.string(), amount: z.number() }),
    needsApproval: true,
    execute: ({ invoice, amount }) =>
      `Paid ${amount} EUR for ${invoice}. This is a demo: no money was moved.`,
  })
  return [...createNoteTools(), pay]
}

export function createDemoScenario(): Scenario {
  const turns = largestExpense.turns as readonly Turn[]
  const [first = {}, answer = {}] = [turns[0], turns.at(-2)]
  return {
    name: 'largest-expense',
    turns: [
      (request) => (knownPrompt.test(findPrompt(request)) ? first : { text: declined }),
      ...turns.slice(1, -2),
      {
        text: 'The offsite is the largest. Its catering invoice is still open, so I will pay that.',
        toolCalls: [{ name: 'pay', arguments: { invoice: '2025-034', amount: 814.5 } }],
        usage: { input: 1014, output: 58, cached: 768 },
        delayMs: 120,
        chunkDelayMs: 15,
      },
      (request) => ({ ...answer, text: `${describePayment(request)}\n\n${answer.text ?? ''}` }),
      ...turns.slice(-1),
    ],
  }
}

function findPrompt({ body }: RecordedRequest): string {
  return JSON.stringify(body.messages.findLast(({ role }) => role === 'user')?.content ?? '')
}

function describePayment({ body }: RecordedRequest): string {
  const isPaid = JSON.stringify(body.messages.at(-1)?.content ?? '').includes('Paid')
  return isPaid ? 'Invoice 2025-034 is paid.' : 'I have not paid invoice 2025-034.'
}
