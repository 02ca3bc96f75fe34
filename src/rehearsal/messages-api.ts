import * as z from 'zod'
import { createHash } from 'node:crypto'
import { listCalls, countUsage, isUnclosed, isUnfinished, splitText } from './chat-api.js'
import { type ChatRequest, parseRequest, type WireMessage } from './chat-request.js'
import { type EncodedStream, type Envelope, formatTyped, type ProviderApi } from './planned-response.js'
import type { Turn } from './turn-schema.js'
import { parseJsonOr } from '../core/base/json.js'

export function formatError(type: string, message: string): object {
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

/** A signature that detects changed thoughts. */
export function createSignature(thinking: string): string {
  return createHash('sha256').update(`rehearsal:${thinking}`).digest('base64')
}

function toMessage(turn: Turn, request: ChatRequest, envelope: Envelope) {
  const { reasoning, text, refusal } = turn
  const words = [text, refusal].filter((one) => one !== undefined)
  return {
    ...createHead(envelope),
    content: [
      ...(reasoning === undefined
        ? []
        : [{ type: 'thinking', thinking: reasoning, signature: createSignature(reasoning) }]),
      ...words.map((one) => ({ type: 'text', text: one })),
      ...listCalls(turn, envelope).map(({ id, function: { name, arguments: input } }) => ({
        type: 'tool_use',
        id,
        name,
        input: parseJsonOr(input, input),
      })),
    ],
    stop_reason: isUnfinished(turn) ? null : getStopReason(turn),
    stop_sequence: null,
    usage: toUsage(turn, request),
  }
}

function createHead({ id, model }: Envelope) {
  return { id, type: 'message', role: 'assistant', model }
}

const stopReasons: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
}

function getStopReason({ finishReason, toolCalls = [], refusal }: Turn): string {
  if (finishReason !== undefined) return stopReasons[finishReason] ?? finishReason
  if (refusal !== undefined) return 'refusal'
  return toolCalls.length > 0 ? 'tool_use' : 'end_turn'
}

/** Anthropic does not count cached tokens as input. */
function toUsage(turn: Turn, request: ChatRequest) {
  if (turn.usage === null) return { input_tokens: 0, output_tokens: 0 }
  const { input, output, cached, cacheWrite } = countUsage(turn, request)
  return {
    input_tokens: Math.max(0, input - cached - cacheWrite),
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cached,
    output_tokens: output,
  }
}

function toStream(turn: Turn, request: ChatRequest, envelope: Envelope): EncodedStream {
  const usage = toUsage(turn, request)
  const { output_tokens } = usage
  const message = {
    ...createHead(envelope),
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { ...usage, output_tokens: Math.min(1, output_tokens) },
  }
  const delta = { stop_reason: getStopReason(turn), stop_sequence: null }
  return {
    opening: [{ type: 'message_start', message }],
    deltas: toDeltas(turn, envelope),
    end: [
      ...(isUnfinished(turn) ? [] : [{ type: 'message_delta', delta, usage: { output_tokens } }]),
      ...(isUnclosed(turn) ? [] : [{ type: 'message_stop' }]),
    ],
    toFailure: ({ type = 'api_error', message: text }) => ({ type: 'error', error: { type, message: text } }),
    formatEvent: formatTyped,
  }
}

interface Event {
  type: string
  [key: string]: unknown
}

/** Groups events by delta. Events that start or end a block belong to the adjacent delta. */
function toDeltas(turn: Turn, envelope: Envelope): Event[][] {
  const { reasoning, text, refusal, chunkSize = 16 } = turn
  const deltas: Event[][] = []
  let index = 0
  const block = (opening: object, pieces: Event[], isDelta: boolean, closing: Event[] = []): void => {
    const begin = { type: 'content_block_start', index, content_block: opening }
    const groups = pieces.map((delta) => [{ type: 'content_block_delta', index, delta }] as Event[])
    if (isDelta || groups.length === 0) groups.unshift([begin])
    else groups[0]?.unshift(begin)
    const end = closing.map((delta) => ({ type: 'content_block_delta', index, delta }))
    groups.at(-1)?.push(...end, { type: 'content_block_stop', index })
    deltas.push(...groups)
    index += 1
  }
  if (reasoning !== undefined) {
    const thoughts = splitText(reasoning, chunkSize).map((thinking) => ({ type: 'thinking_delta', thinking }))
    const signature = { type: 'signature_delta', signature: createSignature(reasoning) }
    block({ type: 'thinking', thinking: '', signature: '' }, thoughts, false, [signature])
  }
  for (const words of [text, refusal]) {
    if (words === undefined) continue
    const pieces = splitText(words, chunkSize).map((piece) => ({ type: 'text_delta', text: piece }))
    block({ type: 'text', text: '' }, pieces, false)
  }
  for (const { id, function: called } of listCalls(turn, envelope)) {
    const pieces = splitText(called.arguments, chunkSize)
    const deltas = pieces.map((piece) => ({ type: 'input_json_delta', partial_json: piece }))
    block({ type: 'tool_use', id, name: called.name, input: {} }, deltas, true)
  }
  return deltas
}

export const messagesApi: ProviderApi = {
  name: 'messages',
  idPrefix: 'msg_rehearsal_',
  readRequest: (sent) => toChatRequest(parseRequest(messagesRequest, sent)),
  findStrictProblem: (sent) => findProblem(parseRequest(messagesRequest, sent)),
  createEncoder: (turn, request, envelope) => ({
    encodeBody: () => toMessage(turn, request, envelope),
    encodeStream: () => toStream(turn, request, envelope),
    encodeError: (error, status) =>
      formatError(error?.type ?? getErrorType(status), error?.message ?? getErrorMessage(status)),
  }),
  // The API has no field for the error code.
  formatRefusal: ({ status, code, message }) => formatError(getErrorType(status), `${code}: ${message}`),
}

const maxMarks = 4

/** Checks Anthropic's rules for cache marks, returned thoughts and call ids. */
function findProblem(request: MessagesRequest): { message: string; param: string } | null {
  const marks = JSON.stringify(request).split('"cache_control":{').length - 1
  if (marks > maxMarks)
    return createProblem('messages', `have ${marks} cache_control marks, but the maximum is ${maxMarks}.`)
  for (const [i, { role, content }] of request.messages.entries()) {
    for (const [j, block] of toBlocks(content).entries()) {
      const found = findBlockProblem(block, `messages.${i}.content.${j}`)
      if (found !== null) return found
    }
    if (role === request.messages[i - 1]?.role)
      return createProblem(`messages.${i}`, `has the role ${role}, like the previous one.`)
  }
  return findMissingThought(request)
}

function findBlockProblem(block: Block, at: string): ReturnType<typeof findProblem> {
  switch (block.type) {
    case 'text':
      return String(block['text']).trim() === ''
        ? createProblem(`${at}.text`, 'text content blocks must be non-empty.')
        : null
    case 'thinking': {
      if (block['cache_control'] != null)
        return createProblem(at, 'is a thought and must not have cache_control.')
      const isSigned = block['signature'] === createSignature(String(block['thinking']))
      return isSigned ? null : createProblem(`${at}.signature`, 'Invalid `signature` in `thinking` block.')
    }
    case 'tool_use':
      return findIdProblem(block['id'], `${at}.id`)
    case 'tool_result':
      return findIdProblem(block['tool_use_id'], `${at}.tool_use_id`)
    default:
      return null
  }
}

function findIdProblem(id: unknown, at: string): ReturnType<typeof findProblem> {
  return /^[a-zA-Z0-9_-]+$/.test(String(id)) ? null : createProblem(at, "should match '^[a-zA-Z0-9_-]+$'.")
}

/** With thinking enabled, tool results must come with the thoughts before their calls. */
function findMissingThought({ thinking, messages }: MessagesRequest): ReturnType<typeof findProblem> {
  if (thinking === undefined || thinking.type === 'disabled') return null
  const last = messages.findLastIndex(({ role }) => role === 'assistant')
  const blocks = toBlocks(messages[last]?.content)
  const [first] = blocks
  const isAnswered = toBlocks(messages[last + 1]?.content).some(({ type }) => type === 'tool_result')
  if (first === undefined || !isAnswered || first.type.endsWith('thinking')) return null
  return createProblem(
    `messages.${last}.content.0.type`,
    `Expected \`thinking\` or \`redacted_thinking\`, but found \`${first.type}\`.`,
  )
}

function createProblem(param: string, what: string): { message: string; param: string } {
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
  const results = blocks.filter(({ type }) => type === 'tool_result')
  const rest = blocks.filter(({ type }) => type !== 'tool_result')
  return [
    ...results.map(
      (result): WireMessage => ({
        role: 'tool',
        tool_call_id: String(result['tool_use_id']),
        content: toParts(result['content']),
      }),
    ),
    ...(rest.length > 0 ? [{ role: 'user' as const, content: toParts(rest) }] : []),
  ]
}

function toAssistantMessage(blocks: readonly Block[]): WireMessage {
  const calls = blocks.filter(({ type }) => type === 'tool_use')
  const texts = blocks.filter(({ type }) => type === 'text').map(getText)
  const thoughts = blocks.filter(({ type }) => type === 'thinking').map((one) => String(one['thinking']))
  return {
    role: 'assistant',
    content: texts.length > 0 ? texts.join('') : null,
    ...(thoughts.length > 0 && { reasoning_content: thoughts.join('\n\n') }),
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, name, input }) => ({
        id: String(id),
        type: 'function' as const,
        function: { name: String(name), arguments: JSON.stringify(input) ?? '' },
      })),
    }),
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
