import { isMistral } from './chat-wire.js'
import type { ApiWire } from './exchange.js'
import type { OpenAIResponsesOptions } from './openai-options.js'
import { createResponsesFormat } from './responses-fold.js'
import type { Json } from '../../../../machines/agent/json.js'
import type { Message, ToolCall, ContentPart } from '../../../../machines/agent/messages.js'
import { ModelError, type ModelRequest, type Sampling, type ToolChoice, type ToolSpec } from '../provider.js'
import { asList, memoize } from '../../base/values.js'
import { omitUndefined } from '../../../../guards/lib/json.js'
import { toWellFormed } from '../plain-json.js'
import {
  createArranger,
  createCallIdMapper,
  toWireMessage,
  type WireMessage,
  type WireStyle,
} from './wire-messages.js'
import { mergeExtraBody } from './encode-body.js'
import {
  createAnswerFilter,
  toApprovalAnswer,
  listHostedCalls,
  toApprovalItem,
  isApprovalRequest,
  restoreItems,
} from './response-items.js'

/** Whether this is an OpenAI model without reasoning. Such models reject requests for encrypted reasoning. */
function isNonReasoningModel(model: string): boolean {
  return /^(ft:)?(openai[./])?(gpt-3|gpt-4|chatgpt-4|gpt-5(\.\d)?-chat)/.test(model)
}

const maxCallIdLength = 64

/** Converts each message once, as for Chat Completions, and then splits it into items. */
export function createResponsesWire(options: OpenAIResponsesOptions, provider: string): ApiWire {
  const from = `responses/${provider}`
  const { model, hostedTools = [], reasoningSummary } = options
  const bridge = isMistral(provider, model)
  const { encryptedReasoning = !isNonReasoningModel(model) } = options
  const arrange = createArranger({ bridge, most: Infinity })
  const style: WireStyle = {
    echoReasoning: 'none',
    callId: createCallIdMapper(model, bridge, maxCallIdLength),
    resultParts: true,
  }

  const wireOf = memoize((message: Message) => toWireWithItems(message, toWireMessage(message, style), from))
  const answerOf = memoize(toApprovalAnswer)
  const functionOf = memoize((tool: ToolSpec) => toWellFormed(toFunction(tool)))
  /** By `store`, because agents may have different settings. */
  const itemsOf = {
    true: memoize((message: WireMessage) => toInputItems(message, true)),
    false: memoize((message: WireMessage) => toInputItems(message, false)),
  }

  function inputOf(request: ModelRequest, isStored: boolean): object[] {
    const isAnswer = createAnswerFilter(from)
    const wire = request.messages.map((message) => (isAnswer(message) ? answerOf(message) : wireOf(message)))
    return makeCallIdsUnique(arrange(request, wire).map((message) => itemsOf[`${isStored}`](message)))
  }

  const toBody = (request: ModelRequest) => {
    const { toolChoice, responseFormat, stream, extraBody } = request
    const isStored = extraBody['store'] === true
    const searches =
      request.tools.some(({ deferred }) => deferred) &&
      !hostedTools.some(({ type }) => type === 'tool_search')
    const tools = [
      ...request.tools.map(functionOf),
      ...hostedTools,
      ...(searches ? [{ type: 'tool_search' }] : []),
    ]
    const body: Record<string, unknown> = {
      model,
      input: inputOf(request, isStored),
      ...(tools.length > 0 && { tools }),
      ...(tools.length > 0 && toolChoice !== undefined && { tool_choice: toWireChoice(toolChoice) }),
      ...(responseFormat && { text: { format: { type: 'json_schema', ...responseFormat } } }),
      ...toWireSampling(request.sampling, reasoningSummary),
      store: false,
      ...(encryptedReasoning && !isStored && { include: ['reasoning.encrypted_content'] }),
      stream,
    }
    return mergeExtraBody(body, extraBody)
  }

  return {
    path: '/responses',
    format: createResponsesFormat(from),
    toBody,
    send: (client, body, sending) => client.responses.create(body as never, sending).asResponse(),
  }
}

/** Adds the stored items to the message if the message still matches them. */
function toWireWithItems(message: Message, wire: WireMessage | null, from: string): WireMessage | null {
  if (message.role !== 'assistant') return wire
  const { content, refusal = '', media = [], provider_items: stored } = message
  const sent = (wire?.['tool_calls'] ?? []) as readonly WireCall[]
  const pending = listHostedCalls(message, from)
  // The provider has its own names for hosted calls.
  const calls = sent.map((call, i) => pending.find((one) => one === message.tool_calls?.[i]) ?? call)
  const own = stored?.from === from ? asList(stored.items) : null
  const items = own && restoreItems(own, content ?? '', refusal, calls, media)
  if (items !== null) return { role: 'assistant', ...wire, items: toWellFormed(items as Json[]) }
  if (pending.length === 0) return wire
  // Items, because they are not joined with the message before.
  const rebuilt = { role: 'assistant', ...wire, tool_calls: calls }
  return { ...rebuilt, items: toInputItems(rebuilt, false) }
}

/** A result refers to its call only by id, and some providers count from `call_0` in each response. */
function makeCallIdsUnique(groups: readonly (readonly object[])[]): object[] {
  const counts = new Map<string, number>()
  const used = new Set<string>()
  const renamed = new Map<string, string>()
  return groups.flat().map((item) => {
    const type = Reflect.get(item, 'type') as unknown
    const key = idKeys[String(type)] ?? 'call_id'
    const id = Reflect.get(item, key) as unknown
    if (typeof id !== 'string') return item
    if (type === 'function_call' || type === 'mcp_approval_request') {
      let count = (counts.get(id) ?? 0) + 1
      while (used.has(numberId(id, count))) count += 1
      counts.set(id, count)
      renamed.set(id, numberId(id, count))
      used.add(numberId(id, count))
    }
    const name = renamed.get(id) ?? id
    return name === id ? item : { ...item, [key]: name }
  })
}

const idKeys: Readonly<Record<string, string>> = {
  mcp_approval_request: 'id',
  mcp_approval_response: 'approval_request_id',
}

function numberId(id: string, count: number): string {
  return count === 1 ? id : `${id.slice(0, maxCallIdLength - 8)}_${count}`
}

/** Converts a tool to a function. By default, the API treats functions as strict, but users write the schemas. */
function toFunction({ name, description, parameters, deferred }: ToolSpec): object {
  const loading = deferred && { defer_loading: true }
  return { type: 'function', name, description, parameters, strict: false, ...loading }
}

function toWireChoice(choice: ToolChoice): unknown {
  return typeof choice === 'string' ? choice : { type: 'function', name: choice.name }
}

const unsupportedKeys: readonly (keyof Sampling)[] = ['frequencyPenalty', 'presencePenalty', 'seed', 'stop']

function toWireSampling(sampling: Sampling, summary: string | undefined): Record<string, unknown> {
  const refused = unsupportedKeys.find((key) => sampling[key] !== undefined)
  if (refused !== undefined) {
    const message = `The Responses API has no sampling.${refused}. Remove it, or use extraBody for custom servers.`
    throw new ModelError({ kind: 'fatal', code: 'unsupported_parameter', message })
  }
  const { temperature, topP, maxTokens, reasoningEffort: effort } = sampling
  const reasoning = omitUndefined({ effort, summary })
  return omitUndefined({
    temperature,
    top_p: topP,
    max_output_tokens: maxTokens,
    reasoning: Object.keys(reasoning).length > 0 ? reasoning : undefined,
  })
}

type InputItem = Readonly<Record<string, unknown>>

type WireCall = Pick<ToolCall, 'id' | 'function' | 'hosted'>

/** Converts a chat message. `isStored` means that the provider stores responses and knows items by id. */
function toInputItems(message: WireMessage, isStored: boolean): readonly InputItem[] {
  const { role, content } = message
  if (Array.isArray(message['items'])) return keepSendable(message['items'] as InputItem[], isStored)
  if (role === 'tool')
    return [{ type: 'function_call_output', call_id: message['tool_call_id'], output: toInputParts(content) }]
  const words = content == null ? [] : [{ role, content: toInputParts(content) }]
  const calls = (message['tool_calls'] ?? []) as readonly WireCall[]
  const asking = calls.map((call) =>
    call.hosted
      ? toWellFormed(toApprovalItem(call))
      : { type: 'function_call', call_id: call.id, ...call.function },
  )
  return [...words, ...asking]
}

/** Removes reasoning that the provider would reject, and the ids that refer to it. */
function keepSendable(all: readonly InputItem[], isStored: boolean): readonly InputItem[] {
  const items = all.slice(0, all.findLastIndex((item) => !isReasoning(item)) + 1)
  const isLost = (item: InputItem) =>
    isReasoning(item) && !item['encrypted_content'] && asList(item['content']).length === 0
  if (isStored || !items.some(isLost)) return items
  return items.filter((item) => !isLost(item)).map(stripId)
}

/** Removes the id of an item. The ids of approval requests are kept, because answers refer to them. */
function stripId(item: InputItem): InputItem {
  const { id: _id, ...rest } = item
  return isApprovalRequest(item) ? item : rest
}

function isReasoning({ type }: InputItem): boolean {
  return type === 'reasoning'
}

function toInputParts(content: unknown): unknown {
  return Array.isArray(content) ? content.map(toInputPart) : content
}

function toInputPart(part: ContentPart): InputItem {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text }
    case 'image_url': {
      const { url, detail = 'auto' } = part.image_url
      return { type: 'input_image', image_url: url, detail }
    }
    case 'file':
      return { type: 'input_file', ...part.file }
    default:
      return { ...part }
  }
}
