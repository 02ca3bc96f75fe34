// The agent of both examples. It pays invoices, and each payment needs approval. Its model is rehearsed, so it needs no key.
import { createAgent, defineAgents, defineTool, openaiChat } from 'statewright'
import { startRehearsal } from 'statewright/rehearsal'

const turns = [
  { toolCalls: [{ id: 'call_1', name: 'pay', arguments: { invoice: 17 } }] },
  { text: 'Invoice 17 is paid.' },
]

export async function makeAgents(store) {
  const rehearsal = await startRehearsal({ scenario: { turns, onExhausted: 'loop' } })
  const pay = defineTool({
    name: 'pay',
    description: 'Pays an invoice.',
    input: { type: 'object', properties: { invoice: { type: 'number' } }, required: ['invoice'] },
    needsApproval: true,
    execute: ({ invoice }) => ({ paid: invoice }),
  })
  const payer = createAgent({
    model: openaiChat({ model: 'rehearsed', baseURL: rehearsal.url, apiKey: 'none' }),
    tools: [pay],
    store,
  })
  return {
    payer,
    agents: defineAgents({ payer: { agent: payer, version: '1' } }),
    close: () => rehearsal.close(),
  }
}
