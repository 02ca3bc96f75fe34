import { createServer } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { steps } from './script.mjs'

/**
 * A stateless model over HTTP. Its answer depends only on the number of assistant messages in the request. It
 * records only failures: the first request of a step fails once per session. Like real providers, it rejects
 * a history with a call that does not have exactly one result.
 */
export async function startModelServer() {
  const failed = new Map()
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })

  async function answer(request, response) {
    const key = request.url.split('/')[1]
    const parts = []
    for await (const part of request) parts.push(part)
    const { messages } = JSON.parse(Buffer.concat(parts).toString())
    const number = messages.filter(({ role }) => role === 'assistant').length
    const step = steps[number]
    if (!step || !isPaired(messages)) return refuse(response, 400, 'The history is not valid.')
    const failures = failed.get(key)
    if (step.fails && !failures.includes(number)) {
      failures.push(number)
      return refuse(response, step.fails, 'Not now.')
    }
    return stream(response, number, step)
  }

  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  let sessions = 0
  return {
    /** A separate session: its base URL and its failed steps. */
    session() {
      const key = `s${++sessions}`
      failed.set(key, [])
      return { baseURL: `http://127.0.0.1:${port}/${key}/v1`, failed: failed.get(key) }
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

function isPaired(messages) {
  let owed = []
  for (const { role, tool_calls: calls, tool_call_id: id } of messages) {
    if (role === 'tool' ? owed.shift() !== id : owed.length > 0) return false
    if (calls) owed = calls.map((call) => call.id)
  }
  return owed.length === 0
}

function refuse(response, status, message) {
  response.writeHead(status, {
    'content-type': 'application/json',
    'retry-after-ms': '3',
    connection: 'close',
  })
  response.end(JSON.stringify({ error: { message, type: 'server_error', code: null } }))
}

async function stream(response, number, { text = '', calls = [], finish }) {
  const send = (fields) => {
    const chunk = {
      id: `r${number}`,
      object: 'chat.completion.chunk',
      created: 0,
      model: 'scripted',
      ...fields,
    }
    response.write(`data: ${JSON.stringify(chunk)}\n\n`)
  }
  const delta = (piece, reason = null) => {
    send({ choices: [{ index: 0, delta: piece, finish_reason: reason }] })
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', connection: 'close' })
  delta({ role: 'assistant', content: text.slice(0, text.length >> 1) })
  await wait(1)
  delta({ content: text.slice(text.length >> 1) })
  for (const [index, { id, name, arguments: input }] of calls.entries()) {
    const json = JSON.stringify(input)
    delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: json.slice(0, 5) } }] })
    delta({ tool_calls: [{ index, function: { arguments: json.slice(5) } }] })
  }
  await wait(1)
  delta({}, finish ?? (calls.length > 0 ? 'tool_calls' : 'stop'))
  const [input, output] = [100 + 10 * number, 5 + number]
  send({
    choices: [],
    usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
  })
  response.end('data: [DONE]\n\n')
}
