import type { ProviderApi } from '../provider-api.js'
import { getDefaultError } from '../chat-api.js'
import { createResponsesEncoder } from './responses-answer.js'
import {
  toChatRequest,
  readResponsesRequest,
  isModelItem,
  listItems,
  type InputItem,
  type ResponsesRequest,
} from './responses-request.js'

/** Parameters of chats, which OpenAI refuses by name. */
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
 * Problems that OpenAI refuses in the items of a request, besides those of any history: calls without outputs, and reasoning
 * without its following item.
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
    if (calls.has(callId)) return `has the call_id '${callId}', like another call.`
    calls.set(callId, false)
  }
  if (type === 'mcp_approval_request') {
    const missing = ['server_label', 'name', 'arguments'].find((key) => typeof item[key] !== 'string')
    if (missing !== undefined) return `must have the text '${missing}'.`
    if (typeof id !== 'string' || requests.has(id)) return 'must have an id that no other request has.'
    requests.set(id, false)
  }
  if (type === 'mcp_approval_response') {
    const asked = String(item['approval_request_id'])
    if (typeof item['approve'] !== 'boolean') return "must have 'approve': true or false."
    if (requests.get(asked) !== false) return `answers '${asked}', and no such approval is asked for.`
    requests.set(asked, true)
  }
  if (type === 'function_call_output') {
    if (!calls.has(callId ?? '')) return `is the output of '${callId}', and no such call was made.`
    calls.set(callId ?? '', true)
  }
  return null
}

/** OpenAI's Responses API. */
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
