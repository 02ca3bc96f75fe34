import type { Json, JsonObject } from '../../../machines/agent/json.js'
import type { Message } from '../../../machines/agent/messages.js'
import {
  type FailureDetails,
  createModelFailure,
  type ModelFailure,
  type ModelResponse,
} from '../../../machines/agent/model-response.js'
import type { MediaKind, Refusal } from '../../../machines/agent/refusals.js'

/** A tool as the model sees it. */
export interface ToolSpec {
  /** What the model calls it by: 1 to 64 letters, digits, `_` and `-`. */
  name: string
  /** What it does and when to use it. */
  description: string
  /** JSON Schema of the input. */
  parameters: JsonObject
  /** The provider itself searches for it (`searchesTools`): the model is told of it once it is found. */
  deferred?: true
}

/** `required`: some tool has to be called; `{ name }`: this one. */
export type ToolChoice = 'auto' | 'none' | 'required' | { name: string }

/** Sampling parameters. What is left out is left to the provider. */
export interface Sampling {
  /** 0 to 2: how freely tokens are drawn. */
  temperature?: number
  /** 0 to 1: the share of probability that tokens are drawn from. */
  topP?: number
  /** Output tokens a response. */
  maxTokens?: number
  /** -2 to 2: how much a token counts against itself for each time that it has come. */
  frequencyPenalty?: number
  /** -2 to 2: how much a token counts against itself once it has come. */
  presencePenalty?: number
  /** A whole number, for answers that can be repeated where the provider can. */
  seed?: number
  /** Texts at which the answer ends. */
  stop?: string | string[]
  /** How long a reasoning model thinks. */
  reasoningEffort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh'
}

/** JSON that the answer has to be. */
export interface ResponseFormat {
  /** What the format is called, for the provider. */
  name: string
  /** JSON Schema of the answer. */
  schema: JsonObject
  /** Whether the provider can be told to enforce the schema. */
  strict: boolean
}

/** Everything that one request to a model is made of. */
export interface ModelRequest {
  /** The system prompt; not part of the transcript. */
  instructions: string | null
  /** The transcript. The same array elements come again on the next request: cache by identity. */
  messages: readonly Message[]
  /** Guidance of the guards that rides on this one request, as a last message; never stored. */
  nudges: readonly string[]
  /** What the model may call, in the order in which they were given. */
  tools: readonly ToolSpec[]
  /** Absent: the provider's default. */
  toolChoice?: ToolChoice
  /** Absent: the answer is free text. */
  responseFormat?: ResponseFormat
  /** What is left out is left to the provider. */
  sampling: Sampling
  /** Merged into the request body last. */
  extraBody: JsonObject
  /** Whether the answer is to come in pieces. */
  stream: boolean
  /** Content that models have refused in this session: `withFallbacks` leaves it out for each of its models. Absent: none. */
  refused?: readonly Refusal[]
}

/** A call of a tool that the provider itself runs. */
export interface HostedCall {
  /** The same when it begins and when it ends. */
  id: string
  /** What is called. */
  name: string
  /** As the provider tells it, when it has ended; null when it begins. */
  item: Json | null
}

/** A part of a call's arguments, as the model writes it. */
export interface ToolCallDelta {
  /** The place of the call among the calls of the answer, from 0. */
  index: number
  /** As the answer will have it; empty while it is not known. */
  id: string
  /** As `id`. */
  name: string
  /** JSON text, added to the arguments so far. It may be empty. */
  arguments: string
}

/** What a request waits for. */
export interface SlotWait {
  /** The id of the limiter. */
  limiter: string
  /** How many requests go before this one. */
  ahead: number
}

/**
 * What a provider is told to stop by, and what it tells while it works.
 *
 * @example
 * async function request(_request: ModelRequest, { signal, onSent, onDelta }: ModelRequestOptions) {
 *   const response = await fetch('https://example.com/answer', { method: 'POST', signal })
 *   onSent?.()
 *   onDelta(await response.text(), '')
 * }
 */
export interface ModelRequestOptions {
  /** Aborts when the run is cancelled or out of time, or the answer too slow: stop then. */
  signal: AbortSignal
  /** Call it once the request is on its way: what can be done while the answer is awaited is done then. */
  onSent?: () => void
  /** Called for every piece of a streamed answer. Never throws. */
  onDelta: (text: string, reasoning: string) => void
  /**
   * Call it for each part of a call that streams, from the moment when its name is known. Absent: the run has no use for
   * it. Never throws.
   */
  onToolCallDelta?: (delta: ToolCallDelta) => void
  /**
   * Call it whenever something of the answer arrives, for `streamIdleMs` and `contentIdleMs`; with `keep_alive` when it is
   * nothing of the answer itself (headers, comments, empty pieces). Never throws.
   */
  onActivity: (kind?: 'content' | 'keep_alive') => void
  /**
   * Call it with what the run should be warned of, as `warning` events are: a setting that the model does not heed, for
   * example. The same words are told once a run. Never throws.
   */
  onWarning?: (code: string, message: string) => void
  /** Call it when a tool that the provider itself runs begins to work, and when it has ended. Never throws. */
  onHostedCall?: (call: HostedCall) => void
  /**
   * Call it before a model is asked that is not the provider's own `provider` and `model`: what is used from here on is
   * priced as its. `after`: why the one before was given up; what that had said is taken back. Await
   * what it returns; a rejection is the outcome of the request.
   */
  onFallback?: (
    next: Pick<ModelProvider, 'provider' | 'model' | 'endpoint'>,
    after: ModelFailure | null,
  ) => void | Promise<void>
  /** The run that asks. Absent: it is not known. */
  readonly runId?: string
  /**
   * Call it when the request waits for its turn, and with null when it goes on: the wait is no silence of the provider.
   * Never throws.
   */
  onWaitForSlot?: (wait: SlotWait | null) => void
  /** Ask the model that `onFallback` has told of in it: what measures the run puts its request there. Returns what it returns. */
  around?: <T>(work: () => T) => T
}

/**
 * A model behind the loop. Write one to use an API that speaks no Chat Completions.
 *
 * `request` makes exactly one attempt: no retries of its own, no timers. It resolves with a whole answer (with
 * `complete: false` when the stream closed without an end) and rejects with a `ModelError` or any other error,
 * which the runtime classifies by its status, code and words. It stops as soon as `signal` aborts.
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
  /** The provider, for people and for prices: `openai`, `azure`, `deepseek`, … */
  readonly provider: string
  /** The model that is asked for. */
  readonly model: string
  /** Others that it may ask in its place: their prices have to be known, too. */
  readonly fallbacks?: readonly Pick<ModelProvider, 'provider' | 'model'>[]
  /**
   * Whether `responseFormat` is heeded: also in requests that have tools, or only in those that have none. Absent:
   * not known, so an output schema is asked for by a tool.
   */
  readonly structuredOutput?: StructuredOutputSupport
  /**
   * Whether `toolChoice: 'none'` is heeded in a request that has tools: a last request (`limits.onLimit: 'conclude'`) keeps them
   * then, and with them what the provider's cache has of it. Absent: not known, and such a request has no tools.
   */
  readonly canForbidCalls?: boolean
  /** Whether its own search finds tools that are `deferred`: see `toolSearch({ hosted: true })`. Absent: it has none. */
  readonly searchesTools?: boolean
  /**
   * What its model takes besides text: a message with anything else is refused before it is sent, `unsupported_content`.
   * Absent: not known, and the provider's own refusal is the error.
   */
  readonly media?: readonly MediaKind[]
  /**
   * Whether what the model thought goes back with its answers as words, or with those that call tools: it takes its room in the
   * context window then. Absent: it does not.
   */
  readonly echoesReasoning?: 'always' | 'with_calls'
  /** The server that is asked, for telemetry: a name or an address, and nothing of paths or keys. Absent: not known. */
  readonly endpoint?: { readonly host: string; readonly port: number }
  /**
   * Asked when a run starts, before anything is sent or kept. Throws a ConfigError when no request could be made as
   * things are, because a key is missing for example. Absent: nothing is looked at.
   */
  check?(): void
  /** One attempt at one answer. */
  request(request: ModelRequest, options: ModelRequestOptions): Promise<ModelResponse>
}

export type StructuredOutputSupport = 'beside_tools' | 'alone'

/**
 * A request that failed, with everything that the loop wants to know about it: what a `ModelProvider` rejects with.
 * `kind` decides whether it is tried again.
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
  /** What went wrong, as plain data. */
  readonly failure: ModelFailure

  /** `status`, `retryAfterMs` and `usage` are null, and `partialText` is empty, where nothing is said of them. */
  constructor(failure: FailureDetails, options?: ErrorOptions) {
    super(failure.message, options)
    this.failure = createModelFailure(failure)
  }

  get code(): string {
    return this.failure.code
  }
}

/**
 * Lets requests of models go one after the other, as fast as a provider allows. `createLimiter` of `statewright/fleet` makes one.
 *
 * @example
 * const unlimited: RequestLimiter = { id: 'none', limit: (model) => model }
 * const model = openaiChat({ model: 'gpt-5-mini', apiKey: 'sk-…', limiter: unlimited })
 */
export interface RequestLimiter {
  /** For people, and for events. */
  readonly id: string
  /** The same model, whose requests wait for their turn. */
  limit(model: ModelProvider): ModelProvider
}

/** What is said of an option that is no limiter. */
export const limiterPhrase = "must be what createLimiter({ id: 'openai', requestsPerMinute: 600 }) returns."

export function isLimiter(value: unknown): value is RequestLimiter | undefined {
  return value === undefined || typeof (value as Partial<RequestLimiter> | null)?.limit === 'function'
}
