import { getReasoningEcho, type OpenAIChatOptions, type ReasoningEcho } from './openai-options.js'
import type { ApiWire } from './exchange.js'
import type { Message } from '../../../../machines/agent/messages.js'
import {
  type ModelRequest,
  type Sampling,
  type ToolChoice,
  type ToolSpec,
  ModelError,
  type ToolCallDelta,
} from '../provider.js'
import { insertMediaMessages } from '../result-media.js'
import { toWellFormed } from '../plain-json.js'
import {
  arrangeMessages,
  toTextMessages,
  createTextMessageCache,
  createCallIdMapper,
  toWireMessage,
  type WireMessage,
  type WireStyle,
} from './wire-messages.js'
import { createBodyEncoder, type RequestBody, mergeExtraBody } from './encode-body.js'
import { omitUndefined } from '../../../../guards/lib/json.js'
import type { Json, JsonObject } from '../../../../machines/agent/json.js'
import type { ModelResponse } from '../../../../machines/agent/model-response.js'
import type { TokenUsage } from '../../../../machines/agent/usage.js'
import { hasError } from '../error-body.js'
import { toBodyFailure } from '../to-model-failure.js'
import { asList, asObject, asText, isObject, memoize } from '../../base/values.js'
import { listTopLevelCitations, readCitations } from '../citations.js'
import { type AnswerFormat, type ResponseFold, type Delta, noDelta, refuseTooLarge } from './answer-reader.js'
import { isThought } from './response-items.js'
import { ThinkSplitter } from './think-tags.js'
import { ToolCallFold } from './tool-call-fold.js'
import { readUsage } from './read-usage.js'

export function createChatWire(options: OpenAIChatOptions, provider: string): ApiWire {
  return {
    path: '/chat/completions',
    format: chatFormat,
    bodies: createChatBodyBuilder({
      model: options.model,
      maxTokensField:
        options.maxTokensField ??
        (provider === 'openai' || provider === 'azure' ? 'max_completion_tokens' : 'max_tokens'),
      echoReasoning: getReasoningEcho(provider, options.echoReasoning),
      // Mistral rejects unknown fields and reports usage anyway.
      streamOptions: provider !== 'mistral',
      isMistral: isMistral(provider, options.model),
    }),
    send: (client, body, sending) => client.chat.completions.create(body as never, sending).asResponse(),
  }
}

/** Whether Mistral's rules apply. The rules apply to Mistral models on any server. */
export function isMistral(provider: string, model: string): boolean {
  return provider === 'mistral' || /(mis|mix|minis|codes|devs|magis|pix|vox)tral/i.test(model)
}

export interface ChatBodyOptions {
  model: string
  maxTokensField: 'max_tokens' | 'max_completion_tokens'
  echoReasoning: ReasoningEcho
  streamOptions: boolean
  isMistral: boolean
}

/** Converts and serializes each message and tool once, because every request sends the whole transcript. */
export function createChatBodyBuilder(options: ChatBodyOptions) {
  const systemOf = createTextMessageCache('system')
  const style: WireStyle = {
    echoReasoning: options.echoReasoning,
    callId: createCallIdMapper(options.model, options.isMistral),
  }

  const wireOf = memoize((message: Message) => toWireMessage(message, style))
  const functionOf = memoize(({ name, description, parameters }: ToolSpec) =>
    toWellFormed({ type: 'function', function: { name, description, parameters } }),
  )

  function messagesOf({ instructions, messages, nudges }: ModelRequest): WireMessage[] {
    const wire = systemOf(toWellFormed(instructions))
    for (const message of insertMediaMessages(messages)) {
      const text = wireOf(message)
      if (text !== null) wire.push(text)
    }
    wire.push(...toTextMessages('user', toWellFormed(nudges.join('\n\n'))))
    return arrangeMessages(wire, { bridge: options.isMistral })
  }

  return {
    body(request: ModelRequest): RequestBody {
      const { tools, toolChoice, responseFormat, stream } = request
      const body: Record<string, unknown> = {
        model: options.model,
        messages: messagesOf(request),
        ...(tools.length > 0 && { tools: tools.map(functionOf) }),
        ...(tools.length > 0 && toolChoice !== undefined && { tool_choice: toWireChoice(toolChoice) }),
        ...(responseFormat && { response_format: { type: 'json_schema', json_schema: responseFormat } }),
        ...toWireSampling(request.sampling, options.maxTokensField),
        stream,
        ...(stream && options.streamOptions && { stream_options: { include_usage: true } }),
      }
      return mergeExtraBody(body, request.extraBody)
    },

    encode: createBodyEncoder(),
  }
}

function toWireChoice(choice: ToolChoice): unknown {
  return typeof choice === 'string' ? choice : { type: 'function', function: { name: choice.name } }
}

function toWireSampling(sampling: Sampling, maxTokensField: string): Record<string, unknown> {
  const { temperature, topP, maxTokens, frequencyPenalty, presencePenalty, seed, stop } = sampling
  return omitUndefined({
    temperature,
    top_p: topP,
    [maxTokensField]: maxTokens,
    frequency_penalty: frequencyPenalty,
    presence_penalty: presencePenalty,
    seed,
    stop,
    reasoning_effort: sampling.reasoningEffort,
  })
}

export const chatFormat: AnswerFormat = {
  displayName: 'chat completion',
  isWhole: (value) => Array.isArray(asObject(value)?.choices),
  createFold: (reportsCalls = false) => new ChatFold(reportsCalls),
}

class ChatFold implements ResponseFold {
  readonly #reportsCalls: boolean
  #text = ''
  #reasoning = ''
  #refusal = ''
  #finishReason: string | null = null
  #usage: TokenUsage | null = null
  #model: string | null = null
  #id = ''
  #lost = false
  #progress = 0
  #size = 0
  // Most responses have neither calls nor details.
  #calls: ToolCallFold | null = null
  /** `function_call`, the deprecated form of `tool_calls`. A response may contain both. */
  #oldCall: ToolCallFold | null = null
  readonly #details: JsonObject[] = []
  readonly #cited: Json[] = []
  #citedBeside: readonly Json[] = []
  readonly #think = new ThinkSplitter()

  constructor(reportsCalls: boolean) {
    this.#reportsCalls = reportsCalls
  }

  get progress(): number {
    return this.#progress + (this.#finishReason === null ? 0 : 1)
  }

  /** Whether the stream has ended. Only `[DONE]` ends the stream, because usage may follow the finish reason. */
  get ended(): boolean {
    return false
  }

  get finished(): boolean {
    return this.#finishReason !== null && !this.#lost
  }

  push(value: unknown, whole = false): Delta {
    const chunk = asObject(value)
    if (chunk === null) return noDelta
    const choice = findFirstChoice(chunk.choices)
    this.#model ??= asText(chunk.model) || null
    this.#id ||= asText(chunk.id)
    this.#usage =
      readUsage(chunk.usage) ??
      readUsage(choice?.usage) ??
      readUsage(asObject(chunk.x_groq)?.usage) ??
      this.#usage
    this.#refuseErrors(chunk, choice)
    const beside = listTopLevelCitations(chunk)
    if (beside.length > 0) this.#citedBeside = beside
    if (choice === null) return noDelta
    const added = this.#pushChoice(choice, whole)
    this.#finishReason = asText(choice.finish_reason) || this.#finishReason
    return added
  }

  markLost(): void {
    this.#lost ||= this.#finishReason === null
  }

  flush(): Delta {
    return this.#add(this.#think.flush())
  }

  getPartial(): Pick<ModelResponse, 'text' | 'usage'> {
    return { text: this.#text, usage: this.#usage }
  }

  getResponse(ended: boolean): ModelResponse {
    const toolCalls = this.#calls?.result() ?? []
    const annotations = readCitations([...this.#cited, ...this.#citedBeside])
    return {
      text: this.#text,
      reasoning: this.#reasoning,
      refusal: this.#refusal || null,
      toolCalls: toolCalls.length > 0 ? toolCalls : (this.#oldCall?.result() ?? []),
      finishReason: this.#finishReason,
      complete: !this.#lost && (ended || this.#finishReason !== null),
      usage: this.#usage,
      model: this.#model,
      ...(this.#details.length > 0 && { reasoningDetails: this.#details }),
      ...(annotations.length > 0 && { annotations }),
      ...(this.#id !== '' && { id: this.#id }),
    }
  }

  #add(delta: Delta): Delta {
    this.#text += delta.text
    this.#reasoning += delta.reasoning
    return delta
  }

  #refuseErrors(chunk: JsonObject, choice: JsonObject | null): void {
    const body = isErrorBody(chunk) ? chunk : choice
    if (body === null || !isErrorBody(body)) return
    const error =
      body.finish_reason === 'error' && !hasError(body.error)
        ? { message: 'its finish reason is "error"' }
        : body
    throw new ModelError({ ...toBodyFailure(error), partialText: this.#text, usage: this.#usage })
  }

  /** Some servers send the whole response so far as a message next to the delta, or only that message. */
  #pushChoice(choice: JsonObject, whole: boolean): Delta {
    const delta = asObject(choice.delta)
    const message = toWholeDelta(choice.message)
    const first = whole ? message : delta
    const second = whole ? delta : message
    const added = first === null ? noDelta : this.#pushDelta(first)
    const isLast = whole || first === null || Boolean(choice.finish_reason)
    return this.#progress > 0 || second === null || !isLast ? added : this.#pushDelta(second)
  }

  #pushDelta(delta: JsonObject): Delta {
    const content = delta.content == null ? noDelta : readDeltaContent(delta.content)
    const shown = this.#think.push(content.text)
    const thoughts = readDeltaReasoning(delta) + content.reasoning + shown.reasoning
    if (delta.refusal != null) this.#refusal += asText(delta.refusal)
    if (delta.annotations != null) this.#cited.push(...asList(delta.annotations))
    if (delta.reasoning_details != null) addDetails(this.#details, delta.reasoning_details)
    this.#size += content.text.length + thoughts.length
    let calls: ToolCallDelta[] | undefined
    if (delta.tool_calls != null) {
      if (this.#reportsCalls) calls = []
      this.#size += (this.#calls ??= new ToolCallFold()).push(delta.tool_calls, calls)
    }
    if (delta.function_call != null) {
      this.#oldCall ??= new ToolCallFold()
      this.#size += this.#oldCall.push([{ index: 0, function: delta.function_call }])
    }
    refuseTooLarge(this.#size)
    const begun = (this.#calls?.length ?? 0) + (this.#oldCall?.length ?? 0) + this.#details.length
    this.#progress = this.#size + this.#refusal.length + begun + this.#cited.length
    return this.#add({ text: shown.text, reasoning: thoughts, ...(calls && { calls }) })
  }
}

/** Converts a `message` to a delta. The calls of the message are identified by position. */
function toWholeDelta(message: unknown): JsonObject | null {
  const delta = asObject(message)
  if (delta?.tool_calls == null) return delta
  return {
    ...delta,
    tool_calls: asList(delta.tool_calls).flatMap((call, index): JsonObject[] => {
      const entry = asObject(call)
      return entry === null ? [] : [{ ...entry, index }]
    }),
  }
}

function findFirstChoice(choices: unknown): JsonObject | null {
  return asObject(asList(choices).find((choice) => isObject(choice) && (choice.index ?? 0) === 0))
}

function isErrorBody(body: JsonObject): boolean {
  return (
    hasError(body.error) || body.object === 'error' || body.type === 'error' || body.finish_reason === 'error'
  )
}

/** Reads the content, which is a string or a list of parts that may include thoughts (Mistral). */
function readDeltaContent(content: unknown): Delta {
  if (typeof content === 'string') return { text: content, reasoning: '' }
  const delta = { text: '', reasoning: '' }
  for (const item of asList(content)) {
    const part = asObject(item)
    if (part?.type === 'thinking') delta.reasoning += readThoughts(part.thinking)
    else if (part !== null && isThought(part)) delta.reasoning += readThoughts(part.text)
    else delta.text += typeof item === 'string' ? item : asText(part?.text)
  }
  return delta
}

/** Reads the reasoning from the first non-empty field, because the same reasoning may occur in several fields. */
function readDeltaReasoning(delta: JsonObject): string {
  const reasoning = asText(delta.reasoning_content) || asText(delta.reasoning)
  if (reasoning !== '' || delta.reasoning_details == null) return reasoning
  return asList(delta.reasoning_details)
    .map((detail) => asText(asObject(detail)?.text) || asText(asObject(detail)?.summary))
    .join('')
}

function readThoughts(value: unknown): string {
  return typeof value === 'string' ? value : readDeltaContent(value).text
}

/** Joins pieces of the same type, index and id. The entries must be sent back unchanged. */
function addDetails(entries: JsonObject[], details: unknown): void {
  for (const detail of asList(details)) {
    const entry = asObject(detail)
    const last = entries.at(-1)
    if (entry === null) continue
    if (last === undefined || !isContinuation(last, entry)) entries.push({ ...entry })
    else
      for (const [key, value] of Object.entries(entry)) {
        if (key === 'text' || key === 'summary') last[key] = asText(last[key]) + asText(value)
        else if (value !== null) last[key] = value
      }
  }
}

function isContinuation(last: JsonObject, next: JsonObject): boolean {
  return (
    (next.type === 'reasoning.text' || next.type === 'reasoning.summary') &&
    last.type === next.type &&
    last.index === next.index &&
    (next.id == null || last.id == null || last.id === next.id)
  )
}
