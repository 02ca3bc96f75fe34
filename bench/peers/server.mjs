// The scripted server for peers. It answers like the bench server, and rejects requests that deviate from the script. It compares
// every message of the history in each request. It reports the number of requests and the first wrong one.
import { createServer } from 'node:http'
import { answer, argumentsOf } from '../scripted.mjs'
import { resultOf } from './tool.mjs'

const textOf = (content) =>
  Array.isArray(content) ? content.map((part) => part.text ?? '').join('') : (content ?? '')

const sameInput = (text, step) =>
  text === argumentsOf(step) || JSON.stringify(JSON.parse(text)) === argumentsOf(step)

/** Describes the mistake in a history, or returns undefined. Instructions may precede it. */
function wrong({ model, messages, tools }) {
  if (!/^(steps|chunks)-\d+$/.test(model)) return `the model ${model}`
  if (tools?.length !== 1 || tools[0].function?.name !== 'read') return 'tools other than the one'
  const spoken = messages.filter(({ role }) => role !== 'system' && role !== 'developer')
  if (spoken[0]?.role !== 'user' || textOf(spoken[0].content) !== 'Go.') return 'another first message'
  if (spoken.length % 2 === 0) return `${spoken.length} messages`
  const steps = (spoken.length - 1) / 2
  if (steps >= Number(model.split('-')[1])) return `${steps} steps`
  for (let step = 0; step < steps; step++) {
    const call = spoken[step * 2 + 1]
    const result = spoken[step * 2 + 2]
    const previous = call.tool_calls?.[0]
    if (call.role !== 'assistant' || call.tool_calls?.length !== 1) return `step ${step} without its call`
    if (previous.id !== `call_${step}` || previous.function.name !== 'read')
      return `step ${step} with another call`
    if (!sameInput(previous.function.arguments, step)) return `step ${step} with other arguments`
    if (result.role !== 'tool' || result.tool_call_id !== previous.id)
      return `step ${step} without its result`
    if (textOf(result.content) !== resultOf(step))
      return `step ${step} with another result: ${JSON.stringify(result.content).slice(0, 80)}`
  }
  return undefined
}

let served = 0
let refused
process.on('message', () => {
  process.send({ served, refused })
  refused = undefined
})

const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (data) => {
    body += data
  })
  request.on('end', () => {
    served++
    const end = (status, type, text) => response.writeHead(status, { 'content-type': type }).end(text)
    let parsed
    let why = request.url === '/v1/chat/completions' ? undefined : `a request of ${request.url}`
    try {
      parsed = JSON.parse(body)
      why ??= wrong(parsed)
    } catch (error) {
      why ??= `a body that cannot be read: ${error.message}`
    }
    if (why) {
      refused ??= why
      end(400, 'application/json', JSON.stringify({ error: { message: `wrong work: ${why}` } }))
    } else end(200, parsed.stream ? 'text/event-stream' : 'application/json', answer(parsed))
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send(`http://127.0.0.1:${server.address().port}/v1`))
