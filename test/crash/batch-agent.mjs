// The agent of a batch that is killed. Each line makes two model requests with a tool call between them.
// Requests and tool effects are reported to the parent. The store's clock is half a minute ahead per earlier
// process, so that leases of killed processes expire.
import { createAgent, defineTool } from 'statewright'
import { fileStore } from 'statewright/stores/file'

const { dir, generation, answerMs } = JSON.parse(process.env.BATCH_TASK)

const usage = {
  inputTokens: 100,
  outputTokens: 10,
  totalTokens: 110,
  cachedInputTokens: 0,
  reasoningTokens: 0,
}
const rest = { reasoning: '', refusal: null, complete: true, usage, model: 'played' }
let requestCount = 0

/** Periodically reports the memory that remains after a full collection. */
function tellMemory() {
  if (!globalThis.gc || requestCount % 1000 !== 0) return
  globalThis.gc()
  process.send({
    type: 'memory',
    asked: requestCount,
    heap: process.memoryUsage().heapUsed,
    rss: process.memoryUsage.rss(),
  })
}

const model = {
  provider: 'played',
  model: 'played-1',
  request: async ({ messages }) => {
    requestCount += 1
    process.send({ type: 'asked' })
    tellMemory()
    await new Promise((resolve) => setTimeout(resolve, answerMs))
    const last = messages.at(-1)
    if (last.role === 'tool')
      return { ...rest, text: `It is ${last.content}.`, toolCalls: [], finishReason: 'stop' }
    const toolCalls = [{ id: 'a', name: 'square', arguments: JSON.stringify({ of: last.content }) }]
    return { ...rest, text: '', toolCalls, finishReason: 'tool_calls' }
  },
}

const square = defineTool({
  name: 'square',
  description: 'Squares a number.',
  input: { type: 'object', properties: { of: { type: 'string' } }, required: ['of'] },
  readOnly: true,
  execute: ({ of }) => String(Number(of) ** 2),
})

export default () =>
  createAgent({
    model,
    tools: [square],
    prices: { 'played-1': { inputPerMillion: 1, outputPerMillion: 10 } },
    store: fileStore({ dir, now: () => Date.now() + generation * 31_000 }),
  })
