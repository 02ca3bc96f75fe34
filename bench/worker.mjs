// One measurement in a separate process: `worker.mjs CASE` with CASE as JSON. Prints one JSON line.
import { setTimeout as sleep } from 'node:timers/promises'
import { bareLoop, byClient } from './bare-loop.mjs'
import { keptBytes } from './kept-bytes.mjs'
import { usage } from './loop.mjs'
import { median } from './statistics.mjs'

const { what, impl, url, stream, steps, chunks, packets, runs, warmup, calls, bytes } = JSON.parse(
  process.argv[2],
)
const toolResult = 'x'.repeat(200)

const contenders = {
  /** A bare loop on the openai client. */
  async bare() {
    const { default: OpenAI } = await import('openai')
    const client = new OpenAI({ baseURL: url, apiKey: 'bench', maxRetries: 0 })
    return bareLoop(byClient(client, stream), read)
  },

  async statewright() {
    const { createAgent, defineTool, openaiChat } = await import('../dist/src/index.js')
    const { z } = await import('zod')
    const tool = defineTool({
      name: 'read',
      description: 'Reads a file.',
      input: z.object({ path: z.string(), note: z.string() }),
      execute: read,
    })
    const agents = new Map()
    return async (model) => {
      let agent = agents.get(model)
      if (!agent) {
        agent = createAgent({
          model: openaiChat({ model, baseURL: url, apiKey: 'bench' }),
          tools: [tool],
          stream,
          limits: { maxSteps: 1000 },
        })
        agents.set(model, agent)
      }
      const run = agent.run('Go.')
      // Reads the text, as an app would.
      let text = ''
      run.text$.subscribe((piece) => {
        text += piece
      })
      const result = await run.result
      if (result.state !== 'COMPLETED') throw new Error(`${result.state} ${result.error?.message}`)
      return { text: result.output, tokens: result.usage.totalTokens }
    }
  },
}

async function read({ path }) {
  return path + toolResult
}

async function parked() {
  const { createAgent, defineTool, openaiChat } = await import('../dist/src/index.js')
  const { z } = await import('zod')
  let waiting = 0
  const tool = defineTool({
    name: 'read',
    description: 'Waits.',
    input: z.object({ path: z.string(), note: z.string() }),
    execute: () => {
      waiting++
      return new Promise(() => undefined)
    },
  })
  const agent = createAgent({
    model: openaiChat({ model: 'steps-50', baseURL: url, apiKey: 'bench' }),
    tools: [tool],
  })
  const retained = []
  const park = async (count) => {
    for (let i = 0; i < count; i += 50) {
      for (let j = 0; j < 50; j++) retained.push(agent.run('Go.'))
      while (waiting < retained.length) await sleep(1)
    }
  }
  return { bytes: await keptBytes(park, runs), runs }
}

/** The cost of the guards per step: two agents on an immediate model, alternating. The result is the difference of the medians. */
async function guarded() {
  const { createAgent, defineTool } = await import('../dist/src/index.js')
  const { z } = await import('zod')
  const answer = {
    text: '',
    reasoning: '',
    refusal: null,
    toolCalls: [],
    complete: true,
    usage,
    model: 'bench',
  }
  const model = {
    provider: 'bench',
    model: 'bench',
    request: async ({ messages }) => {
      const step = messages.filter((message) => message.role === 'assistant').length
      if (step === steps - 1) return { ...answer, text: 'All done.', finishReason: 'stop' }
      const toolCalls = Array.from({ length: calls }, (_, i) => ({
        id: `call_${i}`,
        type: 'function',
        function: {
          name: 'read',
          arguments: JSON.stringify({ path: `${step}.${i}`, note: 'x'.repeat(bytes) }),
        },
      }))
      return { ...answer, toolCalls, finishReason: 'tool_calls' }
    },
  }
  const input = z.object({ path: z.string(), note: z.string() })
  const tools = [defineTool({ name: 'read', description: 'Reads a file.', input, execute: read })]
  const on = createAgent({ model, tools })
  // Disables every guard. An enabled guard would be part of both sides.
  const settings = Object.entries(on.config.guardrails)
  const isGuard = (value) => value === null || typeof value === 'object'
  const off = Object.fromEntries(settings.flatMap(([key, value]) => (isGuard(value) ? [[key, null]] : [])))
  const agents = [on, createAgent({ model, tools, guardrails: off })]
  const cpu = [[], []]
  for (let i = 0; i < warmup + runs; i++) {
    for (const [which, agent] of agents.entries()) {
      const before = process.cpuUsage()
      const { state } = await agent.run('Go.').result
      if (state !== 'COMPLETED') throw new Error(state)
      const { user, system } = process.cpuUsage(before)
      if (i >= warmup) cpu[which].push((user + system) / steps)
    }
  }
  const [watched, without] = cpu.map(median)
  return { on: watched, without }
}

async function measure() {
  if (what === 'parked') return parked()
  if (what === 'guards') return guarded()
  const run = await contenders[impl]()
  const model = chunks ? `${packets ? 'packets' : 'chunks'}-${chunks}` : `steps-${steps}`
  for (let i = 0; i < warmup; i++) await run(model)
  const cpu = process.cpuUsage()
  const start = performance.now()
  if (what === 'concurrent') {
    await Promise.all(Array.from({ length: runs }, () => run(model)))
  } else {
    for (let i = 0; i < runs; i++) await run(model)
  }
  const { user, system } = process.cpuUsage(cpu)
  return { cpuUs: user + system, wallUs: (performance.now() - start) * 1000 }
}

console.log(JSON.stringify(await measure()))
process.exit(0)
