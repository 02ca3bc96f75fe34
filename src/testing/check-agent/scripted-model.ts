import type { ModelResponse } from '../../../machines/agent/model-response.js'
import type { ModelProvider, ModelRequest, ModelRequestOptions } from '../../core/models/provider.js'
import { noUsage } from '../../../machines/agent/usage.js'
import { createRandomChoices } from '../check-assertions.js'
import { type AgentFacts, sampleValue } from './agent-facts.js'

export interface ScriptedCall {
  name: string
  input?: unknown
  text?: string
  id?: string
}

export interface Turn {
  text?: string
  calls?: readonly ScriptedCall[]
  finishReason?: string
}

export type Script = (at: number, request: ModelRequest) => Turn

export const say = (text = 'Done.'): Turn => ({ text })

export const turns =
  (...list: Turn[]) =>
  (at: number): Turn =>
    list[at - 1] ?? say()

export const tokensOfTurn = { input: 30, output: 10 } as const

/** Plays a script in chunks determined by the seed. A required structured output replaces text. */
export function createScriptedModel(
  script: Script,
  seed: number,
  { output }: Pick<AgentFacts, 'output'>,
): ModelProvider {
  const random = createRandomChoices(seed)
  let count = 0
  return {
    provider: 'scripted',
    model: 'scripted-1',
    structuredOutput: 'beside_tools',
    request: async (request, options) => {
      options.signal.throwIfAborted()
      const at = ++count
      const turn = script(at, request)
      const answer = toResponse(turn.calls || !output ? turn : toObjectTurn(turn, output, request), at)
      options.onSent?.()
      if (request.stream) await sendPieces(answer, options, random.whole)
      return answer
    },
  }
}

function toObjectTurn(
  turn: Turn,
  { name, schema }: NonNullable<AgentFacts['output']>,
  { responseFormat, tools }: ModelRequest,
): Turn {
  const value = sampleValue(schema)
  if (responseFormat) return { ...turn, text: JSON.stringify(value) }
  return tools.some((tool) => tool.name === name) ? { ...turn, calls: [{ name, input: value }] } : turn
}

function toResponse({ text = '', calls = [], finishReason }: Turn, at: number): ModelResponse {
  const { input, output } = tokensOfTurn
  return {
    text,
    reasoning: '',
    refusal: null,
    toolCalls: calls.map(({ name, input: args = {}, text: written, id }, index) => ({
      id: id ?? `call_${at}_${index}`,
      type: 'function',
      function: { name, arguments: written ?? JSON.stringify(args) },
    })),
    finishReason: finishReason ?? (calls.length > 0 ? 'tool_calls' : 'stop'),
    complete: true,
    usage: { ...noUsage, inputTokens: input, outputTokens: output, totalTokens: input + output },
    model: 'scripted-1',
  }
}

async function sendPieces(
  { text, toolCalls }: ModelResponse,
  { signal, onDelta, onActivity, onToolCallDelta }: ModelRequestOptions,
  whole: (most: number) => number,
): Promise<void> {
  for (let from = 0; from < text.length; ) {
    const size = 1 + whole(11)
    onActivity('content')
    onDelta(text.slice(from, from + size), '')
    from += size
    await Promise.resolve()
    signal.throwIfAborted()
  }
  for (const [index, { id, function: named }] of toolCalls.entries()) {
    onActivity('content')
    onToolCallDelta?.({ index, id, name: named.name, arguments: named.arguments })
  }
}
