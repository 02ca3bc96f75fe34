import * as z from 'zod'
import type { ProviderApi } from './planned-response.js'
import { getDefaultError } from './chat-api.js'
import { createResponsesEncoder } from './responses-answer.js'
import { parseRequest, type ChatRequest, type WireMessage } from './chat-request.js'

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
 * Problems that OpenAI rejects in a request's items: calls without outputs, and reasoning without its following
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
    if (calls.has(callId)) return `has the call_id '${callId}', which another call has too.`
    calls.set(callId, false)
  }
  if (type === 'mcp_approval_request') {
    const missing = ['server_label', 'name', 'arguments'].find((key) => typeof item[key] !== 'string')
    if (missing !== undefined) return `must have the text '${missing}'.`
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
    ...createResponsesEncoder(turn, request, envelope),
    encodeError: (error, status) => ({
      error: status === 200 ? error : { ...getDefaultError(status), ...error },
    }),
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
  input: z.union([z.string(), z.array(item).min(1)], 'expected a text or a list of items'),
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

/** Whether the model produced the item. */
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
