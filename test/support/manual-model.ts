import type { ModelFailure, ModelResponse } from '../../machines/agent/model-response.js'
import { ModelError, type ModelProvider, type ModelRequest } from '../../src/core/models/provider.js'

interface Attempt {
  request: ModelRequest
  signal: AbortSignal
  delta(text: string, reasoning?: string): void
  answer(response?: Partial<ModelResponse>): void
  fail(failure?: Partial<ModelFailure>): void
}

/** A model whose answers the test controls. */
export class ManualModel implements ModelProvider {
  readonly provider = 'manual'
  readonly model = 'manual-1'
  readonly attempts: Attempt[] = []
  /** The attempt that waits for an answer. */
  pending: Attempt | null = null

  request: ModelProvider['request'] = (request, { signal, onDelta, onActivity }) =>
    new Promise((resolve, reject) => {
      const attempt: Attempt = {
        request,
        signal,
        delta: (text, reasoning = '') => {
          onActivity()
          onDelta(text, reasoning)
        },
        answer: (response = {}) => {
          this.pending = null
          resolve({ ...plainAnswer, ...response })
        },
        fail: (failure = {}) => {
          this.pending = null
          reject(new ModelError({ ...plainFailure, ...failure }))
        },
      }
      signal.addEventListener('abort', () => {
        if (this.pending === attempt) this.pending = null
        reject(signal.reason as Error)
      })
      this.attempts.push(attempt)
      this.pending = attempt
    })
}

export const plainAnswer: ModelResponse = {
  text: '',
  reasoning: '',
  refusal: null,
  toolCalls: [],
  finishReason: 'stop',
  complete: true,
  usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15, cachedInputTokens: 0, reasoningTokens: 0 },
  model: 'manual-1',
}

/** A model that makes one tool call, then answers. `conclude` turns the result into the answer. */
export function createOneCallModel(
  tool: string,
  conclude: (result: { content: string }) => string = () => 'Done.',
  input: object = {},
): ModelProvider {
  return {
    provider: 'scripted',
    model: 'scripted-1',
    request: ({ messages }) => {
      const last = messages.at(-1)
      return Promise.resolve(
        last?.role === 'tool'
          ? { ...plainAnswer, text: conclude(last) }
          : { ...plainAnswer, toolCalls: [call('a', tool, input)], finishReason: 'tool_calls' as const },
      )
    },
  }
}

const plainFailure: ModelFailure = {
  kind: 'transient',
  code: 'http_503',
  message: 'The provider is overloaded.',
  status: 503,
  retryAfterMs: null,
  partialText: '',
  usage: null,
}

export function call(id: string, name: string, input: unknown = {}) {
  return { id, type: 'function' as const, function: { name, arguments: JSON.stringify(input) } }
}

/** Runs all ready work: promises and their continuations. */
export function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
