// Mastra's agent on its router for compatible servers. Settings: 1000 steps instead of 5. The worker sets MASTRA_TELEMETRY_DISABLED.
import { Agent } from '@mastra/core/agent'
import { createTool } from '@mastra/core/tools'
import { z } from 'zod'

export default function ({ baseURL, model, stream, read }) {
  const agent = new Agent({
    id: 'bench',
    name: 'bench',
    instructions: 'You read files.',
    model: { id: `bench/${model}`, url: baseURL, apiKey: 'bench' },
    tools: {
      read: createTool({
        id: 'read',
        description: 'Reads a file.',
        inputSchema: z.object({ path: z.string(), note: z.string() }),
        execute: read,
      }),
    },
  })
  return async () => {
    if (!stream) return (await agent.generate('Go.', { maxSteps: 1000 })).text
    let text = ''
    const result = await agent.stream('Go.', { maxSteps: 1000 })
    for await (const piece of result.textStream) text += piece
    return text
  }
}
