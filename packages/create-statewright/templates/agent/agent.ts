/**
 * An agent that answers questions about orders, and asks for approval before a refund.
 *
 *   npm start                                  plays a rehearsal, without a key
 *   OPENAI_API_KEY=sk-… npm start -- 'Where is order 1002?'
 */
import { createInterface } from 'node:readline/promises'
import { pathToFileURL } from 'node:url'
import {
  createAgent,
  createEventFormatter,
  defineTool,
  type ModelProvider,
  openaiChat,
  type Run,
  type RunResult,
  type SessionStore,
} from 'statewright'
import { startRehearsal, type Turn, type TurnFunction } from 'statewright/rehearsal'
import { fileStore } from 'statewright/stores/file'
import { z } from 'zod'

const orders: Record<string, { item: string; status: string; price: number }> = {
  '1001': { item: 'a desk lamp', status: 'delivered', price: 39 },
  '1002': { item: 'a chair', status: 'on its way', price: 120 },
}

const findOrder = defineTool({
  name: 'find_order',
  description: 'Finds an order by its number.',
  input: z.object({ id: z.string() }),
  readOnly: true,
  execute: ({ id }) => orders[id] ?? 'There is no such order.',
})

const refund = defineTool({
  name: 'refund',
  description: 'Refunds an order.',
  input: z.object({ id: z.string() }),
  needsApproval: true, // the run waits for a person before each call
  execute: ({ id }) => `Order ${id} has been refunded.`,
})

export function createOrderAgent(model: ModelProvider, store?: SessionStore) {
  return createAgent({
    model,
    instructions:
      'You answer questions about orders in one short sentence. Look up an order before you talk about it.',
    tools: [findOrder, refund],
    limits: { maxSteps: 10, timeoutMs: 120_000, tokenBudget: 50_000 },
    ...(store && { store }),
  })
}

/** Prints the events of a run, and prompts the user at each approval request. */
export async function play(run: Run): Promise<RunResult> {
  const format = createEventFormatter({ color: process.stdout.isTTY })
  for (;;) {
    for await (const event of run) process.stdout.write(format(event))
    const result = await run.result
    if (result.state !== 'WAITING_FOR_INPUT') return result
    for (const call of result.pending) {
      if (await confirm(`Run ${call.name}(${call.arguments})? [y/N] `)) run.approve(call)
      else run.reject(call, 'Rejected by the user.')
    }
  }
}

/** Without a terminal, the answer is no. */
async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) return false
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return /^y/i.test(await lines.question(question))
  } finally {
    lines.close()
  }
}

/** The model's answers in the rehearsal. */
const rehearsedTurns: (Turn | TurnFunction)[] = [
  { text: 'I will look it up.', toolCalls: [{ name: 'find_order', arguments: { id: '1001' } }] },
  { toolCalls: [{ name: 'refund', arguments: { id: '1001' } }] },
  ({ body }) => ({
    text: JSON.stringify(body.messages.at(-1)).includes('has been refunded')
      ? 'Order 1001 has been refunded.'
      : 'I did not refund anything.',
  }),
]

async function main(): Promise<void> {
  const prompt = process.argv.slice(2).join(' ') || 'Please refund order 1001.'
  const { OPENAI_API_KEY, OPENAI_MODEL = 'gpt-5-mini' } = process.env
  if (OPENAI_API_KEY) {
    const store = fileStore({ dir: '.sessions' })
    const { sessionId } = await play(createOrderAgent(openaiChat({ model: OPENAI_MODEL }), store).run(prompt))
    console.log(
      `Session ${sessionId} is in .sessions. To inspect it, run: npx statewright studio --store=file:.sessions`,
    )
    return
  }
  console.log(`There is no OPENAI_API_KEY, so a rehearsal plays the model.\n`)
  const rehearsal = await startRehearsal({ turns: rehearsedTurns })
  const model = openaiChat({ model: 'rehearsal', baseURL: rehearsal.url, apiKey: 'none' })
  await play(createOrderAgent(model).run(prompt))
  await rehearsal.close()
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) await main()
