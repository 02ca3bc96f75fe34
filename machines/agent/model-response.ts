import { classifyAnswer, type ResponseKind } from '../../guards/completion.js'
import type { Json } from './json.js'
import type { Annotation, MediaPart, ProviderItems, ToolCall } from './messages.js'
import type { MediaKind, Refusal } from './refusals.js'
import type { TokenUsage, Usage } from './usage.js'

/**
 * One whole answer of a model, whatever the wire looked like.
 *
 * @example
 * const response: ModelResponse = {
 *   text: 'Hello.',
 *   reasoning: '',
 *   refusal: null,
 *   toolCalls: [],
 *   finishReason: 'stop',
 *   complete: true, // false: the stream closed without an end
 *   usage: null, // estimated, with a warning
 *   model: 'mine-1',
 * }
 */
export interface ModelResponse {
  /** What it says; empty when it only calls tools. */
  text: string
  /** What it thought aloud; empty when it did not. */
  reasoning: string
  /** Why it declined; null when it did not. */
  refusal: string | null
  /** Their ids are unique within the answer; a call whose id is '' gets one that is unique in the session. */
  toolCalls: ToolCall[]
  /** As the provider wrote it (`stop`, `length`, `tool_calls`, `content_filter`, …); null when it never came. */
  finishReason: string | null
  /** False when the stream closed with neither a finish reason nor `[DONE]`. */
  complete: boolean
  /** Null when the provider reported none: it is estimated then, and so is usage that cannot be read. */
  usage: TokenUsage | null
  /** The model that answered, as the provider names it. */
  model: string | null
  /** Structured reasoning that the provider wants back unchanged. */
  reasoningDetails?: Json[]
  /** Pictures, sounds and documents that it made. */
  media?: MediaPart[]
  /** What it rests on. */
  annotations?: Annotation[]
  /** Further items that this provider wants back with the answer; they are sent to no other provider. */
  providerItems?: ProviderItems
  /** Which of several models has answered: see `withFallbacks`. */
  by?: string
  /** What the provider calls the answer: for telemetry, and kept nowhere else. */
  id?: string
}

/**
 * Why a request failed, as plain data.
 * - `transient`: connection lost, 408, 409, 5xx, overloaded, idle stream: retried under `retry.maxAttempts`
 * - `rate_limit`: 429 that passes with time: retried under `retry.rateLimitAttempts`
 * - `incomplete`: the stream closed without an end: retried, then ERROR/incomplete_response
 * - `context_overflow`: the request does not fit the model's window
 * - `fatal`: everything that a second try cannot mend (bad request, authentication, exhausted quota)
 */
export type FailureKind = 'transient' | 'rate_limit' | 'incomplete' | 'context_overflow' | 'fatal'

/**
 * A request that failed, as plain data.
 *
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
  /** Whether, and how often, it is tried again. */
  kind: FailureKind
  /** Machine-readable: the provider's own code where it has one, else `connection`, `idle_timeout`, `http_503`, … */
  code: string
  /** One sentence for people. */
  message: string
  /** HTTP status, when there was one. */
  status: number | null
  /** What the provider asked us to wait, in milliseconds (`Retry-After-ms` before `Retry-After`). */
  retryAfterMs: number | null
  /** Text that had been received before the failure. */
  partialText: string
  /** Tokens that the failed attempt is known to have cost. */
  usage: TokenUsage | null
  /** The content that the provider refuses: the request may go out again without it. Absent: the failure is another one. */
  refused?: RefusedContent
}

/**
 * Content that a provider refuses.
 * - `media`: a picture, sound or document; `kinds` where they are known, `never` where the model takes none of them
 * - `reasoning`: stored thoughts and their signatures; `never` where the provider takes none at all
 * - `messages`: text that was flagged
 */
export type RefusedContent =
  | { what: 'media'; kinds?: MediaKind[]; never?: true }
  | { what: 'reasoning'; never?: true }
  | { what: 'messages' }

/** The required fields of a failure; the others default to unknown. */
export type FailureDetails = Pick<ModelFailure, 'kind' | 'code' | 'message'> & Partial<ModelFailure>

/** A failure with every field. */
export function createModelFailure(words: FailureDetails): ModelFailure {
  return { status: null, retryAfterMs: null, partialText: '', usage: null, ...words }
}

/** What the request actor resolves with. */
export interface ModelOutput {
  response: Omit<ModelResponse, 'usage'> & { usage: Usage }
  /**
   * For each call of the response, in its order: who has to act on it before it can run, if that could be found out.
   */
  calls: { id: string; needs: CallNeeds; approvalTimedOut?: true }[]
  /** Output shields have seen the reasoning; without this it is left out where there are any. */
  reasoningCleared?: true
  /** With an output schema, for an answer: what does not fit, or null when all of it does. */
  outputProblem?: string | null
  /** The tools that had another description or schema at the run's last request: only for those who read the log. */
  changedTools?: string[]
}

/**
 * What a call waits for before it runs: nothing (`nobody`), a person (`approval`), the caller's program (`client`), or the
 * answers to what its sub-agent or its tool asks, and the end of a sub-agent's pause (`child`).
 */
export type CallNeeds = 'nobody' | 'approval' | 'client' | 'child'

/**
 * What the request actor rejects with. `jitter` of `toJitter` is drawn by the actor: the machine knows no randomness.
 */
export interface ModelActorError extends Omit<ModelFailure, 'usage' | 'refused'> {
  jitter: number
  /** What the failed attempt is known to have cost. */
  usage: Usage | null
  /** The id of the shared budget that did not allow the request: nothing was sent. */
  budget?: string
  /** When the run goes on that waits for that budget, in milliseconds since the epoch. Absent: it does not wait. */
  wakeAt?: number
  /** The content that the provider refuses, and that the request can do without. */
  refusal?: Refusal
}

/** What a response is to the loop. */
export function classifyResponse({
  text,
  refusal,
  toolCalls,
  finishReason,
}: Pick<ModelResponse, 'text' | 'refusal' | 'toolCalls' | 'finishReason'>): ResponseKind {
  return classifyAnswer({ text, refusal, calls: toolCalls.length, finishReason })
}
