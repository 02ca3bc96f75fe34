import type { Json, JsonObject } from '../../../machines/agent/json.js'
import type { Message } from '../../../machines/agent/messages.js'
import {
  type FailureDetails,
  createModelFailure,
  type ModelFailure,
  type ModelResponse,
} from '../../../machines/agent/model-response.js'
import type { MediaKind, Refusal } from '../../../machines/agent/refusals.js'

/** A tool definition for the model. */
export interface ToolSpec {
  /** 1 to 64 letters, digits, `_` and `-`. */
  name: string
  /** Describes when and how to use the tool. */
  description: string
  /** JSON Schema of the input. */
  parameters: JsonObject
  /** Whether the provider's search finds the tool (`searchesTools`). */
  deferred?: true
}

/** With `required`, the model must call a tool. With `{ name }`, it must call this tool. */
export type ToolChoice = 'auto' | 'none' | 'required' | { name: string }

/** Sampling parameters. Omitted ones use the provider's default. */
export interface Sampling {
  /** Randomness of the output, from 0 to 2. */
  temperature?: number
  /** Probability mass for sampling, from 0 to 1. */
  topP?: number
  /** Maximum output tokens per response. */
  maxTokens?: number
  /** Penalty per repetition of a token, from -2 to 2. */
  frequencyPenalty?: number
  /** Penalty for tokens that have occurred, from -2 to 2. */
  presencePenalty?: number
  /** An integer for reproducible output, if the provider supports it. */
  seed?: number
  /** Strings that end the output. */
  stop?: string | string[]
  /** Reasoning effort of the model. */
  reasoningEffort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh'
}

/** A JSON format for the response. */
export interface ResponseFormat {
  /** Name of the format. */
  name: string
  /** JSON Schema of the response. */
  schema: JsonObject
  /** Whether the provider may enforce the schema. */
  strict: boolean
}

/** A request to a model. */
export interface ModelRequest {
  /** The system prompt. It is not part of the transcript. */
  instructions: string | null
  /** The transcript. Array elements are reused in later requests, so they can be cached by identity. */
  messages: readonly Message[]
  /** Guidance from guards, sent as the last message of this request only. */
  nudges: readonly string[]
  /** The available tools, in the given order. */
  tools: readonly ToolSpec[]
  /** Whether the model may or must call tools. Defaults to the provider's choice. */
  toolChoice?: ToolChoice
  /** The format of the answer. Defaults to free text. */
  responseFormat?: ResponseFormat
  /** Sampling parameters. Omitted ones use the provider's default. */
  sampling: Sampling
  /** Fields that are merged into the request body last. */
  extraBody: JsonObject
  /** Whether to stream the response. */
  stream: boolean
  /** Content that models refused in this session. `withFallbacks` omits it per model. */
  refused?: readonly Refusal[]
}

/** A call to a provider-executed tool. */
export interface HostedCall {
  /** The same id at the start and at the end. */
  id: string
  /** Name of the tool. */
  name: string
  /** The provider's item at the end, or null at the start. */
  item: Json | null
}

/** A part of a call's arguments. */
export interface ToolCallDelta {
  /** Index of the call in the response, from 0. */
  index: number
  /** The final id, or '' if it is not known yet. */
  id: string
  /** The tool name, or '' if it is not known yet. */
  name: string
  /** JSON text to append to the arguments. It can be empty. */
  arguments: string
}

/** A request that waits in a limiter. */
export interface SlotWait {
  /** Id of the limiter. */
  limiter: string
  /** Number of requests before this one. */
  ahead: number
}

/**
 * The abort signal and the callbacks of a request.
 *
 * @example
 * async function request(_request: ModelRequest, { signal, onSent, onDelta }: ModelRequestOptions) {
 *   const response = await fetch('https://example.com/answer', { method: 'POST', signal })
 *   onSent?.()
 *   onDelta(await response.text(), '')
 * }
 */
export interface ModelRequestOptions {
  /** Aborts if the run is cancelled or times out, or if the response is too slow. */
  signal: AbortSignal
  /** Call this when the request has been sent. The run uses the waiting time for other work. */
  onSent?: () => void
  /** Receives each piece of a streamed response. Never throws. */
  onDelta: (text: string, reasoning: string) => void
  /** Receives each part of a streamed call, once its name is known. Absent if not needed. Never throws. */
  onToolCallDelta?: (delta: ToolCallDelta) => void
  /**
   * Call this for any data that arrives, so that `streamIdleMs` and `contentIdleMs` can be measured. Use `keep_alive`
   * for data without content (headers, comments, empty pieces). Never throws.
   */
  onActivity: (kind?: 'content' | 'keep_alive') => void
  /** Emits a `warning` event, once per run and message, such as for an ignored setting. Never throws. */
  onWarning?: (code: string, message: string) => void
  /** Call this when a hosted tool starts and when it ends. Never throws. */
  onHostedCall?: (call: HostedCall) => void
  /**
   * Call this before another model is used, and await the result. Later usage is priced for that model. `after` is the
   * failure of the previous model, whose partial output is discarded. `error` is the error that it threw, or undefined
   * if this request has not asked it, which costs nothing. If the result rejects, the request rejects with the same
   * reason.
   */
  onFallback?: (
    next: Pick<ModelProvider, 'provider' | 'model' | 'endpoint'>,
    after: ModelFailure | null,
    error: unknown,
  ) => void | Promise<void>
  /** Id of the run, if known. */
  readonly runId?: string
  /** Call this when the request starts to wait for its turn, which is not idle time. Null ends the wait. */
  onWaitForSlot?: (wait: SlotWait | null) => void
  /** Call the model of `onFallback` in this function, for telemetry. Returns the callback's result. */
  around?: <T>(work: () => T) => T
}

/**
 * A model. Implement this interface for APIs other than Chat Completions. `request` makes exactly one attempt, without
 * retries or timers. The method resolves with a response (`complete: false` if the stream ended early) and rejects with
 * a `ModelError` or any other error, which is classified by status, code and message. The request stops when `signal`
 * aborts.
 *
 * @example
 * const parrot: ModelProvider = {
 *   provider: 'mine',
 *   model: 'parrot-1',
 *   request: async ({ messages }) => {
 *     const said = messages.at(-1)?.content
 *     const text = typeof said === 'string' ? said : ''
 *     const rest = { reasoning: '', refusal: null, toolCalls: [], usage: null, model: null }
 *     return { text, finishReason: 'stop', complete: true, ...rest }
 *   },
 * }
 */
export interface ModelProvider {
  /** Provider name for display and prices: `openai`, `azure`, `deepseek`, … */
  readonly provider: string
  /** Name of the model. */
  readonly model: string
  /** Other models that may answer. Their prices must be known too. */
  readonly fallbacks?: readonly Pick<ModelProvider, 'provider' | 'model'>[]
  /** How `responseFormat` works with tools. If absent, it is unknown and output schemas use a tool. */
  readonly structuredOutput?: StructuredOutputSupport
  /**
   * Whether `toolChoice: 'none'` works in requests with tools. If so, a final request (`limits.onLimit: 'conclude'`)
   * keeps its tools and thereby the prompt cache. If absent, the support is unknown and such a request has no tools.
   */
  readonly canForbidCalls?: boolean
  /** Whether the provider itself searches deferred tools. See `toolSearch({ hosted: true })`. */
  readonly searchesTools?: boolean
  /**
   * Media that the model accepts. Messages with other media are rejected before they are sent (`unsupported_content`).
   * If absent, the support is unknown and the provider decides.
   */
  readonly media?: readonly MediaKind[]
  /**
   * When reasoning is sent back as text, which takes up context: always, only with calls, or never (absent).
   */
  readonly echoesReasoning?: 'always' | 'with_calls'
  /** The server for telemetry, as a host name or address without path or key. */
  readonly endpoint?: { readonly host: string; readonly port: number }
  /** Called when a run starts. Throws a ConfigError if requests cannot succeed, such as without a key. */
  check?(): void
  /** Makes one attempt. */
  request(request: ModelRequest, options: ModelRequestOptions): Promise<ModelResponse>
}

export type StructuredOutputSupport = 'beside_tools' | 'alone'

/**
 * A failed request. A `ModelProvider` rejects with this error. `kind` determines whether it is retried.
 *
 * @example
 * throw new ModelError({
 *   kind: 'transient',
 *   code: 'overloaded',
 *   message: 'The model is overloaded.',
 *   status: 503, // partialText, usage and retryAfterMs, too, where they are known
 * })
 */
export class ModelError extends Error {
  override readonly name = 'ModelError'
  /** The failure as plain data. */
  readonly failure: ModelFailure

  /** Omitted fields default to null, and `partialText` to ''. */
  constructor(failure: FailureDetails, options?: ErrorOptions) {
    super(failure.message, options)
    this.failure = createModelFailure(failure)
  }

  get code(): string {
    return this.failure.code
  }
}

/**
 * Limits the rate of model requests. `createLimiter` from `statewright/fleet` creates one.
 *
 * @example
 * const unlimited: RequestLimiter = { id: 'none', limit: (model) => model }
 * const model = openaiChat({ model: 'gpt-5-mini', apiKey: 'sk-…', limiter: unlimited })
 */
export interface RequestLimiter {
  /** Id in messages and events. */
  readonly id: string
  /** Wraps a model so that its requests wait for their turn. */
  limit(model: ModelProvider): ModelProvider
}

export const limiterPhrase = "a limiter, such as createLimiter({ id: 'openai', requestsPerMinute: 600 })"

export function isLimiter(value: unknown): value is RequestLimiter | undefined {
  return value === undefined || typeof (value as Partial<RequestLimiter> | null)?.limit === 'function'
}
