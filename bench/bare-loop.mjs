// A bare agent loop, which is the baseline for all other measurements.

/** The tool declaration in a request. */
export const declared = [
  {
    type: 'function',
    function: {
      name: 'read',
      description: 'Reads a file.',
      parameters: {
        type: 'object',
        properties: { path: { type: 'string' }, note: { type: 'string' } },
        required: ['path', 'note'],
      },
    },
  },
]

/** Joins deltas into one message. */
export async function folded(chunks) {
  const calls = []
  let content = ''
  let tokens = 0
  for await (const chunk of chunks) {
    if (chunk.usage) tokens += chunk.usage.total_tokens
    const delta = chunk.choices[0]?.delta
    if (delta?.content) content += delta.content
    for (const part of delta?.tool_calls ?? []) {
      const call = (calls[part.index] ??= {
        id: '',
        type: 'function',
        function: { name: '', arguments: '' },
      })
      if (part.id) call.id = part.id
      if (part.function?.name) call.function.name = part.function.name
      if (part.function?.arguments) call.function.arguments += part.function.arguments
    }
  }
  const message = {
    role: 'assistant',
    content: content || null,
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  return { message, tokens }
}

/** A model behind the `openai` client. */
export const byClient = (client, stream) => async (model, messages) => {
  const request = { model, messages, tools: declared }
  if (stream) {
    const options = { stream: true, stream_options: { include_usage: true } }
    return folded(await client.chat.completions.create({ ...request, ...options }))
  }
  const completion = await client.chat.completions.create(request)
  return { message: completion.choices[0].message, tokens: completion.usage.total_tokens }
}

/** Requests and reads until the model answers with text. */
export const bareLoop = (ask, read) => async (model) => {
  const messages = [{ role: 'user', content: 'Go.' }]
  let tokens = 0
  for (;;) {
    const answer = await ask(model, messages)
    const { message } = answer
    tokens += answer.tokens
    messages.push(message)
    if (!message.tool_calls?.length) return { text: message.content, tokens }
    for (const call of message.tool_calls) {
      const input = JSON.parse(call.function.arguments)
      messages.push({ role: 'tool', tool_call_id: call.id, content: await read(input) })
    }
  }
}
