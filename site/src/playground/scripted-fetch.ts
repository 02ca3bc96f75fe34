import { createAnswer, encodeEvents } from '../../../src/rehearsal/planned-response.js'
import { chatApi } from '../../../src/rehearsal/chat-api.js'
import { type ChatRequest, findUnmetExpectation } from '../../../src/rehearsal/chat-request.js'
import type { Scenario } from '../../../src/rehearsal/scenario.js'
import type { Turn } from '../../../src/rehearsal/turn-schema.js'

export interface Pace {
  /** Milliseconds before an answer. Applies to turns without `delayMs`. */
  answer: number
  /** Milliseconds between two chunks. Applies to turns without `chunkDelayMs`. */
  piece: number
}

/**
 * A `fetch` that answers Chat Completions requests from a scenario, like the rehearsal server. It supports rate limits, broken
 * answers and stalled streams. `start` is the turn of the first request. `split` has no effect, because each write is one event.
 */
export function createScriptedFetch(scenario: Scenario, start: number, pace: Pace): typeof fetch {
  let next = start
  return async (_address, init) => {
    const signal = init?.signal ?? null
    const request = chatApi.readRequest(JSON.parse(init?.body as string), '')
    const index = next++
    const turn = findTurn(scenario, index)
    if (turn === null) {
      const message = `The script ends with turn ${scenario.turns.length}, so there is no answer for request ${index + 1}. Add a turn, or set onExhausted to repeatLast or loop.`
      return refuse('rehearsal_exhausted', message)
    }
    const unmet = turn.expect && findUnmetExpectation(turn.expect, request)
    if (unmet) return refuse('rehearsal_unexpected_request', `turns[${index}] ${unmet}.`)
    await wait(turn.hang === true ? null : (turn.delayMs ?? pace.answer), signal)
    return answer(turn, request, index, { pace, signal })
  }
}

function findTurn({ turns, onExhausted }: Scenario, index: number): Turn | null {
  const { length } = turns
  const place =
    index < length
      ? index
      : onExhausted === 'loop'
        ? index % length
        : onExhausted === 'repeatLast'
          ? length - 1
          : -1
  const turn = turns[place]
  return turn === undefined || typeof turn === 'function' ? null : turn
}

function answer(
  turn: Turn,
  request: ChatRequest,
  index: number,
  { pace, signal }: { pace: Pace; signal: AbortSignal | null },
): Response {
  const { raw, error, retryAfter, retryAfterMs, chunkDelayMs = pace.piece } = turn
  const status = raw?.status ?? turn.status ?? (error ? 500 : 200)
  const headers = new Headers(raw?.headers ?? turn.headers)
  if (retryAfter !== undefined) headers.set('retry-after', String(retryAfter))
  if (retryAfterMs !== undefined) headers.set('retry-after-ms', String(retryAfterMs))
  if (!raw && status >= 400) {
    headers.set('content-type', 'application/json')
    return new Response(JSON.stringify(chatApi.toError(error, status)), { status, headers })
  }
  if (!headers.has('content-type')) headers.set('content-type', 'text/event-stream')
  const said = createAnswer(turn, request, {
    id: `${chatApi.idPrefix}${index + 1}`,
    created: 0,
    model: request.model,
    callPrefix: `call_${index + 1}_`,
  })
  const stop = typeof turn.hang === 'number' ? turn.hang : turn.cutAfter
  const pieces = raw
    ? [decodeRaw(raw)]
    : encodeEvents(turn, chatApi.toStream(said), stop).map((event) => new TextEncoder().encode(event))
  const ending = turn.hang !== undefined ? 'hang' : turn.cutAfter !== undefined ? 'cut' : 'end'
  return new Response(toStream(pieces, ending, chunkDelayMs, signal), { status, headers })
}

function decodeRaw({ body, encoding }: NonNullable<Turn['raw']>): Uint8Array<ArrayBuffer> {
  return encoding === 'base64'
    ? Uint8Array.from(atob(body), (one) => one.charCodeAt(0))
    : new TextEncoder().encode(body)
}

function toStream(
  pieces: readonly Uint8Array<ArrayBuffer>[],
  ending: 'end' | 'cut' | 'hang',
  delayMs: number,
  signal: AbortSignal | null,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = 0
  return new ReadableStream({
    async pull(controller) {
      try {
        const piece = pieces[at]
        if (piece !== undefined) {
          if (at++ > 0) await wait(delayMs, signal)
          return controller.enqueue(piece)
        }
        if (ending === 'hang') await wait(null, signal)
        if (ending === 'cut') return controller.error(new TypeError('network error: the connection was cut'))
        return controller.close()
      } catch (error) {
        return controller.error(error)
      }
    },
  })
}

/** Waits, forever with null. Rejects when the signal aborts. */
function wait(ms: number | null, signal: AbortSignal | null): Promise<void> {
  if (ms === 0) return Promise.resolve()
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal?.reason ?? new DOMException('Aborted', 'AbortError'))
    if (signal?.aborted) return abort()
    signal?.addEventListener('abort', abort, { once: true })
    if (ms !== null) setTimeout(resolve, ms)
  })
}

function refuse(code: string, message: string): Response {
  const headers = { 'content-type': 'application/json' }
  return new Response(
    JSON.stringify({ error: { message, type: 'invalid_request_error', param: null, code } }),
    { status: 400, headers },
  )
}
