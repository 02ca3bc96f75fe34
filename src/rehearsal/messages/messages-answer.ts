import { createHash } from 'node:crypto'
import { listCalls, countUsage, isUnfinished, type Envelope, splitText } from '../chat-completion.js'
import type { ChatRequest } from '../chat-request.js'
import type { TurnEncoder } from '../planned-response.js'
import type { Turn } from '../turn-schema.js'
import { parseJsonOr } from '../../core/base/parse-json.js'

/** Encodes a turn for Anthropic's Messages API. */
export function createMessagesEncoder(turn: Turn, request: ChatRequest, envelope: Envelope): TurnEncoder {
  return {
    encodeBody: () => toMessage(turn, request, envelope),
    encodeEvents: (stop) => encodeEvents(turn, request, envelope, stop),
    encodeError: (error, status) =>
      formatError(error?.type ?? getErrorType(status), error?.message ?? getErrorMessage(status)),
  }
}

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

export function getErrorType(status: number): string {
  return errorTypes[status] ?? (status >= 400 && status < 500 ? 'invalid_request_error' : 'api_error')
}

function getErrorMessage(status: number): string {
  if (status === 401) return 'invalid x-api-key'
  if (status === 429) return 'This request would exceed your rate limit.'
  if (status === 529) return 'Overloaded'
  return status < 500 ? 'The request is invalid.' : 'Internal server error'
}

/** The signature of a thought, which detects changes. */
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

/** The events by deltas: one that begins a block or ends it goes with the delta next to it. */
function encodeEvents(
  turn: Turn,
  request: ChatRequest,
  envelope: Envelope,
  stop: number | undefined,
): string[] {
  const failure = turn.errorInStream
  const usage = toUsage(turn, request)
  const start = {
    type: 'message_start',
    message: {
      ...createHead(envelope),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...usage, output_tokens: Math.min(1, usage.output_tokens) },
    },
  }
  const events: Event[] = [
    start,
    ...toDeltas(turn, envelope)
      .slice(0, failure?.after ?? stop)
      .flat(),
  ]
  if (failure) {
    const { type = 'api_error', message } = failure.error
    events.push({ type: 'error', error: { type, message } })
  } else if (stop === undefined) {
    const delta = { stop_reason: getStopReason(turn), stop_sequence: null }
    const { output_tokens } = usage
    if (!isUnfinished(turn)) events.push({ type: 'message_delta', delta, usage: { output_tokens } })
    if (turn.endWithout !== 'done' && turn.endWithout !== 'both') events.push({ type: 'message_stop' })
  }
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
}

interface Event {
  type: string
  [key: string]: unknown
}

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
  for (const {
    id,
    function: { name, arguments: input },
  } of listCalls(turn, envelope)) {
    const pieces = splitText(input, chunkSize).map((piece) => ({
      type: 'input_json_delta',
      partial_json: piece,
    }))
    block({ type: 'tool_use', id, name, input: {} }, pieces, true)
  }
  return deltas
}
