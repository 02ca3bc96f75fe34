// The same loop without a client: fetch and a line parser for the stream.
import { bareLoop, declared, folded } from '../../bare-loop.mjs'

async function* chunksOf(body) {
  let rest = ''
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop()
    for (const line of lines) {
      if (line.startsWith('data: {')) yield JSON.parse(line.slice(6))
    }
  }
}

export default function ({ baseURL, model, stream, read }) {
  const ask = async (model, messages) => {
    const response = await fetch(`${baseURL}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer bench' },
      body: JSON.stringify({
        model,
        messages,
        tools: declared,
        ...(stream && { stream, stream_options: { include_usage: true } }),
      }),
    })
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
    if (stream) return folded(chunksOf(response.body))
    const { choices, usage } = await response.json()
    return { message: choices[0].message, tokens: usage.total_tokens }
  }
  const loop = bareLoop(ask, read)
  return async () => (await loop(model)).text
}
