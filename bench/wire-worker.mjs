// The provider alone in a separate process: `wire-worker.mjs CASE` with CASE as JSON. Prints one JSON line. Verifies every answer,
// so that only the server's answers are measured.
import { declared } from './bare-loop.mjs'

const { transport, url, stream, steps, chunks, runs, warmup, atOnce } = JSON.parse(process.argv[2])

if (transport === 'fetch') {
  // The provider calls a replaced fetch, as it does on platforms other than Node.
  const nodes = globalThis.fetch
  globalThis.fetch = (input, init) => nodes(input, init)
}

const dispatcher = transport === 'dispatcher' ? new (await import('undici')).Agent() : undefined
const { openaiChat } = await import('../dist/src/index.js')
const toolResult = 'x'.repeat(200)
const tools = declared.map(({ function: tool }) => tool)
const request = { instructions: null, nudges: [], tools, sampling: {}, extraBody: {}, stream }
const { signal } = new AbortController()
let requests = 0

function refuse(what) {
  throw new Error(`wrong work: ${what}`)
}

/** One conversation of a loop without a machine. */
async function converse(model) {
  const messages = [{ id: 'm0', createdAt: 0, role: 'user', content: 'Go.' }]
  let shown = 0
  const onDelta = (text) => {
    shown += text.length
  }
  for (let step = 0; ; step++) {
    requests++
    const answer = await model.request(
      { ...request, messages: [...messages] },
      { signal, onDelta, onActivity() {} },
    )
    if (!answer.complete || answer.usage?.totalTokens !== 120) refuse(JSON.stringify(answer).slice(0, 200))
    const [call] = answer.toolCalls
    if (call === undefined) {
      if (chunks ? answer.text.length !== chunks * 6 : step !== steps - 1) refuse(`an end at step ${step}`)
      if (stream && shown !== answer.text.length) refuse(`${shown} characters were shown`)
      return
    }
    if (JSON.parse(call.function.arguments).path !== `notes/${step}.txt`) refuse(call.function.arguments)
    const id = `m${messages.length}`
    messages.push(
      { id, createdAt: 0, role: 'assistant', content: null, tool_calls: [call] },
      { id: `${id}t`, createdAt: 0, role: 'tool', tool_call_id: call.id, content: toolResult },
    )
  }
}

const model = openaiChat({
  model: chunks ? `chunks-${chunks}` : `steps-${steps}`,
  baseURL: url,
  apiKey: 'bench',
  dispatcher,
})

for (let i = 0; i < warmup; i++) await converse(model)
const cpu = process.cpuUsage()
const start = performance.now()
if (atOnce) await Promise.all(Array.from({ length: runs }, () => converse(model)))
else for (let i = 0; i < runs; i++) await converse(model)
const { user, system } = process.cpuUsage(cpu)
console.log(JSON.stringify({ cpuUs: user + system, wallUs: (performance.now() - start) * 1000, requests }))
process.exit(0)
