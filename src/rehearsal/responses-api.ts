import * as z from 'zod'
import { type EncodedStream, type Envelope, formatTyped, type ProviderApi } from './planned-response.js'
import { encodeOpenAIError, listCalls, countUsage, isUnfinished, splitText } from './chat-api.js'
import { parseRequest, type ChatRequest, type WireMessage } from './chat-request.js'
import type { Turn } from './turn-schema.js'

/** Chat Completions parameters that the Responses API rejects. */
const chatParameters = [
  'messages',
  'max_tokens',
  'max_completion_tokens',
  'reasoning_effort',
  'response_format',
  'seed',
  'stop',
  'stream_options',
]

/**
 * Problems in a request's items that OpenAI rejects: calls without outputs, and reasoning without its following
 * item.
 */
export function findItemsProblem(request: ResponsesRequest): { message: string; param: string } | null {
  const unknown = chatParameters.find((key) => Object.hasOwn(request, key))
  if (unknown !== undefined) return { message: `Unknown parameter: '${unknown}'.`, param: unknown }
  const items = listItems(request)
  const calls = new Map<string, boolean>()
  const requests = new Map<string, boolean>()
  for (const [i, item] of items.entries()) {
    const at = `input[${i}]`
    const found = findItemProblem(item, items[i + 1], request, { calls, requests })
    if (found !== null) return { message: `${at} ${found}`, param: at }
  }
  const open = [...calls].find(([, isAnswered]) => !isAnswered)
  return open === undefined
    ? null
    : { message: `No tool output found for function call ${open[0]}.`, param: 'input' }
}

function findItemProblem(
  { type, id, call_id: callId, content, ...item }: InputItem,
  next: InputItem | undefined,
  { store }: ResponsesRequest,
  { calls, requests }: Record<'calls' | 'requests', Map<string, boolean>>,
): string | null {
  if (type === 'reasoning') {
    const isBare = !item['encrypted_content'] && !(Array.isArray(content) && content.length > 0)
    if (store === false && isBare)
      return `is the item '${String(id)}', which is not found: items are not persisted when store is false.`
    if (next === undefined || !isModelItem(next))
      return `is the reasoning '${String(id)}', which was provided without its required following item.`
  }
  if (type === 'function_call') {
    if (!callId || callId.length > 64) return 'must have a call_id of 1 to 64 characters.'
    if (calls.has(callId)) return `has the call_id '${callId}', which another call already uses.`
    calls.set(callId, false)
  }
  if (type === 'mcp_approval_request') {
    const missing = ['server_label', 'name', 'arguments'].find((key) => typeof item[key] !== 'string')
    if (missing !== undefined) return `must have a string field '${missing}'.`
    if (typeof id !== 'string' || requests.has(id)) return 'must have a unique id.'
    requests.set(id, false)
  }
  if (type === 'mcp_approval_response') {
    const requestId = String(item['approval_request_id'])
    if (typeof item['approve'] !== 'boolean') return "must have 'approve': true or false."
    if (requests.get(requestId) !== false)
      return `answers '${requestId}', but no such approval was requested.`
    requests.set(requestId, true)
  }
  if (type === 'function_call_output') {
    if (!calls.has(callId ?? '')) return `is the output of '${callId}', but no such call was made.`
    calls.set(callId ?? '', true)
  }
  return null
}

export const responsesApi: ProviderApi = {
  name: 'responses',
  idPrefix: 'resp_rehearsal_',
  limits: { calls: Infinity, id: 64 },
  readRequest: (sent) => toChatRequest(readResponsesRequest(sent)),
  findStrictProblem: (sent) => findItemsProblem(readResponsesRequest(sent)),
  formatRefusal: ({ body }) => body,
  createEncoder: (turn, request, envelope) => ({
    encodeBody: () => toDocument(turn, request, envelope),
    encodeStream: () => toStream(turn, request, envelope),
    encodeError: encodeOpenAIError,
  }),
}

const item = z.looseObject({
  type: z.string().optional(),
  role: z.enum(['system', 'developer', 'user', 'assistant']).optional(),
  content: z.unknown().optional(),
  id: z.string().nullish(),
  call_id: z.string().nullish(),
  name: z.string().optional(),
  server_label: z.string().optional(),
  arguments: z.unknown().optional(),
  output: z.unknown().optional(),
})

const responsesRequest = z.looseObject({
  model: z.string().min(1),
  input: z.union([z.string(), z.array(item).min(1)], 'expected a string or a list of items'),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  store: z.boolean().nullish(),
  include: z.array(z.string()).nullish(),
  tools: z.array(z.looseObject({ type: z.string(), name: z.string().optional() })).nullish(),
  user: z.string().nullish(),
})

export type ResponsesRequest = z.infer<typeof responsesRequest>
export type InputItem = z.infer<typeof item>

export function readResponsesRequest(sent: unknown): ResponsesRequest {
  return parseRequest(responsesRequest, sent)
}

export function listItems({ input }: ResponsesRequest): readonly InputItem[] {
  return typeof input === 'string' ? [{ role: 'user', content: input } as InputItem] : input
}

/**
 * Converts the request to Chat Completions so that the same checks apply. Consecutive model items become one
 * message.
 */
export function toChatRequest(request: ResponsesRequest): ChatRequest {
  const { input: _input, instructions, tools, ...rest } = request
  const messages: WireMessage[] = instructions ? [{ role: 'system', content: instructions }] : []
  let answer: WireMessage | null = null
  for (const item of listItems(request)) {
    if (isModelItem(item)) {
      if (answer === null) messages.push((answer = { role: 'assistant' }))
      addToAnswer(answer, item)
      continue
    }
    answer = null
    messages.push(toToolMessage(item) ?? { role: item.role ?? 'user', content: toParts(item.content) })
  }
  return {
    ...rest,
    messages,
    ...(tools && {
      tools: tools.map(({ type, name, description, parameters, ...others }) =>
        type === 'function'
          ? { type, function: { name: name ?? '', description, parameters } }
          : { type, name, ...others },
      ),
    }),
  }
}

function toToolMessage({ type, call_id, output, ...item }: InputItem): WireMessage | null {
  if (type === 'function_call_output')
    return { role: 'tool', tool_call_id: call_id ?? '', content: toParts(output) }
  if (type !== 'mcp_approval_response') return null
  const { approval_request_id: id, approve, reason } = item
  const words =
    approve === true ? 'Approved.' : `Rejected. ${typeof reason === 'string' ? reason : ''}`.trim()
  return { role: 'tool', tool_call_id: String(id), content: words }
}

function isModelItem({ type = 'message', role }: InputItem): boolean {
  if (type === 'message') return role === 'assistant'
  return type !== 'function_call_output' && type !== 'mcp_approval_response'
}

function addToAnswer(
  answer: WireMessage,
  { type = 'message', id, call_id, name, arguments: input, content, server_label: server }: InputItem,
): void {
  if (type === 'function_call' || type === 'mcp_approval_request') {
    const called = type === 'function_call' ? (name ?? '') : `${server ?? ''}_${name ?? ''}`
    const call = {
      id: (type === 'function_call' ? call_id : id) ?? '',
      function: { name: called, arguments: typeof input === 'string' ? input : '' },
    }
    answer.tool_calls = [...(answer.tool_calls ?? []), { type: 'function', ...call }]
  } else if (type === 'message') {
    const parts = typeof content === 'string' ? [{ type: 'output_text', text: content }] : toList(content)
    const refusal = parts.find((part) => part['type'] === 'refusal')?.['refusal']
    if (typeof refusal === 'string') {
      answer['refusal'] = refusal
      answer.content ??= [{ type: 'refusal', refusal }]
    }
    const text = parts.map((part) => (typeof part['text'] === 'string' ? part['text'] : '')).join('')
    const before = typeof answer.content === 'string' ? `${answer.content}\n\n` : ''
    if (text !== '') answer.content = before + text
  }
}

function toParts(content: unknown): WireMessage['content'] {
  if (typeof content === 'string') return content
  return toList(content).map(({ type, ...part }) => {
    if (type === 'input_text' || type === 'output_text') return { type: 'text', ...part }
    if (type === 'input_image')
      return { type: 'image_url', image_url: { url: part['image_url'], detail: part['detail'] } }
    if (type === 'input_file') return { type: 'file', file: part }
    return { type: String(type), ...part }
  })
}

function toList(content: unknown): Record<string, unknown>[] {
  return Array.isArray(content) ? (content as Record<string, unknown>[]) : []
}

interface Item {
  id: string
  type: string
  [key: string]: unknown
}

interface Event {
  type: string
  [key: string]: unknown
}

function toDocument(turn: Turn, request: ChatRequest, envelope: Envelope) {
  return {
    ...createShell(turn, envelope),
    output: toItems(turn, request, envelope),
    usage: toUsage(turn, request),
  }
}

function toStream(turn: Turn, request: ChatRequest, envelope: Envelope): EncodedStream {
  const started = {
    ...createShell(turn, envelope),
    status: 'in_progress',
    incomplete_details: null,
    output: [],
    usage: null,
  }
  const whole = toDocument(turn, request, envelope)
  const type = whole.incomplete_details === null ? 'response.completed' : 'response.incomplete'
  return {
    opening: [
      { type: 'response.created', response: started },
      { type: 'response.in_progress', response: started },
    ],
    deltas: toItems(turn, request, envelope).flatMap((item, at) => toDeltas(item, at, turn)),
    end: isUnfinished(turn) ? [] : [{ type, response: whole }],
    toFailure: (error) => ({ type: 'error', error }),
    formatEvent: formatTyped,
  }
}

function createShell(turn: Turn, { id, created, model }: Envelope) {
  const { finishReason } = turn
  const reason = finishReason === 'length' ? 'max_output_tokens' : finishReason
  const isCut = reason === 'max_output_tokens' || reason === 'content_filter'
  return {
    id,
    object: 'response',
    created_at: created,
    model,
    status: isCut ? 'incomplete' : 'completed',
    incomplete_details: isCut ? { reason } : null,
    error: null,
    store: false,
  }
}

/** Output items: reasoning (encrypted on request), then text, then calls. */
function toItems(turn: Turn, { include }: ChatRequest, envelope: Envelope): Item[] {
  const { reasoning, text, refusal } = turn
  const prefix = envelope.callPrefix.replace(/^call_/, '')
  const isEncrypted = Array.isArray(include) && include.includes('reasoning.encrypted_content')
  const status = 'completed'
  const parts = [
    ...(text === undefined ? [] : [{ type: 'output_text', text, annotations: [] }]),
    ...(refusal === undefined ? [] : [{ type: 'refusal', refusal }]),
  ]
  return [
    ...(reasoning === undefined
      ? []
      : [
          {
            id: `rs_${prefix}1`,
            type: 'reasoning',
            summary: [{ type: 'summary_text', text: reasoning }],
            ...(isEncrypted && { encrypted_content: Buffer.from(`rehearsal ${prefix}`).toString('base64') }),
          },
        ]),
    ...(parts.length === 0
      ? []
      : [{ id: `msg_${prefix}1`, type: 'message', status, role: 'assistant', content: parts }]),
    ...listCalls(turn, envelope).map(({ id, function: called }, i) => {
      const { server: server_label, id: explicitId } = turn.toolCalls?.[i] ?? {}
      return server_label === undefined
        ? { id: `fc_${prefix}${i + 1}`, type: 'function_call', status, call_id: id, ...called }
        : {
            id: explicitId ?? `mcpr_${prefix}${i + 1}`,
            type: 'mcp_approval_request',
            server_label,
            ...called,
          }
    }),
  ]
}

/** A text in an item, as the item's events identify it. */
interface Part {
  /** One of `output_text`, `refusal`, `reasoning_summary_text` and `function_call_arguments`. */
  name: string
  /** The field of the final event that contains the whole text. */
  field: string
  text: string
  place: object
  /** The announced part. Absent for arguments. */
  part?: { type: string; event: 'content_part' | 'reasoning_summary_part'; whole: object; empty: object }
}

function toTextParts(item: Item, { reasoning = '', text, refusal }: Turn): Part[] {
  if (item.type === 'function_call') {
    const name = 'function_call_arguments'
    return [{ name, field: 'arguments', text: String(item['arguments']), place: {} }]
  }
  if (item.type === 'mcp_approval_request') return []
  if (item.type === 'reasoning') {
    const part = { type: 'summary_text', event: 'reasoning_summary_part' as const }
    return [
      {
        name: 'reasoning_summary_text',
        field: 'text',
        text: reasoning,
        place: { summary_index: 0 },
        part: { ...part, whole: { type: part.type, text: reasoning }, empty: { type: part.type, text: '' } },
      },
    ]
  }
  const contents = [
    { type: 'output_text', field: 'text', text, more: { annotations: [] } },
    { type: 'refusal', field: 'refusal', text: refusal, more: {} },
  ].filter((one): one is typeof one & { text: string } => one.text !== undefined)
  return contents.map(({ type, field, text: words, more }, content_index) => ({
    name: type,
    field,
    text: words,
    place: { content_index },
    part: {
      type,
      event: 'content_part' as const,
      whole: { type, [field]: words, ...more },
      empty: { type, [field]: '', ...more },
    },
  }))
}

/**
 * Groups the events of an item by delta, including the events that start or end the item, so that a cut stream breaks
 * off between two deltas.
 */
function toDeltas(item: Item, output_index: number, turn: Turn): Event[][] {
  const place = { output_index, item_id: item.id }
  const empty = emptyItems[item.type] ?? {}
  const deltas = toTextParts(item, turn).flatMap(({ name, field, text, place: within, part }) => {
    const here = { ...place, ...within }
    const pieces = splitText(text, turn.chunkSize ?? 16).map((delta) => ({
      type: `response.${name}.delta`,
      ...here,
      delta,
    }))
    const begin = part && { type: `response.${part.event}.added`, ...here, part: part.empty }
    const end = [
      { type: `response.${name}.done`, ...here, [field]: text },
      ...(part ? [{ type: `response.${part.event}.done`, ...here, part: part.whole }] : []),
    ]
    return addFrames(pieces, begin === undefined ? [] : [begin], end)
  })
  const added = {
    type: 'response.output_item.added',
    output_index,
    item: { ...item, ...empty },
  }
  const done = { type: 'response.output_item.done', output_index, item }
  const [first = [], ...rest] = deltas
  return addFrames([first, ...rest], [added], [done])
}

/** Fields that are empty when an item is announced. Approval requests are announced complete. */
const emptyItems: Readonly<Record<string, object>> = {
  message: { content: [], status: 'in_progress' },
  function_call: { arguments: '', status: 'in_progress' },
  reasoning: { summary: [], status: 'in_progress' },
}

function addFrames(groups: readonly (Event | Event[])[], before: Event[], after: Event[]): Event[][] {
  const all = groups.length === 0 ? [[]] : groups.map((group) => [group].flat())
  return all.map((group, i) => [...(i === 0 ? before : []), ...group, ...(i === all.length - 1 ? after : [])])
}

function toUsage(turn: Turn, request: ChatRequest) {
  if (turn.usage === null) return null
  const { input, output, cached, cacheWrite, reasoning } = countUsage(turn, request)
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  }
}
