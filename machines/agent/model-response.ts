import { classifyAnswer, type ResponseKind } from '../../guards/completion.js'
import type { PolicyVerdict } from './approvals.js'
import type { Json } from './json.js'
import type { Annotation, MediaPart, ProviderItems, ToolCall } from './messages.js'
import type { MediaKind, Refusal } from './refusals.js'
import type { TokenUsage, Usage } from './usage.js'

/**
 * A complete answer of a model, independent of the wire format.
 *
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
  /** The text; empty for a response with only tool calls. */
  text: string
  /** Reasoning; may be empty. */
  reasoning: string
  /** The refusal, or null. */
  refusal: string | null
  /** Ids are unique within the answer. An empty id is replaced by one that is unique in the session. */
  toolCalls: ToolCall[]
  /** The provider's reason (`stop`, `length`, `tool_calls`, `content_filter`, …), or null. */
  finishReason: string | null
  /** False if the stream closed without a finish reason or `[DONE]`. */
  complete: boolean
  /** Null if the provider reported none or invalid usage; it is then estimated. */
  usage: TokenUsage | null
  /** The provider's name of the model that answered. */
  model: string | null
  /** Structured reasoning to send back unchanged. */
  reasoningDetails?: Json[]
  /** Generated media. */
  media?: MediaPart[]
  /** Sources. */
  annotations?: Annotation[]
  /** Items to send back to this provider only. */
  providerItems?: ProviderItems
  /** The model that answered. See `withFallbacks`. */
  by?: string
  /** The provider's id of the answer, for telemetry only. */
  id?: string
}

/**
 * Why a request failed, as plain data.
 * - `transient` – connection lost, 408, 409, 5xx, overloaded, idle stream; retried under `retry.maxAttempts`
 * - `rate_limit` – a temporary 429; retried under `retry.rateLimitAttempts`
 * - `incomplete` – the stream closed before the end; retried, then ERROR/incomplete_response
 * - `context_overflow` – the request does not fit the model's window
 * - `fatal` – a retry cannot succeed (bad request, authentication, exhausted quota)
 */
export type FailureKind = 'transient' | 'rate_limit' | 'incomplete' | 'context_overflow' | 'fatal'

/**
 * A failed request, as plain data.
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
  /** Determines whether and how often to retry. */
  kind: FailureKind
  /** The provider's code, or `connection`, `idle_timeout`, `http_503`, … */
  code: string
  /** One sentence for people. */
  message: string
  /** HTTP status, if any. */
  status: number | null
  /** Requested wait in milliseconds (`Retry-After-ms` before `Retry-After`). */
  retryAfterMs: number | null
  /** Text received before the failure. */
  partialText: string
  /** Known usage of the failed attempt. */
  usage: TokenUsage | null
  /** Content that the provider refuses and the request can omit. Absent for other failures. */
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

/** Required fields of a failure. */
export type FailureDetails = Pick<ModelFailure, 'kind' | 'code' | 'message'> & Partial<ModelFailure>

export function createModelFailure(words: FailureDetails): ModelFailure {
  return { status: null, retryAfterMs: null, partialText: '', usage: null, ...words }
}

/** Output of the request actor. */
export interface ModelOutput {
  response: Omit<ModelResponse, 'usage'> & { usage: Usage }
  /** For each call, in order, the party that must act before it can run, if known. */
  calls: {
    id: string
    needs: CallNeeds
    approvalTimedOut?: true
    /** The decisions of policies. */
    decisions?: PolicyVerdict[]
    /** A client tool that needs approval first. */
    client?: true
  }[]
  /** Output shields have cleared the reasoning. Otherwise, agents with output shields omit it. */
  reasoningCleared?: true
  /** With an output schema, the reason why the answer does not match, or null. */
  outputProblem?: string | null
  /** Tools whose description or schema changed since the run's last request, for readers of the log. */
  changedTools?: string[]
}

/**
 * The party that a call waits for. `nobody` means that it can run, `approval` is a person, and `client` is the caller's
 * program. `child` waits for answers to its sub-agent or tool, or for the end of a sub-agent's pause.
 */
export type CallNeeds = 'nobody' | 'approval' | 'client' | 'child'

/** Rejection of the request actor. It draws `jitter` (`toJitter`), because the machine has no randomness. */
export interface ModelActorError extends Omit<ModelFailure, 'usage' | 'refused'> {
  jitter: number
  /** Known usage of the failed attempt. */
  usage: Usage | null
  /** The shared budget that refused the request. Nothing was sent. */
  budget?: string
  /**
   * When a run that waits for that budget continues, in milliseconds since the epoch. Absent if the run does not wait.
   */
  wakeAt?: number
  /** Content that the provider refuses and the request can omit. */
  refusal?: Refusal
}

/** Classifies a response for the loop. */
export function classifyResponse({
  text,
  refusal,
  toolCalls,
  finishReason,
}: Pick<ModelResponse, 'text' | 'refusal' | 'toolCalls' | 'finishReason'>): ResponseKind {
  return classifyAnswer({ text, refusal, calls: toolCalls.length, finishReason })
}
