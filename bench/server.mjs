// A loopback server without latency that plays one scripted loop: `steps - 1` tool calls, then a text. The model's name
// says which: `steps-50` or `chunks-1000`. It keeps no state: the number of tool results in the request is the step.
import { createServer } from 'node:http'

const chunk = (delta, finish_reason = null) =>
  `data: ${JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1_760_000_000,
    model: 'bench',
    choices: [{ index: 0, delta, finish_reason }],
  })}\n\n`

const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 }
const usageChunk = `data: ${JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1_760_000_000,
  model: 'bench',
  choices: [],
  usage,
})}\n\n`
const done = 'data: [DONE]\n\n'

const argumentsOf = (step) => JSON.stringify({ path: `notes/${step}.txt`, note: 'x'.repeat(60) })

function streamedCall(step) {
  const text = argumentsOf(step)
  const cut = Math.ceil(text.length / 4)
  let body = chunk({ role: 'assistant', content: null })
  body += chunk({
    tool_calls: [
      { index: 0, id: `call_${step}`, type: 'function', function: { name: 'read', arguments: '' } },
    ],
  })
  for (let i = 0; i < text.length; i += cut) {
    body += chunk({ tool_calls: [{ index: 0, function: { arguments: text.slice(i, i + cut) } }] })
  }
  return `${body}${chunk({}, 'tool_calls')}${usageChunk}${done}`
}

function streamedText(pieces) {
  let body = chunk({ role: 'assistant', content: '' })
  for (let i = 0; i < pieces; i++) body += chunk({ content: ` word${i % 10}` })
  return `${body}${chunk({}, 'stop')}${usageChunk}${done}`
}

const completion = (message, finish_reason) =>
  JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_760_000_000,
    model: 'bench',
    choices: [{ index: 0, message, finish_reason }],
    usage,
  })

const texts = new Map()

function answer({ model, stream, messages }) {
  const [kind, number] = model.split('-')
  const count = Number(number)
  const step = messages.filter((message) => message.role === 'tool').length
  if (kind === 'chunks') {
    if (!texts.has(count)) texts.set(count, streamedText(count))
    return texts.get(count)
  }
  const isLast = step >= count - 1
  if (stream) return isLast ? streamedText(10) : streamedCall(step)
  return isLast
    ? completion({ role: 'assistant', content: 'All done.' }, 'stop')
    : completion(
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            {
              id: `call_${step}`,
              type: 'function',
              function: { name: 'read', arguments: argumentsOf(step) },
            },
          ],
        },
        'tool_calls',
      )
}

const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (data) => {
    body += data
  })
  request.on('end', () => {
    const parsed = JSON.parse(body)
    served++
    response.writeHead(200, { 'content-type': parsed.stream ? 'text/event-stream' : 'application/json' })
    response.end(answer(parsed))
  })
})
/** Whoever asks is told how many requests there were. */
let served = 0
process.on('message', () => process.send(served))
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  process.send(`http://127.0.0.1:${server.address().port}/v1`)
})
