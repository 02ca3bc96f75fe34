// A bare loop on the `openai` client. Settings: no retries, because nothing fails here.
import OpenAI from 'openai'
import { bareLoop, byClient } from '../../bare-loop.mjs'

export default function ({ baseURL, model, stream, read }) {
  const client = new OpenAI({ baseURL, apiKey: 'bench', maxRetries: 0 })
  const loop = bareLoop(byClient(client, stream), read)
  return async () => (await loop(model)).text
}
