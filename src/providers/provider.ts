import type { JsonObject } from '../../machines/agent/json.js'
import type { Message } from '../../machines/agent/messages.js'
import type { ModelFailure, ModelResponse } from '../../machines/agent/response.js'

/** A tool as the model sees it. */
export interface ToolSpec {
  name: string
  description: string
  /** JSON Schema of the input. */
  parameters: JsonObject
}

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
  name: string
  schema: JsonObject
  /** Whether the provider can be told to enforce the schema. */
  strict: boolean
}

export interface ModelRequest {
  /** The system prompt; not part of the transcript. */
  instructions: string | null
  /** The transcript. The same array elements come again on the next request: cache by identity. */
  messages: readonly Message[]
  /** Guidance of the guards that rides on this one request, as a last message; never stored. */
  nudges: readonly string[]
  tools: readonly ToolSpec[]
  toolChoice?: ToolChoice
  /** Absent: the answer is free text. */
  responseFormat?: ResponseFormat
  sampling: Sampling
  /** Merged into the request body last. */
  extraBody: JsonObject
  stream: boolean
}

export interface ModelRequestOptions {
  signal: AbortSignal
  /** Call it once the request is on its way: what can be done while the answer is awaited is done then. */
  onSent?: () => void
  /** Called for every piece of a streamed answer. Never throws. */
  onDelta: (text: string, reasoning: string) => void
  /**
   * Call it whenever something of the answer arrives, for `streamIdleMs` and `contentIdleMs`; with `keep_alive` when it is
   * nothing of the answer itself (headers, comments, empty pieces). Never throws.
   */
  onActivity: (kind?: 'content' | 'keep_alive') => void
}

/**
 * A model behind the loop. Write one to use an API that speaks no Chat Completions.
 *
 * `request` makes exactly one attempt: no retries of its own, no timers. It resolves with a whole answer (with
 * `complete: false` when the stream closed without an end) and rejects with a `ModelError` or any other error,
 * which the runtime classifies by its status, code and words. It stops as soon as `signal` aborts.
 */
export interface ModelProvider {
  /** The provider, for people and for prices: `openai`, `azure`, `deepseek`, … */
  readonly provider: string
  /** The model that is asked for. */
  readonly model: string
  /**
   * Whether `responseFormat` is heeded: also in requests that have tools, or only in those that have none. Absent:
   * nobody knows, so an output schema is asked for by a tool.
   */
  readonly structuredOutput?: StructuredOutputSupport
  /**
   * Asked when a run starts, before anything is sent or kept. Throws a ConfigError when no request could be made as
   * things are, because a key is missing for example. Absent: nothing is looked at.
   */
  check?(): void
  request(request: ModelRequest, options: ModelRequestOptions): Promise<ModelResponse>
}

export type StructuredOutputSupport = 'beside_tools' | 'alone'

/** A request that failed, with everything that the loop wants to know about it. */
export class ModelError extends Error {
  override readonly name = 'ModelError'
  readonly failure: ModelFailure

  constructor(failure: ModelFailure, options?: ErrorOptions) {
    super(failure.message, options)
    this.failure = failure
  }

  get code(): string {
    return this.failure.code
  }
}
