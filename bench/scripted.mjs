// The scripted model's answers: `steps - 1` tool calls, then a text. The model name selects the script: `steps-50` or `chunks-1000`.
// The model is stateless. The number of tool results in the request selects the step and names the answer, because some loops merge
// two answers with the same id.
const head = (step, object) => ({ id: `chatcmpl-${step}`, object, created: 1_760_000_000, model: 'bench' })
const line = (step, rest) =>
  `data: ${JSON.stringify({ ...head(step, 'chat.completion.chunk'), ...rest })}\n\n`

const chunk = (step, delta, finish_reason = null) =>
  line(step, { choices: [{ index: 0, delta, finish_reason }] })

const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 }
const end = (step, finish_reason) =>
  `${chunk(step, {}, finish_reason)}${line(step, { choices: [], usage })}data: [DONE]\n\n`

/** The tool's input in that step, as the model writes it. */
export const argumentsOf = (step) => JSON.stringify({ path: `notes/${step}.txt`, note: 'x'.repeat(60) })

const callOf = (step) => ({
  id: `call_${step}`,
  type: 'function',
  function: { name: 'read', arguments: argumentsOf(step) },
})

/** The chunks of a streamed text. */
export const words = (pieces) => Array.from({ length: pieces }, (_, i) => ` word${i % 10}`)

/** The final text of a loop: ten chunks when streamed. */
export const lastText = (stream) => (stream ? words(10).join('') : 'All done.')

function streamedCall(step) {
  const { function: call, ...rest } = callOf(step)
  const text = call.arguments
  const cut = Math.ceil(text.length / 4)
  let body = chunk(step, { role: 'assistant', content: null })
  body += chunk(step, { tool_calls: [{ index: 0, ...rest, function: { name: call.name, arguments: '' } }] })
  for (let i = 0; i < text.length; i += cut) {
    body += chunk(step, { tool_calls: [{ index: 0, function: { arguments: text.slice(i, i + cut) } }] })
  }
  return body + end(step, 'tool_calls')
}

function streamedText(step, pieces) {
  let body = chunk(step, { role: 'assistant', content: '' })
  for (const content of words(pieces)) body += chunk(step, { content })
  return body + end(step, 'stop')
}

const completion = (step, message, finish_reason) =>
  JSON.stringify({
    ...head(step, 'chat.completion'),
    choices: [{ index: 0, message, finish_reason }],
    usage,
  })

const texts = new Map()

/** The body of a response, as JSON or as an event stream. */
export function answer({ model, stream, messages }) {
  const [kind, number] = model.split('-')
  const count = Number(number)
  const step = messages.filter((message) => message.role === 'tool').length
  if (kind === 'chunks') {
    if (!texts.has(count)) texts.set(count, streamedText(step, count))
    return texts.get(count)
  }
  const isLast = step >= count - 1
  if (stream) return isLast ? streamedText(step, 10) : streamedCall(step)
  return isLast
    ? completion(step, { role: 'assistant', content: lastText(false) }, 'stop')
    : completion(step, { role: 'assistant', content: null, tool_calls: [callOf(step)] }, 'tool_calls')
}
