import { createHash } from 'node:crypto'
import { callsOf, countedUsage, endsUnfinished, type Envelope, piecesOf } from '../completion.js'
import type { ChatRequest } from '../request.js'
import type { Speech } from '../response.js'
import type { Turn } from '../turn.js'

/** A turn in the words of Anthropic's Messages API. */
export function messagesSpeech(turn: Turn, request: ChatRequest, envelope: Envelope): Speech {
  return {
    body: () => messageOf(turn, request, envelope),
    events: (stop) => eventsOf(turn, request, envelope, stop),
    error: (error, status) =>
      errorBody(error?.type ?? errorType(status), error?.message ?? errorMessage(status)),
  }
}

export function errorBody(type: string, message: string): object {
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

export function errorType(status: number): string {
  return errorTypes[status] ?? (status >= 400 && status < 500 ? 'invalid_request_error' : 'api_error')
}

function errorMessage(status: number): string {
  if (status === 401) return 'invalid x-api-key'
  if (status === 429) return 'This request would exceed your rate limit.'
  if (status === 529) return 'Overloaded'
  return status < 500 ? 'The request is invalid.' : 'Internal server error'
}

/** What goes with a thought, so that one that has been changed can be told from it. */
export function signatureOf(thinking: string): string {
  return createHash('sha256').update(`rehearsal:${thinking}`).digest('base64')
}

function messageOf(turn: Turn, request: ChatRequest, envelope: Envelope) {
  const { reasoning, text, refusal } = turn
  const words = [text, refusal].filter((one) => one !== undefined)
  return {
    ...head(envelope),
    content: [
      ...(reasoning === undefined
        ? []
        : [{ type: 'thinking', thinking: reasoning, signature: signatureOf(reasoning) }]),
      ...words.map((one) => ({ type: 'text', text: one })),
      ...callsOf(turn, envelope).map(({ id, function: { name, arguments: input } }) => ({
        type: 'tool_use',
        id,
        name,
        input: parsed(input),
      })),
    ],
    stop_reason: endsUnfinished(turn) ? null : stopReason(turn),
    stop_sequence: null,
    usage: usageOf(turn, request),
  }
}

function head({ id, model }: Envelope) {
  return { id, type: 'message', role: 'assistant', model }
}

const stopReasons: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
}

function stopReason({ finishReason, toolCalls = [], refusal }: Turn): string {
  if (finishReason !== undefined) return stopReasons[finishReason] ?? finishReason
  if (refusal !== undefined) return 'refusal'
  return toolCalls.length > 0 ? 'tool_use' : 'end_turn'
}

/** Cached tokens are beside the input here, not in it. */
function usageOf(turn: Turn, request: ChatRequest) {
  if (turn.usage === null) return { input_tokens: 0, output_tokens: 0 }
  const { input, output, cached, cacheWrite } = countedUsage(turn, request)
  return {
    input_tokens: Math.max(0, input - cached - cacheWrite),
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cached,
    output_tokens: output,
  }
}

/** The events by deltas: one that begins a block or ends it goes with the delta next to it. */
function eventsOf(turn: Turn, request: ChatRequest, envelope: Envelope, stop: number | undefined): string[] {
  const failure = turn.errorInStream
  const usage = usageOf(turn, request)
  const start = {
    type: 'message_start',
    message: {
      ...head(envelope),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...usage, output_tokens: Math.min(1, usage.output_tokens) },
    },
  }
  const events: Event[] = [
    start,
    ...deltasOf(turn, envelope)
      .slice(0, failure?.after ?? stop)
      .flat(),
  ]
  if (failure) {
    const { type = 'api_error', message } = failure.error
    events.push({ type: 'error', error: { type, message } })
  } else if (stop === undefined) {
    const delta = { stop_reason: stopReason(turn), stop_sequence: null }
    const { output_tokens } = usage
    if (!endsUnfinished(turn)) events.push({ type: 'message_delta', delta, usage: { output_tokens } })
    if (turn.endWithout !== 'done' && turn.endWithout !== 'both') events.push({ type: 'message_stop' })
  }
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
}

interface Event {
  type: string
  [key: string]: unknown
}

function deltasOf(turn: Turn, envelope: Envelope): Event[][] {
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
    const thoughts = piecesOf(reasoning, chunkSize).map((thinking) => ({ type: 'thinking_delta', thinking }))
    const signature = { type: 'signature_delta', signature: signatureOf(reasoning) }
    block({ type: 'thinking', thinking: '', signature: '' }, thoughts, false, [signature])
  }
  for (const words of [text, refusal]) {
    if (words === undefined) continue
    const pieces = piecesOf(words, chunkSize).map((piece) => ({ type: 'text_delta', text: piece }))
    block({ type: 'text', text: '' }, pieces, false)
  }
  for (const {
    id,
    function: { name, arguments: input },
  } of callsOf(turn, envelope)) {
    const pieces = piecesOf(input, chunkSize).map((piece) => ({
      type: 'input_json_delta',
      partial_json: piece,
    }))
    block({ type: 'tool_use', id, name, input: {} }, pieces, true)
  }
  return deltas
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
