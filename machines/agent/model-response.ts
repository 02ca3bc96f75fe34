import { classifyAnswer, type ResponseKind } from '../../guards/completion.js'
import type { PolicyVerdict } from './approvals.js'
import type { Json } from './json.js'
import type { Annotation, MediaPart, ProviderItems, ToolCall } from './messages.js'
import type { MediaKind, Refusal } from './refusals.js'
import type { TokenUsage, Usage } from './usage.js'

/**
 * A complete answer from a model, independent of the wire format.
 * @example
 * const response: ModelResponse = {
 *   text: 'Hello.',
 *   reasoning: '',
 *   refusal: null,
 *   toolCalls: [],
 *   finishReason: 'stop',
 *   complete: true, // false: the stream closed before the end
 *   usage: null, // estimated, with a warning
 *   model: 'mine-1',
 * }
 */
export interface ModelResponse {
  text: string
  /** Reasoning; can be empty. */
  reasoning: string
  /** The refusal text, or null. */
  refusal: string | null
  /** Ids are unique within the answer. An empty id is replaced with an id that is unique in the session. */
  toolCalls: ToolCall[]
  /** The provider's reason (`stop`, `length`, `tool_calls`, `content_filter`, …), or null. */
  finishReason: string | null
  /** Whether the answer is complete. False if the stream closed without a finish reason or `[DONE]`. */
  complete: boolean
  /** The token counts. Null if the provider reported no usage or invalid usage. The usage is then estimated. */
  usage: TokenUsage | null
  /** The provider's name for the model that answered. */
  model: string | null
  reasoningDetails?: Json[]
  media?: MediaPart[]
  annotations?: Annotation[]
  providerItems?: ProviderItems
  /** Name of the model that answered. See `withFallbacks`. */
  by?: string
  /** The provider's id for the answer, for telemetry only. */
  id?: string
}

/**
 * Why a request failed.
 * - `transient` – connection lost, 408, 409, 5xx, overloaded, idle stream; retried under `retry.maxAttempts`
 * - `rate_limit` – a temporary 429; retried under `retry.rateLimitAttempts`
 * - `incomplete` – the stream closed before the end; retried, then ERROR/incomplete_response
 * - `context_overflow` – the request does not fit the model's window
 * - `fatal` – a retry cannot succeed (bad request, authentication, exhausted quota)
 */
export type FailureKind = 'transient' | 'rate_limit' | 'incomplete' | 'context_overflow' | 'fatal'

/**
 * A failed request, as plain data.
 * @example
 * throw new ModelError({
 *   kind: 'rate_limit', // waited out and tried again; `fatal` is not
 *   code: 'rate_limited',
 *   message: 'The provider is busy.',
 *   status: 429,
 *   retryAfterMs: 2_000,
 *   partialText: '',
 *   usage: null,
 * })
 */
export interface ModelFailure {
  /** Determines whether and how often to retry. */
  kind: FailureKind
  /** The provider's code, or `connection`, `idle_timeout`, `http_503`, … */
  code: string
  message: string
  status: number | null
  /** The wait that the provider requested, in milliseconds (`Retry-After-ms` takes precedence over `Retry-After`). */
  retryAfterMs: number | null
  partialText: string
  /** Usage of the failed attempt, if known. */
  usage: TokenUsage | null
  /** Content that the provider refuses and the next request can omit. Absent for other failures. */
  refused?: RefusedContent
}

/**
 * Content that a provider refuses.
 * - `media` – an image, audio or document; `kinds` if known, `never` if the model accepts none of them
 * - `reasoning` – stored thoughts and their signatures; `never` if the provider accepts none
 * - `messages` – flagged text
 */
export type RefusedContent =
  | { what: 'media'; kinds?: MediaKind[]; never?: true }
  | { what: 'reasoning'; never?: true }
  | { what: 'messages' }

export type FailureDetails = Pick<ModelFailure, 'kind' | 'code' | 'message'> & Partial<ModelFailure>

export function createModelFailure(words: FailureDetails): ModelFailure {
  return { status: null, retryAfterMs: null, partialText: '', usage: null, ...words }
}

export interface ModelOutput {
  response: Omit<ModelResponse, 'usage'> & { usage: Usage }
  /** For each call, in order, who must act before the call can run. */
  calls: {
    id: string
    needs: CallNeeds
    approvalTimedOut?: true
    decisions?: PolicyVerdict[]
    /** The tool runs in the client and needs approval first. */
    client?: true
  }[]
  /** Whether output shields have cleared the reasoning. Otherwise, agents with output shields omit it. */
  reasoningCleared?: true
  /** If there is an output schema, the reason why the answer does not match it, or null. */
  outputProblem?: string | null
  /** Tools whose description or schema changed since the run's last request. Stored for readers of the log. */
  changedTools?: string[]
}

/** Nobody, a person, or the caller's program. `child` waits for its sub-agent or tool, or for a pause to end. */
export type CallNeeds = 'nobody' | 'approval' | 'client' | 'child'

/** The request actor's rejection. Includes the random `jitter` (see `toJitter`), because the machine has no randomness. */
export interface ModelActorError extends Omit<ModelFailure, 'usage' | 'refused'> {
  jitter: number
  /** Usage of the failed attempt, if known. */
  usage: Usage | null
  /** The shared budget that refused the request, in which case nothing was sent. */
  budget?: string
  /** In milliseconds since the epoch. Absent if the run does not wait. */
  wakeAt?: number
  /** Content that the provider refuses and the next request can omit. */
  refusal?: Refusal
}

export function classifyResponse(
  response: Pick<ModelResponse, 'text' | 'refusal' | 'toolCalls' | 'finishReason'>,
): ResponseKind {
  const { text, refusal, toolCalls, finishReason } = response
  return classifyAnswer({ text, refusal, calls: toolCalls.length, finishReason })
}
