/**
 * The cost of chat pages: npm run bench -- chat.
 * Measures the CPU time per chunk without a reader, with an iterator, and with a streaming page. Measures the time until a page that
 * attaches to a running answer shows its first character, over loopback. Measures the memory of 500 open pages.
 */
import { createServer } from 'node:http'
import { once } from 'node:events'
import { createAgent, memoryStore } from '../dist/src/index.js'
import { chatHandler, toUIMessageStreamResponse } from '../dist/src/ui/index.js'

const chunks = 20_000
const usage = {
  inputTokens: 1,
  outputTokens: 1,
  totalTokens: 2,
  cachedInputTokens: 0,
  reasoningTokens: 0,
  cost: 0,
  estimated: false,
}
const turn = () => new Promise((resolve) => setImmediate(resolve))

/** A model that emits one of `words` per turn of the event loop, and finishes when `held` settles. */
function speaking(words, held = Promise.resolve()) {
  return {
    provider: 'bench',
    model: 'bench-1',
    request: async (_request, { onDelta, onActivity }) => {
      for (let i = 0; i < words; i += 1) {
        onActivity()
        onDelta('word ', '')
        await turn()
      }
      await held
      return {
        text: 'word '.repeat(words),
        reasoning: '',
        refusal: null,
        toolCalls: [],
        finishReason: 'stop',
        complete: true,
        model: 'bench-1',
        usage,
      }
    },
  }
}

async function cpuOf(look) {
  const figures = []
  for (let round = 0; round < 4; round += 1) {
    const run = createAgent({ model: speaking(chunks), prices: null, contentIdleMs: 0, streamIdleMs: 0 }).run(
      'Go.',
    )
    const before = process.cpuUsage()
    await Promise.all([look(run), run.result])
    const { user, system } = process.cpuUsage(before)
    figures.push((user + system) / chunks)
  }
  // The first round warms up.
  return Math.min(...figures.slice(1))
}

async function read(body) {
  for await (const _ of body);
}

const alone = await cpuOf(() => undefined)
const iterated = await cpuOf(async (run) => read(run))
const streamed = await cpuOf((run) => read(toUIMessageStreamResponse(run).body))
const figure = (us) => `${us.toFixed(1)} µs`
console.log(
  `CPU a chunk: no reader ${figure(alone)}, iterated ${figure(iterated)}, streamed to a page ${figure(streamed)}`,
)

let open
const held = new Promise((resolve) => (open = resolve))
const agent = createAgent({ model: speaking(200, held), store: memoryStore(), prices: null })
const handler = chatHandler({ agent, authorize: 'none', path: '/' })
const server = createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const { method, headers } = request
  const body = method === 'POST' ? Buffer.concat(chunks) : undefined
  const answer = await handler(new Request(`http://127.0.0.1${request.url}`, { method, headers, body }))
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  for await (const chunk of answer.body ?? []) if (!response.write(chunk)) await once(response, 'drain')
  response.end()
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${server.address().port}`
const say = (id) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      id,
      messages: [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'Go.' }] }],
    }),
  })
const first = async (response) => {
  const reader = response.body.getReader()
  for (;;) {
    const { value, done } = await reader.read()
    if (done || Buffer.from(value).includes('text-delta')) return reader
  }
}
const readers = [await first(await say('c0'))]
const waits = []
for (let i = 0; i < 20; i += 1) {
  const began = performance.now()
  readers.push(await first(await fetch(`${url}/c0/stream`)))
  waits.push(performance.now() - began)
}
const sorted = waits.toSorted((a, b) => a - b)
console.log(
  `attached to a running answer, first character after ${sorted[10].toFixed(1)} ms (median), ${sorted.at(-1).toFixed(1)} ms (most of 20)`,
)

const memory = () => {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed / 1e6
}
const before = memory()
for (let i = 1; i <= 500; i += 1) readers.push(await first(await say(`c${i}`)))
const opened = memory()
for (let i = 0; i < 5; i += 1) await new Promise((resolve) => setTimeout(resolve, 1000))
const later = memory()
console.log(
  `500 runs with a page each: ${((opened - before) / 0.5).toFixed(0)} kB each, server and page together; ` +
    `${(later - opened).toFixed(1)} MB more after 5 s`,
)
open()
await Promise.all(readers.map((reader) => reader.cancel()))
server.closeAllConnections()
server.close()
