// pi's agent, which stores the conversation, so each run creates a new agent. It always streams, and has no turn limit.
import { Agent } from '@earendil-works/pi-agent-core'
import { createModels, createProvider, Type } from '@earendil-works/pi-ai'
import { openAICompletionsApi } from '@earendil-works/pi-ai/api/openai-completions.lazy'

export const alwaysStreams = true

export default function ({ baseURL, model: id, stream, read }) {
  const model = {
    id,
    name: id,
    api: 'openai-completions',
    provider: 'bench',
    baseUrl: baseURL,
    reasoning: false,
    input: ['text'],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: 128_000,
    maxTokens: 32_000,
  }
  const models = createModels()
  models.setProvider(
    createProvider({
      id: 'bench',
      name: 'bench',
      baseUrl: baseURL,
      auth: { apiKey: { name: 'bench', resolve: async () => ({ auth: { apiKey: 'bench' } }) } },
      models: [model],
      api: openAICompletionsApi(),
    }),
  )
  const tools = [
    {
      name: 'read',
      label: 'Read',
      description: 'Reads a file.',
      parameters: Type.Object({ path: Type.String(), note: Type.String() }),
      execute: async (_, input) => ({ content: [{ type: 'text', text: await read(input) }], details: {} }),
    },
  ]
  return async () => {
    const agent = new Agent({
      initialState: { systemPrompt: '', model, tools },
      streamFn: models.streamSimple.bind(models),
    })
    let text = ''
    agent.subscribe((event) => {
      if (stream && event.type === 'message_update' && event.assistantMessageEvent.type === 'text_delta')
        text += event.assistantMessageEvent.delta
    })
    await agent.prompt('Go.')
    const { content, errorMessage } = agent.state.messages.at(-1)
    if (errorMessage) throw new Error(errorMessage)
    return stream ? text : content.map((block) => block.text).join('')
  }
}
