/**
 * An agent that answers each line of batch.jsonl.
 *
 *   npx statewright batch examples/batch.jsonl --agent examples/batch.mjs --out answers.jsonl
 */
import { createAgent, defineTool, openaiChat } from 'statewright'
import { startRehearsal } from 'statewright/rehearsal'

const expenses = { april: [1200, 310, 45], may: [1200, 80], june: [1200, 95, 60, 12] }

const readExpenses = defineTool({
  name: 'read_expenses',
  description: 'Returns the expenses of a month.',
  input: { type: 'object', properties: { month: { type: 'string' } }, required: ['month'] },
  readOnly: true,
  execute: ({ month }) => expenses[month] ?? 'No such month.',
})

/** The scripted model. It looks up a month and adds up the expenses. With a key, use openaiChat({ model: 'gpt-5-mini' }). */
function answer({ body: { messages } }) {
  const last = messages.at(-1)
  if (last.role === 'tool') {
    const sum = JSON.parse(last.content).reduce((total, amount) => total + amount, 0)
    return { text: `${sum} EUR.` }
  }
  const month = Object.keys(expenses).find((name) =>
    JSON.stringify(last.content).toLowerCase().includes(name),
  )
  return month
    ? { toolCalls: [{ name: 'read_expenses', arguments: { month } }] }
    : { text: 'I know the expenses of April, May and June.' }
}

/** The command passes the store, so that the batch can continue after it was stopped. */
export default async ({ store }) => {
  const rehearsal = await startRehearsal({ scenario: { turns: [answer], onExhausted: 'repeatLast' } })
  return createAgent({
    model: openaiChat({ model: 'rehearsal', baseURL: rehearsal.url }),
    prices: { rehearsal: { inputPerMillion: 0.25, outputPerMillion: 2 } },
    instructions: 'You answer questions about expenses.',
    tools: [readExpenses],
    store,
  })
}
