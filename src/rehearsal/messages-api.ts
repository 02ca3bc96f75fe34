import * as z from 'zod'
import {
  type Answer,
  type Event,
  frame,
  sign,
  type EncodedStream,
  formatTyped,
  type ProviderApi,
} from './planned-response.js'
import {
  type ChatRequest,
  createAssistantMessage,
  parseRequest,
  separateResults,
  type WireMessage,
} from './chat-request.js'
import type { RequestProblem } from './request-problem.js'
import { parseJsonOr } from '../core/base/json.js'

function formatError(type: string, message: string): object {
  return { type: 'error', error: { type, message }, request_id: 'req_rehearsal' }
}

const errorTypes: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

function getErrorType(status: number): string {
  return errorTypes[status] ?? (status >= 400 && status < 500 ? 'invalid_request_error' : 'api_error')
}

function getErrorMessage(status: number): string {
  if (status === 401) return 'invalid x-api-key'
  if (status === 429) return 'This request would exceed your rate limit.'
  if (status === 529) return 'Overloaded'
  return status < 500 ? 'The request is invalid.' : 'Internal server error'
}

function toMessage(answer: Answer) {
  const { id, model, hasFinish } = answer
  return {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content: listBlocks(answer).map(({ whole }) => whole),
    stop_reason: hasFinish ? getStopReason(answer) : null,
    stop_sequence: null,
    usage: toUsage(answer),
  }
}

const stopReasons: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
}

function getStopReason({ finishReason, calls, refusal }: Answer): string {
  if (finishReason !== undefined) return stopReasons[finishReason] ?? finishReason
  if (refusal !== undefined) return 'refusal'
  return calls.length > 0 ? 'tool_use' : 'end_turn'
}

/** Anthropic does not count cached tokens as input. */
function toUsage({ usage }: Answer) {
  if (usage === null) return { input_tokens: 0, output_tokens: 0 }
  const { input, output, cached, cacheWrite } = usage
  return {
    input_tokens: Math.max(0, input - cached - cacheWrite),
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cached,
    output_tokens: output,
  }
}

function toStream(answer: Answer): EncodedStream {
  const { usage, ...message } = toMessage(answer)
  const { output_tokens } = usage
  const begun = { ...usage, output_tokens: Math.min(1, output_tokens) }
  const delta = { stop_reason: getStopReason(answer), stop_sequence: null }
  return {
    opening: [
      { type: 'message_start', message: { ...message, content: [], stop_reason: null, usage: begun } },
    ],
    deltas: listBlocks(answer).flatMap(toDeltas),
    end: [
      ...(answer.hasFinish ? [{ type: 'message_delta', delta, usage: { output_tokens } }] : []),
      ...(answer.hasDone ? [{ type: 'message_stop' }] : []),
    ],
    toFailure: ({ type = 'api_error', message: text }) => ({ type: 'error', error: { type, message: text } }),
    formatEvent: formatTyped,
  }
}

interface StreamedBlock {
  whole: { type: string; [key: string]: unknown }
  /** The fields of the block when it starts. */
  empty: object
  deltas: object[]
  /** The last delta, which is sent with the one before it. */
  last?: object
}

function listBlocks({ reasoning, text, refusal, calls, split }: Answer): StreamedBlock[] {
  const blocks: StreamedBlock[] = []
  if (reasoning !== undefined) {
    const signature = sign(reasoning)
    blocks.push({
      whole: { type: 'thinking', thinking: reasoning, signature },
      empty: { thinking: '', signature: '' },
      deltas: split(reasoning).map((thinking) => ({ type: 'thinking_delta', thinking })),
      last: { type: 'signature_delta', signature },
    })
  }
  for (const words of [text, refusal].filter((one) => one !== undefined)) {
    const deltas = split(words).map((piece) => ({ type: 'text_delta', text: piece }))
    blocks.push({ whole: { type: 'text', text: words }, empty: { text: '' }, deltas })
  }
  for (const { id, name, arguments: text } of calls) {
    const deltas = split(text).map((partial_json) => ({ type: 'input_json_delta', partial_json }))
    const whole = { type: 'tool_use', id, name, input: parseJsonOr(text, text) }
    blocks.push({ whole, empty: { input: {} }, deltas })
  }
  return blocks
}

/** Groups events by delta. The start of a call is a delta, other starts and ends belong to the adjacent delta. */
function toDeltas({ whole, empty, deltas, last }: StreamedBlock, index: number): Event[][] {
  const toEvent = (delta: object): Event => ({ type: 'content_block_delta', index, delta })
  const start = { type: 'content_block_start', index, content_block: { ...whole, ...empty } }
  const end = [...(last ? [toEvent(last)] : []), { type: 'content_block_stop', index }]
  const pieces = deltas.map((delta) => [toEvent(delta)])
  return whole.type === 'tool_use' ? frame([[start], ...pieces], [], end) : frame(pieces, [start], end)
}

export const messagesApi: ProviderApi = {
  name: 'messages',
  idPrefix: 'msg_rehearsal_',
  readRequest: (sent) => toChatRequest(parseRequest(messagesRequest, sent)),
  listProblems: (sent) => listProblems(parseRequest(messagesRequest, sent)),
  toBody: toMessage,
  toStream,
  toError: (error, status) =>
    formatError(error?.type ?? getErrorType(status), error?.message ?? getErrorMessage(status)),
  // The API has no field for the error code.
  formatRefusal: ({ status, code, message }) => formatError(getErrorType(status), `${code}: ${message}`),
}

const maxMarks = 4

/** Checks Anthropic's rules for cache marks, returned thoughts and call ids. */
function* listProblems(request: MessagesRequest): Generator<RequestProblem> {
  const marks = JSON.stringify(request).split('"cache_control":{').length - 1
  if (marks > maxMarks)
    yield createProblem('messages', `have ${marks} cache_control marks, but the maximum is ${maxMarks}.`)
  for (const [i, { role, content }] of request.messages.entries()) {
    for (const [j, block] of toBlocks(content).entries())
      yield* listBlockProblems(block, `messages.${i}.content.${j}`)
    if (role === request.messages[i - 1]?.role)
      yield createProblem(`messages.${i}`, `has the role ${role}, like the previous one.`)
  }
  yield* listMissingThoughts(request)
}

function* listBlockProblems({ type, ...block }: Block, at: string): Generator<RequestProblem> {
  const isId = (id: unknown) => /^[a-zA-Z0-9_-]+$/.test(String(id))
  if (type === 'text' && String(block['text']).trim() === '')
    yield createProblem(`${at}.text`, 'text content blocks must be non-empty.')
  if (type === 'thinking') {
    if (block['cache_control'] != null)
      yield createProblem(at, 'is a thought and must not have cache_control.')
    if (block['signature'] !== sign(String(block['thinking'])))
      yield createProblem(`${at}.signature`, 'Invalid `signature` in `thinking` block.')
  }
  const key = type === 'tool_use' ? 'id' : type === 'tool_result' ? 'tool_use_id' : null
  if (key !== null && !isId(block[key]))
    yield createProblem(`${at}.${key}`, "should match '^[a-zA-Z0-9_-]+$'.")
}

/** With thinking enabled, tool results must come with the thoughts before their calls. */
function* listMissingThoughts({ thinking, messages }: MessagesRequest): Generator<RequestProblem> {
  if (thinking === undefined || thinking.type === 'disabled') return
  const last = messages.findLastIndex(({ role }) => role === 'assistant')
  const [first] = toBlocks(messages[last]?.content)
  const isAnswered = toBlocks(messages[last + 1]?.content).some(({ type }) => type === 'tool_result')
  if (first !== undefined && isAnswered && !first.type.endsWith('thinking'))
    yield createProblem(
      `messages.${last}.content.0.type`,
      `Expected \`thinking\` or \`redacted_thinking\`, but found \`${first.type}\`.`,
    )
}

function createProblem(param: string, what: string): RequestProblem {
  return { message: `${param}: ${what}`, param }
}

const block = z.looseObject({ type: z.string() })
const content = z.union([z.string(), z.array(block)], 'expected a string or an array of blocks')

const messagesRequest = z.looseObject({
  model: z.string().min(1),
  max_tokens: z.int().positive(),
  system: content.optional(),
  messages: z.array(z.looseObject({ role: z.enum(['user', 'assistant']), content })).min(1),
  stream: z.boolean().optional(),
  tools: z
    .array(
      z.looseObject({
        name: z.string(),
        type: z.string().optional(),
        description: z.string().optional(),
        input_schema: z.looseObject({}).optional(),
      }),
    )
    .optional(),
  metadata: z.looseObject({ user_id: z.string().nullish() }).optional(),
  thinking: z.looseObject({ type: z.string() }).optional(),
})

interface MessagesRequest extends z.infer<typeof messagesRequest> {}

type Block = z.infer<typeof block>

function toBlocks(value: string | readonly Block[] | undefined): readonly Block[] {
  if (typeof value === 'string') return [{ type: 'text', text: value }]
  return value ?? []
}

/** Converts the request to Chat Completions, where tool results are separate messages. */
function toChatRequest(request: MessagesRequest): ChatRequest {
  const { model, system, messages, stream, tools, metadata } = request
  const rules = toBlocks(system).map(getText).join('\n\n')
  return {
    model,
    messages: [
      ...(system === undefined ? [] : [{ role: 'system' as const, content: rules }]),
      ...messages.flatMap(({ role, content: body }) =>
        role === 'user' ? toUserMessages(toBlocks(body)) : [toAssistantMessage(toBlocks(body))],
      ),
    ],
    ...(stream !== undefined && { stream }),
    ...(tools && {
      tools: tools.map(({ name, type = 'custom', description, input_schema: parameters }) =>
        parameters === undefined
          ? { type, name }
          : { type: 'function', function: { name, description, parameters } },
      ),
    }),
    ...(metadata?.user_id && { user: metadata.user_id }),
  }
}

function toUserMessages(blocks: readonly Block[]): WireMessage[] {
  return separateResults(
    blocks,
    ({ type }) => type === 'tool_result',
    ({ tool_use_id: id, content: body }) => ({ id: String(id), content: toParts(body) }),
    toParts,
  )
}

function toAssistantMessage(blocks: readonly Block[]): WireMessage {
  const of = (wanted: string) => blocks.filter(({ type }) => type === wanted)
  const thoughts = of('thinking').map((one) => String(one['thinking']))
  const calls = of('tool_use').map(({ id, name, input }) => ({ id: String(id), name: String(name), input }))
  return {
    ...createAssistantMessage(of('text').map(getText), calls),
    ...(thoughts.length > 0 && { reasoning_content: thoughts.join('\n\n') }),
  }
}

function toParts(value: unknown): string | Block[] {
  if (typeof value === 'string') return value
  const blocks: Block[] = Array.isArray(value) ? value : []
  const [only] = blocks
  return blocks.length === 1 && only?.type === 'text' ? getText(only) : blocks
}

function getText(part: Block): string {
  return typeof part['text'] === 'string' ? part['text'] : ''
}
