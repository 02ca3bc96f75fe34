import type { OpenAIChatOptions, ReasoningEcho } from './openai-options.js'
import type { ApiWire } from './exchange.js'
import type { Message } from '../../../../machines/agent/messages.js'
import { type Sampling, type ToolChoice, type ToolSpec, ModelError, type ToolCallDelta } from '../provider.js'
import { insertMediaMessages } from '../result-media.js'
import { toWellFormed } from '../plain-json.js'
import { createArranger, createCallIdMapper, toWireMessage, type WireStyle } from './wire-messages.js'
import { mergeExtraBody } from './encode-body.js'
import { omitUndefined } from '../../../../guards/lib/json.js'
import type { Json, JsonObject } from '../../../../machines/agent/json.js'
import type { TokenUsage } from '../../../../machines/agent/usage.js'
import { hasError } from '../error-body.js'
import { toBodyFailure } from '../to-model-failure.js'
import { asList, asObject, asText, isObject, memoize } from '../../base/values.js'
import { listTopLevelCitations, readCitations } from '../citations.js'
import { type AnswerFormat, type ResponseFold, type Delta, noDelta, refuseTooLarge } from './answer-reader.js'
import { isThought, ThinkSplitter } from './think-tags.js'
import { ToolCallFold } from './tool-call-fold.js'
import { readUsage } from './read-usage.js'

export function createChatWire(
  options: OpenAIChatOptions,
  provider: string,
  echoReasoning: ReasoningEcho,
): ApiWire {
  return {
    path: '/chat/completions',
    format: chatFormat,
    toBody: createChatBodyBuilder({
      model: options.model,
      maxTokensField:
        options.maxTokensField ??
        (provider === 'openai' || provider === 'azure' ? 'max_completion_tokens' : 'max_tokens'),
      echoReasoning,
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
export function createChatBodyBuilder(options: ChatBodyOptions): ApiWire['toBody'] {
  const arrange = createArranger({ bridge: options.isMistral })
  const style: WireStyle = {
    echoReasoning: options.echoReasoning,
    callId: createCallIdMapper(options.model, options.isMistral),
  }

  const wireOf = memoize((message: Message) => toWireMessage(message, style))
  const functionOf = memoize(({ name, description, parameters }: ToolSpec) =>
    toWellFormed({ type: 'function', function: { name, description, parameters } }),
  )

  return (request) => {
    const { tools, toolChoice, responseFormat, stream } = request
    const body: Record<string, unknown> = {
      model: options.model,
      messages: arrange(request, insertMediaMessages(request.messages).map(wireOf)),
      ...(tools.length > 0 && { tools: tools.map(functionOf) }),
      ...(tools.length > 0 && toolChoice !== undefined && { tool_choice: toWireChoice(toolChoice) }),
      ...(responseFormat && { response_format: { type: 'json_schema', json_schema: responseFormat } }),
      ...toWireSampling(request.sampling, options.maxTokensField),
      stream,
      ...(stream && options.streamOptions && { stream_options: { include_usage: true } }),
    }
    return mergeExtraBody(body, request.extraBody)
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
  createFold: createChatFold,
}

function createChatFold(reportsCalls = false): ResponseFold {
  const details: JsonObject[] = []
  const cited: Json[] = []
  const think = new ThinkSplitter()
  let citedBeside: readonly Json[] = []
  let text = ''
  let reasoning = ''
  let refusal = ''
  let finishReason: string | null = null
  let usage: TokenUsage | null = null
  let model: string | null = null
  let id = ''
  let isLost = false
  let progress = 0
  let size = 0
  // Most responses have neither calls nor details.
  let calls: ToolCallFold | null = null
  /** `function_call`, the deprecated form of `tool_calls`. A response may contain both. */
  let oldCall: ToolCallFold | null = null

  function add(delta: Delta): Delta {
    text += delta.text
    reasoning += delta.reasoning
    return delta
  }

  function refuseErrors(chunk: JsonObject, choice: JsonObject | null): void {
    const body = isErrorBody(chunk) ? chunk : choice
    if (body === null || !isErrorBody(body)) return
    const error =
      body.finish_reason === 'error' && !hasError(body.error)
        ? { message: 'its finish reason is "error"' }
        : body
    throw new ModelError({ ...toBodyFailure(error), partialText: text, usage })
  }

  /** Some servers send the whole response so far as a message next to the delta, or only that message. */
  function pushChoice(choice: JsonObject, whole: boolean): Delta {
    const delta = asObject(choice.delta)
    const message = toWholeDelta(choice.message)
    const [first, second] = whole ? [message, delta] : [delta, message]
    const added = first === null ? noDelta : pushDelta(first)
    const isLast = whole || first === null || Boolean(choice.finish_reason)
    return progress > 0 || second === null || !isLast ? added : pushDelta(second)
  }

  function pushDelta(delta: JsonObject): Delta {
    const content = delta.content == null ? noDelta : readDeltaContent(delta.content)
    const shown = think.push(content.text)
    const thoughts = readDeltaReasoning(delta) + content.reasoning + shown.reasoning
    if (delta.refusal != null) refusal += asText(delta.refusal)
    if (delta.annotations != null) cited.push(...asList(delta.annotations))
    if (delta.reasoning_details != null) addDetails(details, delta.reasoning_details)
    size += content.text.length + thoughts.length
    let parts: ToolCallDelta[] | undefined
    if (delta.tool_calls != null) {
      if (reportsCalls) parts = []
      size += (calls ??= new ToolCallFold()).push(delta.tool_calls, parts)
    }
    if (delta.function_call != null)
      size += (oldCall ??= new ToolCallFold()).push([{ index: 0, function: delta.function_call }])
    refuseTooLarge(size)
    const begun = (calls?.length ?? 0) + (oldCall?.length ?? 0) + details.length
    progress = size + refusal.length + begun + cited.length
    return add({ text: shown.text, reasoning: thoughts, ...(parts && { calls: parts }) })
  }

  return {
    get progress() {
      return progress + (finishReason === null ? 0 : 1)
    },

    /** Only `[DONE]` ends the stream, because usage may follow the finish reason. */
    ended: false,

    get finished() {
      return finishReason !== null && !isLost
    },

    push(value, whole = false) {
      const chunk = asObject(value)
      if (chunk === null) return noDelta
      const choice = asObject(asList(chunk.choices).find((one) => isObject(one) && (one.index ?? 0) === 0))
      model ??= asText(chunk.model) || null
      id ||= asText(chunk.id)
      usage =
        readUsage(chunk.usage) ??
        readUsage(choice?.usage) ??
        readUsage(asObject(chunk.x_groq)?.usage) ??
        usage
      refuseErrors(chunk, choice)
      const beside = listTopLevelCitations(chunk)
      if (beside.length > 0) citedBeside = beside
      if (choice === null) return noDelta
      const added = pushChoice(choice, whole)
      finishReason = asText(choice.finish_reason) || finishReason
      return added
    },

    markLost() {
      isLost ||= finishReason === null
    },

    flush: () => add(think.flush()),

    getPartial: () => ({ text, usage }),

    getResponse(ended) {
      const toolCalls = calls?.result() ?? []
      const annotations = readCitations([...cited, ...citedBeside])
      return {
        text,
        reasoning,
        refusal: refusal || null,
        toolCalls: toolCalls.length > 0 ? toolCalls : (oldCall?.result() ?? []),
        finishReason,
        complete: !isLost && (ended || finishReason !== null),
        usage,
        model,
        ...(details.length > 0 && { reasoningDetails: details }),
        ...(annotations.length > 0 && { annotations }),
        ...(id !== '' && { id }),
      }
    },
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
