import * as z from 'zod'
import {
  type Answer,
  type Event,
  frame,
  type EncodedStream,
  formatTyped,
  type ProviderApi,
} from './planned-response.js'
import { toOpenAIError } from './chat-api.js'
import { parseRequest, type ChatRequest, type WireMessage } from './chat-request.js'
import { createProblem, type RequestProblem } from './request-problem.js'

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

/** What OpenAI rejects, such as calls without outputs, and reasoning without its following item. */
export function* listItemProblems(request: ResponsesRequest): Generator<RequestProblem> {
  const unknown = chatParameters.find((key) => Object.hasOwn(request, key))
  if (unknown !== undefined) yield { message: `Unknown parameter: '${unknown}'.`, param: unknown }
  const items = listItems(request)
  const [calls, requests] = [new Map<string, boolean>(), new Map<string, boolean>()]
  for (const [i, { type, id, call_id: callId, content, ...item }] of items.entries()) {
    const problem = (what: string) => createProblem(`input[${i}]`, what)
    if (type === 'reasoning') {
      const isBare = !item['encrypted_content'] && !(Array.isArray(content) && content.length > 0)
      if (request.store === false && isBare)
        yield problem(
          `is the item '${String(id)}', which is not found: items are not persisted when store is false.`,
        )
      const next = items[i + 1]
      if (next === undefined || !isModelItem(next))
        yield problem(
          `is the reasoning '${String(id)}', which was provided without its required following item.`,
        )
    }
    if (type === 'function_call') {
      if (!callId || callId.length > 64) yield problem('must have a call_id of 1 to 64 characters.')
      if (calls.has(callId ?? ''))
        yield problem(`has the call_id '${callId}', which another call already uses.`)
      calls.set(callId ?? '', false)
    }
    if (type === 'mcp_approval_request') {
      const missing = ['server_label', 'name', 'arguments'].find((key) => typeof item[key] !== 'string')
      if (missing !== undefined) yield problem(`must have a string field '${missing}'.`)
      if (typeof id !== 'string' || requests.has(id)) yield problem('must have a unique id.')
      requests.set(String(id), false)
    }
    if (type === 'mcp_approval_response') {
      const requestId = String(item['approval_request_id'])
      if (typeof item['approve'] !== 'boolean') yield problem("must have 'approve': true or false.")
      if (requests.get(requestId) !== false)
        yield problem(`answers '${requestId}', but no such approval was requested.`)
      requests.set(requestId, true)
    }
    if (type === 'function_call_output') {
      if (!calls.has(callId ?? '')) yield problem(`is the output of '${callId}', but no such call was made.`)
      calls.set(callId ?? '', true)
    }
  }
  for (const [id, isAnswered] of calls)
    if (!isAnswered) yield { message: `No tool output found for function call ${id}.`, param: 'input' }
}

export const responsesApi: ProviderApi = {
  name: 'responses',
  idPrefix: 'resp_rehearsal_',
  limits: { calls: Infinity, id: 64 },
  readRequest: (sent) => toChatRequest(readResponsesRequest(sent)),
  listProblems: (sent) => listItemProblems(readResponsesRequest(sent)),
  formatRefusal: ({ body }) => body,
  toBody: toDocument,
  toStream,
  toError: toOpenAIError,
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

type ResponsesRequest = z.infer<typeof responsesRequest>
export type InputItem = z.infer<typeof item>

export function readResponsesRequest(sent: unknown): ResponsesRequest {
  return parseRequest(responsesRequest, sent)
}

export function listItems({ input }: ResponsesRequest): readonly InputItem[] {
  return typeof input === 'string' ? [{ role: 'user', content: input } as InputItem] : input
}

/** As a chat, so that the same checks apply. Consecutive model items become one message. */
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

function toDocument(answer: Answer) {
  const items = listOutput(answer).map(({ item }) => item)
  return { ...createShell(answer), output: items, usage: toUsage(answer) }
}

function toStream(answer: Answer): EncodedStream {
  const whole = toDocument(answer)
  const idle = { status: 'in_progress', incomplete_details: null, output: [], usage: null }
  const started = { ...createShell(answer), ...idle }
  const type = whole.incomplete_details === null ? 'response.completed' : 'response.incomplete'
  return {
    opening: [
      { type: 'response.created', response: started },
      { type: 'response.in_progress', response: started },
    ],
    deltas: listOutput(answer).flatMap((output, at) => toDeltas(output, at, answer)),
    end: answer.hasFinish ? [{ type, response: whole }] : [],
    toFailure: (error) => ({ type: 'error', error }),
    formatEvent: formatTyped,
  }
}

function createShell({ id, created, model, finishReason }: Answer) {
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

interface Output {
  item: { id: string; [key: string]: unknown }
  /** Fields that are empty when the item is announced. Approval requests are announced complete. */
  empty?: object
  texts?: readonly OutputText[]
}

/** A text in an item, as the item's events identify it. */
interface OutputText {
  /** One of `output_text`, `refusal`, `reasoning_summary_text` and `function_call_arguments`. */
  name: string
  /** The field of `whole`, and of the final event, that contains the text. */
  field: string
  whole: Readonly<Record<string, unknown>>
  place?: object
  /** The event that announces the text as a part. Absent for arguments. */
  event?: 'content_part' | 'reasoning_summary_part'
}

/** The output in order: reasoning (encrypted on request), then text, then calls. */
function listOutput({ reasoning, text, refusal, calls, callPrefix, request: { include } }: Answer): Output[] {
  const prefix = callPrefix.replace(/^call_/, '')
  const isEncrypted = Array.isArray(include) && include.includes('reasoning.encrypted_content')
  const status = 'completed'
  const outputs: Output[] = []
  if (reasoning !== undefined) {
    const whole = { type: 'summary_text', text: reasoning }
    const event = 'reasoning_summary_part'
    outputs.push({
      item: {
        id: `rs_${prefix}1`,
        type: 'reasoning',
        summary: [whole],
        ...(isEncrypted && { encrypted_content: Buffer.from(`rehearsal ${prefix}`).toString('base64') }),
      },
      empty: { summary: [], status: 'in_progress' },
      texts: [{ name: 'reasoning_summary_text', field: 'text', whole, place: { summary_index: 0 }, event }],
    })
  }
  const parts = [
    ...(text === undefined ? [] : [{ type: 'output_text', text, annotations: [] }]),
    ...(refusal === undefined ? [] : [{ type: 'refusal', refusal }]),
  ]
  if (parts.length > 0)
    outputs.push({
      item: { id: `msg_${prefix}1`, type: 'message', status, role: 'assistant', content: parts },
      empty: { content: [], status: 'in_progress' },
      texts: parts.map((whole, content_index) => {
        const field = 'text' in whole ? 'text' : 'refusal'
        return { name: whole.type, field, whole, place: { content_index }, event: 'content_part' }
      }),
    })
  for (const [i, { id, name, arguments: input, server, explicitId }] of calls.entries()) {
    const called = { name, arguments: input }
    if (server !== undefined) {
      const requestId = explicitId ?? `mcpr_${prefix}${i + 1}`
      outputs.push({
        item: { id: requestId, type: 'mcp_approval_request', server_label: server, ...called },
      })
      continue
    }
    const item = { id: `fc_${prefix}${i + 1}`, type: 'function_call', status, call_id: id, ...called }
    const texts = [{ name: 'function_call_arguments', field: 'arguments', whole: item }]
    outputs.push({ item, empty: { arguments: '', status: 'in_progress' }, texts })
  }
  return outputs
}

/** Groups the events of an item by delta, including the events that start or end the item. */
function toDeltas({ item, empty, texts = [] }: Output, output_index: number, { split }: Answer): Event[][] {
  const deltas = texts.flatMap(({ name, field, whole, place, event }) => {
    const here = { output_index, item_id: item.id, ...place }
    const text = String(whole[field])
    const announce = (change: string, part: object): Event[] =>
      event === undefined ? [] : [{ type: `response.${event}.${change}`, ...here, part }]
    const pieces = split(text).map((delta) => [{ type: `response.${name}.delta`, ...here, delta }])
    return frame(pieces, announce('added', { ...whole, [field]: '' }), [
      { type: `response.${name}.done`, ...here, [field]: text },
      ...announce('done', whole),
    ])
  })
  const added = { type: 'response.output_item.added', output_index, item: { ...item, ...empty } }
  return frame(deltas, [added], [{ type: 'response.output_item.done', output_index, item }])
}

function toUsage({ usage }: Answer) {
  if (usage === null) return null
  const { input, output, cached, cacheWrite, reasoning } = usage
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  }
}
