/** The evaluated agent. It answers questions about orders. */
import { createAgent, defineTool, openaiChat } from 'statewright'
import { z } from 'zod'
import { orders, rehearsal } from './rehearsal.mjs'

const findOrder = defineTool({
  name: 'find_order',
  description: 'Finds an order by its number.',
  input: z.object({ id: z.string() }),
  readOnly: true,
  execute: ({ id }) => orders[id] ?? 'There is no such order.',
})

/** The CLI passes the store for the sessions. */
export default ({ store }) =>
  createAgent({
    model: openaiChat({ model: 'rehearsal/desk', baseURL: rehearsal.url }),
    prices: { 'rehearsal/desk': { inputPerMillion: 0.25, outputPerMillion: 2 } },
    instructions: 'You answer questions about orders, in one short sentence.',
    tools: [findOrder],
    store,
  })
