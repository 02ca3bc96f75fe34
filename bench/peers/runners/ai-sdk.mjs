// AI SDK: a ToolLoopAgent on the provider for compatible servers. Settings: 1000 steps instead of 20, and usage requested. Telemetry
// is off unless registered.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { isStepCount, tool, ToolLoopAgent } from 'ai'
import { z } from 'zod'

export default function ({ baseURL, model, stream, read }) {
  const provider = createOpenAICompatible({ name: 'bench', baseURL, apiKey: 'bench', includeUsage: true })
  const agent = new ToolLoopAgent({
    model: provider(model),
    tools: {
      read: tool({
        description: 'Reads a file.',
        inputSchema: z.object({ path: z.string(), note: z.string() }),
        execute: read,
      }),
    },
    stopWhen: isStepCount(1000),
  })
  return async () => {
    if (!stream) return (await agent.generate({ prompt: 'Go.' })).text
    let text = ''
    const result = await agent.stream({ prompt: 'Go.' })
    for await (const piece of result.textStream) text += piece
    return text
  }
}
