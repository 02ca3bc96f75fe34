import type { ModelResponse } from '../../machines/agent/model-response.js'
import {
  type Agent,
  type AgentOptions,
  createAgent,
  defineTool,
  type Message,
  type ModelProvider,
} from '../../src/index.js'

const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15, cachedInputTokens: 0, reasoningTokens: 0 }

const plain: ModelResponse = {
  text: '',
  reasoning: '',
  refusal: null,
  toolCalls: [],
  finishReason: 'stop',
  complete: true,
  usage,
  model: 'scripted',
}

const callOf = (id: string, at: number) => ({
  id,
  type: 'function' as const,
  function: { name: 'look', arguments: JSON.stringify({ at }) },
})

/** An in-process model that answers each request with the entry of `answers` for its number. */
export function scripted(answers: (request: number) => Partial<ModelResponse>): ModelProvider {
  let requests = 0
  return {
    provider: 'scripted',
    model: 'scripted',
    request: () => {
      requests += 1
      return Promise.resolve({ ...plain, ...answers(requests) })
    },
  }
}

/** Calls a tool in each of this many steps, then ends. */
export function stepping(steps: number): ModelProvider {
  return scripted((request) =>
    request > steps
      ? { text: 'Done.' }
      : { toolCalls: [callOf(`call-${request}`, request)], finishReason: 'tool_calls' },
  )
}

/** Makes this many calls at once, then ends. */
export function calling(calls: number): ModelProvider {
  const toolCalls = Array.from({ length: calls }, (_, i) => callOf(`call-${i}`, i))
  return scripted((request) => (request > 1 ? { text: 'Done.' } : { toolCalls, finishReason: 'tool_calls' }))
}

/** Answers with the text in pieces of twenty characters. */
export function streaming(text: string): ModelProvider {
  return {
    provider: 'scripted',
    model: 'scripted',
    request: async (_, { onDelta, onActivity }) => {
      for (let at = 0; at < text.length; at += 20) {
        onActivity('content')
        onDelta(text.slice(at, at + 20), '')
        if (at % 200 === 0) await new Promise(setImmediate)
      }
      return { ...plain, text }
    },
  }
}

/** An agent with one tool, which returns new data for each place, and without a step limit. */
export function agentOf(model: ModelProvider, options: Partial<AgentOptions> = {}): Agent {
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    input: { type: 'object', properties: { at: { type: 'number' } } },
    readOnly: true,
    execute: ({ at }) => `Seen at ${Number(at)}: ${(Number(at) * 7_919) % 10_007}.`,
  })
  return createAgent({ model, tools: [look], limits: { maxSteps: 1_000_000 }, ...options })
}

/** A provider over HTTP that answers with these bodies, without a network. */
export function serving(body: string, contentType: string): typeof fetch {
  return () => Promise.resolve(new Response(body, { headers: { 'content-type': contentType } }))
}

/** The transcript of such an agent after this many steps. */
export function transcript(steps: number): Message[] {
  const stamp = (id: string) => ({ id, createdAt: 1_700_000_000_000 })
  const done = Array.from({ length: steps }, (_, i): Message[] => [
    {
      ...stamp(`m${2 * i + 2}`),
      role: 'assistant',
      content: `I look at ${i}.`,
      tool_calls: [callOf(`call-${i}`, i)],
    },
    { ...stamp(`m${2 * i + 3}`), role: 'tool', tool_call_id: `call-${i}`, content: `Seen at ${i}.` },
  ])
  return [
    { ...stamp('m1'), role: 'user', content: 'Look.' },
    ...done.flat(),
    { ...stamp(`m${2 * steps + 2}`), role: 'assistant', content: 'Done.' },
  ]
}
