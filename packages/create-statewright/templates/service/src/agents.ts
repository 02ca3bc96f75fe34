/** The agents of the service, each with a version. If a deployment changes an agent, it lists the older versions that it continues. */
import {
  createAgent,
  defineAgents,
  defineTool,
  type ModelProvider,
  openaiChat,
  type SessionStore,
} from 'statewright'
import { otel } from 'statewright/otel'
import { startRehearsal } from 'statewright/rehearsal'
import { z } from 'zod'

const findInvoice = defineTool({
  name: 'find_invoice',
  description: 'Finds an invoice by its number.',
  input: z.object({ id: z.number() }),
  readOnly: true,
  execute: ({ id }) => ({ id, supplier: 'Northwind', amount: 480, due: '2026-12-01' }),
})

const pay = defineTool({
  name: 'pay',
  description: 'Pays an invoice.',
  input: z.object({ id: z.number() }),
  needsApproval: true,
  // A payment service that accepts this key charges once, even if the process dies during the call.
  execute: ({ id }, { idempotencyKey }) => ({ paid: id, reference: idempotencyKey.slice(0, 8) }),
})

export function createAgents(store: SessionStore, model: ModelProvider) {
  const payer = createAgent({
    model,
    instructions: 'You pay invoices. Look up an invoice before you pay it.',
    tools: [findInvoice, pay],
    limits: { maxSteps: 20, timeoutMs: 600_000, tokenBudget: 100_000 },
    telemetry: otel({ agentName: 'payer' }),
    store,
  })
  return { payer, agents: defineAgents({ payer: { agent: payer, version: '1' } }) }
}

/** A real model if there is a key, and otherwise a scripted one. */
export async function openModel(): Promise<ModelProvider> {
  const { OPENAI_API_KEY, OPENAI_MODEL = 'gpt-5-mini' } = process.env
  if (OPENAI_API_KEY) return openaiChat({ model: OPENAI_MODEL })
  const { url } = await startRehearsal({
    scenario: {
      onExhausted: 'loop',
      turns: [
        ({ body }) => {
          const lastMessage = JSON.stringify(body.messages.at(-1))
          if (lastMessage.includes('reference')) return { text: 'Invoice 17 is paid.' }
          if (lastMessage.includes('supplier')) return { toolCalls: [{ name: 'pay', arguments: { id: 17 } }] }
          if (body.messages.at(-1)?.role === 'tool') return { text: 'I did not pay anything.' }
          return { toolCalls: [{ name: 'find_invoice', arguments: { id: 17 } }] }
        },
      ],
    },
  })
  return openaiChat({ model: 'rehearsal', baseURL: url, apiKey: 'none' })
}
