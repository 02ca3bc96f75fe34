import type { ModelResponse } from '../../../machines/agent/model-response.js'
import { whenAborted } from '../../core/base/abort.js'
import { expectArgument, objectRule } from '../../core/base/expect-argument.js'
import { ModelError, type ModelProvider, type ModelRequestOptions } from '../../core/models/provider.js'
import { replaceRequest } from '../../core/models/replace-request.js'
import { type Chaos, type FaultKind, type FaultPlan, Faults } from './chaos.js'

/**
 * What can happen to a request:
 *
 * - `overloaded`: status 503; nothing is asked
 * - `rate_limited`: status 429, to be tried again after a second
 * - `refused`: status 400, which no second try mends
 * - `cut`: the first half of the text comes, then the connection breaks
 * - `stalled`: the first half of the text comes, then nothing until the run gives it up
 * - `truncated`: half of the text, the last call cut in its arguments, and the reason `length`
 * - `unfinished`: all of it, but the stream closes without an end
 * - `empty`: an answer without a word
 */
export type ModelFault =
  | 'overloaded'
  | 'rate_limited'
  | 'refused'
  | 'cut'
  | 'stalled'
  | 'truncated'
  | 'unfinished'
  | 'empty'

const kind: FaultKind<ModelFault> = {
  of: 'chaosModel',
  unit: 'request',
  faults: ['overloaded', 'rate_limited', 'refused', 'cut', 'stalled', 'truncated', 'unfinished', 'empty'],
  passing: ['overloaded', 'rate_limited', 'cut', 'unfinished'],
}

/**
 * A model that fails as planned, and says which of its faults have landed. Any other request is the inner model's.
 *
 * @example
 * const faulty = chaosModel(model, [{ at: 1, fault: 'overloaded' }])
 * const { state } = await createAgent({ model: faulty }).run('Go.').result
 * faulty.certify() // throws where the fault did not happen
 *
 * @throws {ChaosError} `bad_option` for a plan that makes no sense
 */
export function chaosModel(
  model: ModelProvider,
  plan: FaultPlan<ModelFault>,
): ModelProvider & Chaos<ModelFault> {
  expectArgument('chaosModel(model)', model, objectRule(['request', 'provider', 'model'], 'a model'))
  const faults = new Faults(kind, plan)
  const request: ModelProvider['request'] = async (asked, options) => {
    const { at, fault } = faults.next()
    if (fault === undefined) return model.request(asked, options)
    const refusal = refusals[fault]
    if (refusal) {
      options.onSent?.()
      faults.land(at, fault)
      throw new ModelError(refusal)
    }
    // The answer comes first, and is told as the fault has it.
    const answer = await model.request(asked, { ...options, onDelta: ignore, onToolCallDelta: ignore })
    options.signal.throwIfAborted()
    return bend(fault, answer, options, () => faults.land(at, fault))
  }
  return { ...replaceRequest(model, request), landed: faults.landed, certify: faults.certify }
}

const ignore = (): void => undefined

const refusals: Partial<Record<ModelFault, ConstructorParameters<typeof ModelError>[0]>> = {
  overloaded: { kind: 'transient', code: 'http_503', message: 'The model is overloaded.', status: 503 },
  rate_limited: {
    kind: 'rate_limit',
    code: 'http_429',
    message: 'Too many requests.',
    status: 429,
    retryAfterMs: 1000,
  },
  refused: { kind: 'fatal', code: 'http_400', message: 'The request is refused.', status: 400 },
}

const half = (text: string): string => text.slice(0, Math.ceil(text.length / 2))

async function bend(
  fault: ModelFault,
  answer: ModelResponse,
  { onDelta, onActivity, signal }: ModelRequestOptions,
  land: () => void,
): Promise<ModelResponse> {
  const tell = (text: string): void => {
    onActivity('content')
    if (text !== '') onDelta(text, '')
  }
  if (fault === 'empty') {
    land()
    return { ...answer, text: '', toolCalls: [], finishReason: 'stop' }
  }
  if (fault === 'unfinished') {
    tell(answer.text)
    land()
    return { ...answer, finishReason: null, complete: false }
  }
  const text = half(answer.text)
  tell(text)
  land()
  if (fault === 'truncated')
    return { ...answer, text, toolCalls: cutLastCall(answer.toolCalls), finishReason: 'length' }
  if (fault === 'stalled') return untilAborted(signal)
  throw new ModelError({
    kind: 'transient',
    code: 'connection',
    message: 'The connection broke.',
    partialText: text,
  })
}

function cutLastCall(calls: ModelResponse['toolCalls']): ModelResponse['toolCalls'] {
  return calls.map((call, index) =>
    index < calls.length - 1
      ? call
      : { ...call, function: { ...call.function, arguments: call.function.arguments.slice(0, -1) } },
  )
}

/** Rejects with the reason of the abort. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    whenAborted(signal, () => reject(signal.reason as Error))
  })
}
