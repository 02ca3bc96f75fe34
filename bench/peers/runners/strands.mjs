// Strands' agent, which keeps the conversation, so that each run has one of its own. It streams from the server always.
// Set: no printing, no retries of the client; it has no limit of turns unless one is given.
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
