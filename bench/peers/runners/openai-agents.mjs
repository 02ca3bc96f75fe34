// OpenAI Agents on its Chat Completions model. Settings: 1000 turns instead of 10, no tracing, no client retries.
import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled, tool } from '@openai/agents'
import OpenAI from 'openai'
import { z } from 'zod'

export default function ({ baseURL, model, stream, read }) {
  setTracingDisabled(true)
  const client = new OpenAI({ baseURL, apiKey: 'bench', maxRetries: 0 })
  const agent = new Agent({
    name: 'bench',
    model: new OpenAIChatCompletionsModel(client, model),
    tools: [
      tool({
        name: 'read',
        description: 'Reads a file.',
        parameters: z.object({ path: z.string(), note: z.string() }),
        execute: read,
      }),
    ],
  })
  return async () => {
    if (!stream) return (await run(agent, 'Go.', { maxTurns: 1000 })).finalOutput
    let text = ''
    const result = await run(agent, 'Go.', { maxTurns: 1000, stream: true })
    for await (const piece of result.toTextStream()) text += piece
    await result.completed
    return text
  }
}
