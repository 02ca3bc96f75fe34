/** The agent. Its tools see only the orders of the tenant in their context. */
import { createAgent, defineTool, openaiChat } from 'statewright'
import { startRehearsal } from 'statewright/rehearsal'
import { z } from 'zod'

const orders = {
  acme: [{ id: 17, item: 'anvil', state: 'paid' }],
  globex: [{ id: 17, item: 'lamp', state: 'sent' }],
}

const listOrders = defineTool({
  name: 'list_orders',
  description: 'Lists the orders of the customer.',
  input: z.object({}),
  readOnly: true,
  execute: (_input, { context }) => orders[context.tenant] ?? [],
})

const cancelOrder = defineTool({
  name: 'cancel_order',
  description: 'Cancels an order.',
  input: z.object({ id: z.number() }),
  needsApproval: true,
  execute: ({ id }, { context }) => {
    const order = orders[context.tenant]?.find((each) => each.id === id)
    if (order === undefined) return `There is no order ${id}.`
    order.state = 'cancelled'
    return `Cancelled order ${id} (${order.item}) for ${context.name}.`
  },
})

export async function createOrderAgent(store) {
  return createAgent({
    model: process.env.OPENAI_API_KEY ? openaiChat({ model: 'gpt-5-mini' }) : await rehearse(),
    instructions: 'You help customers with their orders.',
    tools: [listOrders, cancelOrder],
    limits: { maxSteps: 10 },
    store,
  })
}

/** A script that plays the model. It lists the orders and cancels order 17. */
async function rehearse() {
  const { url } = await startRehearsal({ turns: [answer], onExhausted: 'loop' })
  return openaiChat({ model: 'rehearsal', baseURL: url })
}

function answer({ body: { messages } }) {
  const { role, content } = messages.at(-1)
  const says = (text) => ({ text, chunkSize: 4, chunkDelayMs: 10 })
  if (role === 'tool') return says(content.startsWith('[') ? describeOrders(JSON.parse(content)) : content)
  const text = JSON.stringify(content)
  if (/cancel/i.test(text)) return { toolCalls: [{ name: 'cancel_order', arguments: { id: 17 } }] }
  if (/order/i.test(text)) return { toolCalls: [{ name: 'list_orders', arguments: {} }] }
  return says(
    'I am a script, not a model: I only understand "Which orders do I have?" and "Cancel my order".',
  )
}

const describeOrders = (orders) =>
  orders.map(({ id, item, state }) => `Order ${id}: ${item}, ${state}.`).join('\n')
