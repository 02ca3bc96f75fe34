// A minimal loop on XState: two states, two promise actors, the `openai` client. It has no limits and emits no events. Settings: no
// retries.
import OpenAI from 'openai'
import { byClient } from '../../bare-loop.mjs'
import { minimalMachine } from '../../minimal-machine.mjs'

export default function ({ baseURL, model, stream, read }) {
  const ask = byClient(new OpenAI({ baseURL, apiKey: 'bench', maxRetries: 0 }), stream)
  const modelInput = {
    async request({ messages }) {
      const { message, tokens } = await ask(model, messages)
      return { text: message.content, toolCalls: message.tool_calls ?? [], usage: { totalTokens: tokens } }
    },
  }
  const run = minimalMachine(modelInput, read)
  return async () => (await run()).text
}
