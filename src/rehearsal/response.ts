import { chunksOf, completionOf, type Envelope } from './completion.js'
import type { ChatRequest } from './request.js'
import type { Turn } from './turn.js'

/** An HTTP response, written down before anything is sent: one write after the other, then the ending. */
export interface PlannedResponse {
  status: number
  headers: Record<string, string>
  writes: Uint8Array[]
  /** `cut` destroys the socket, `hang` leaves the connection open, `silence` never sends as much as the headers. */
  ending: 'end' | 'cut' | 'hang' | 'silence'
}

/** The response that a turn gives to a request. */
export function responseTo(turn: Turn, request: ChatRequest, envelope: Envelope): PlannedResponse {
  const { raw } = turn
  const streams = request.stream === true && !isError(turn)
  const ending = endingOf(turn)
  const type = streams ? 'text/event-stream; charset=utf-8' : 'application/json'
  const planned = (headers: Record<string, string>, writes: Uint8Array[]): PlannedResponse => ({
    status: raw?.status ?? statusOf(turn),
    headers: { 'content-type': type, ...headers },
    writes,
    ending,
  })
  if (raw) {
    const writes = split([Buffer.from(raw.body, raw.encoding ?? 'utf8')], turn.split)
    return planned(unframed(raw.headers ?? {}), writes.slice(0, stopOf(turn)))
  }
  if (streams) {
    const events = eventsOf(turn, request, envelope)
    return planned(
      headersOf(turn),
      split(
        events.map((event) => Buffer.from(event)),
        turn.split,
      ),
    )
  }
  const body = Buffer.from(JSON.stringify(bodyOf(turn, request, envelope)))
  const sent = ending === 'end' ? body : body.subarray(0, body.length / 2)
  return planned(headersOf(turn), split([sent], turn.split))
}

function endingOf({ hang, cutAfter }: Turn): PlannedResponse['ending'] {
  if (hang === true) return 'silence'
  if (hang !== undefined) return 'hang'
  return cutAfter === undefined ? 'end' : 'cut'
}

/** Deltas (or writes of a raw body) after which the turn falls silent; undefined when it goes to its end. */
function stopOf({ hang, cutAfter }: Turn): number | undefined {
  return hang === true ? 0 : (hang ?? cutAfter)
}

function isError(turn: Turn): boolean {
  return !turn.raw && statusOf(turn) >= 400
}

function statusOf({ status, error }: Turn): number {
  return status ?? (error ? 500 : 200)
}

/** The body of a response that does not stream. */
function bodyOf(turn: Turn, request: ChatRequest, envelope: Envelope): object {
  if (isError(turn)) return { error: { ...usualError(statusOf(turn)), ...turn.error } }
  if (turn.errorInStream) return { error: turn.errorInStream.error }
  return completionOf(turn, request, envelope)
}

/** The server-sent events of a response that streams. */
function eventsOf(turn: Turn, request: ChatRequest, envelope: Envelope): string[] {
  const { opening, deltas, end } = chunksOf(turn, request, envelope)
  const failure = turn.errorInStream
  const stop = stopOf(turn)
  const ends = failure === undefined && stop === undefined
  const chunks = [opening, ...deltas.slice(0, failure?.after ?? stop)]
  if (failure) chunks.push({ error: failure.error })
  if (ends) chunks.push(...end)
  const events = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
  if (ends && turn.endWithout !== 'done' && turn.endWithout !== 'both') events.push('data: [DONE]\n\n')
  return events
}

/** What OpenAI sends with a status when the scenario does not say. */
function usualError(status: number) {
  if (status === 429)
    return errorObject('requests', 'rate_limit_exceeded', 'Rate limit reached. Try again later.')
  if (status === 401)
    return errorObject('invalid_request_error', 'invalid_api_key', 'Incorrect API key provided.')
  if (status < 500) return errorObject('invalid_request_error', null, 'The request is invalid.')
  return errorObject('server_error', null, 'The server had an error while processing the request.')
}

function errorObject(type: string, code: string | null, message: string) {
  return { message, type, param: null, code }
}

function headersOf({ headers, retryAfter, retryAfterMs }: Turn): Record<string, string> {
  return {
    ...(retryAfter !== undefined && { 'retry-after': `${retryAfter}` }),
    ...(retryAfterMs !== undefined && { 'retry-after-ms': `${retryAfterMs}` }),
    ...unframed(headers ?? {}),
  }
}

const framing = ['content-length', 'transfer-encoding', 'connection', 'keep-alive']

/** Names in lower case, so that later ones replace earlier ones, and without those that the server sets itself. */
function unframed(headers: Record<string, string>): Record<string, string> {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const)
  return Object.fromEntries(lower.filter(([name]) => !framing.includes(name)))
}

/** The same bytes in other writes. */
function split(pieces: Uint8Array[], how: Turn['split']): Uint8Array[] {
  if (how === undefined) return pieces
  const whole = Buffer.concat(pieces)
  if (how === 'whole') return [whole]
  if (how === 'bytes') return Array.from(whole, (_, i) => whole.subarray(i, i + 1))
  const writes: Uint8Array[] = []
  let start = 0
  for (const size of [...how, whole.length]) {
    if (start < whole.length) writes.push(whole.subarray(start, start + size))
    start += size
  }
  return writes
}
