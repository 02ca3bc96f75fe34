// Strands' agent, which stores the conversation, so each run creates a new agent. It always streams. Settings: no printing, no
// client retries. It has no turn limit by default.
import { Agent, tool } from '@strands-agents/sdk'
import { OpenAIModel } from '@strands-agents/sdk/models/openai'
import { z } from 'zod'

export const alwaysStreams = true

export default function ({ baseURL, model: modelId, stream, read: callback }) {
  const clientConfig = { baseURL, maxRetries: 0 }
  const model = new OpenAIModel({ api: 'chat', apiKey: 'bench', modelId, clientConfig })
  const read = tool({
    name: 'read',
    description: 'Reads a file.',
    inputSchema: z.object({ path: z.string(), note: z.string() }),
    callback,
  })
  return async () => {
    const agent = new Agent({ model, tools: [read], printer: false })
    if (!stream) return (await agent.invoke('Go.')).toString()
    let text = ''
    for await (const event of agent.stream('Go.')) {
      if (event.type !== 'modelStreamUpdateEvent') continue
      const { type, delta } = event.event
      if (type === 'modelContentBlockDeltaEvent' && delta.type === 'textDelta') text += delta.text
    }
    return text
  }
}
