import { createAgent, defineTool, openaiChat } from '../../../src/index.js'
import { z } from 'zod'

const refund = defineTool({
  name: 'refund',
  description: 'Refunds an order.',
  input: z.object({ order: z.string() }),
  needsApproval: true,
  execute: ({ order }) => `Order ${order} is refunded.`,
})
const model = openaiChat({ model: 'gpt-5-mini' })
const agent = createAgent({ model, tools: [refund] })
console.log(await agent.run('Refund order 1001.').result)
