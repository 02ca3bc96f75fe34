// The loop that everybody writes first, on the `openai` client. Set: no retries, as nothing fails here.
import OpenAI from 'openai'
import { bareLoop, byClient } from '../../bare-loop.mjs'

export default function ({ baseURL, model, stream, read }) {
  const client = new OpenAI({ baseURL, apiKey: 'bench', maxRetries: 0 })
  const loop = bareLoop(byClient(client, stream), read)
  return async () => (await loop(model)).text
}
