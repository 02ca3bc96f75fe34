import type { Refusal, ChatRequest } from './chat-request.js'
import type { CallLimits } from './request-problem.js'
import type { Turn } from './turn-schema.js'

/** The API-specific parts: reading requests, encoding turns, and refusals. */
export interface ProviderApi {
  name: 'chat' | 'responses' | 'messages' | 'gemini'
  /** How many calls a message may have, and how long their ids may be. Default: as in chats. */
  limits?: CallLimits
  /** Begins the ids of answers. */
  idPrefix: string
  /** A body as a Chat Completions request; some APIs have a part of it in the path. @throws Refusal */
  readRequest(sent: unknown, path: string): ChatRequest
  /** A violation of this API's own rules, as a sentence; null when there is none. */
  findStrictProblem(sent: unknown, request: ChatRequest): { message: string; param: string } | null
  createEncoder(turn: Turn, request: ChatRequest, envelope: Envelope): TurnEncoder
  formatRefusal(refusal: Refusal): object
}

/** The fields of a completion besides the turn. */
export interface Envelope {
  id: string
  /** Seconds since the epoch. */
  created: number
  model: string
  /** Prefix of the call ids that the turn leaves open. */
  callPrefix: string
}

/** Encodes a turn for one API. */
export interface TurnEncoder {
  /** The body of an answer that does not stream. */
  encodeBody(): object
  /** The server-sent events of a streamed answer. `stop`: breaks off after this number of deltas. */
  encodeEvents(stop: number | undefined): string[]
  /** The body of an error; also the one that stands in for an answer of status 200. */
  encodeError(error: NonNullable<Turn['error']> | undefined, status: number): object
}

/** A prepared HTTP response: its writes, then its ending. */
export interface PlannedResponse {
  status: number
  headers: Record<string, string>
  writes: Uint8Array[]
  /** `cut` destroys the socket, `hang` leaves the connection open, `silence` never sends as much as the headers. */
  ending: 'end' | 'cut' | 'hang' | 'silence'
}

/** The response that a turn gives to a request. */
export function planResponse(turn: Turn, stream: boolean, encoder: TurnEncoder): PlannedResponse {
  const { raw } = turn
  const streams = stream && !isError(turn)
  const ending = chooseEnding(turn)
  const type = streams ? 'text/event-stream; charset=utf-8' : 'application/json'
  const planned = (headers: Record<string, string>, writes: Uint8Array[]): PlannedResponse => ({
    status: raw?.status ?? getStatus(turn),
    headers: { 'content-type': type, ...headers },
    writes,
    ending,
  })
  if (raw) {
    const writes = splitWrites([Buffer.from(raw.body, raw.encoding ?? 'utf8')], turn.split)
    return planned(removeFraming(raw.headers ?? {}), writes.slice(0, getStop(turn)))
  }
  if (streams) {
    const events = encoder.encodeEvents(getStop(turn))
    return planned(
      formatHeaders(turn),
      splitWrites(
        events.map((event) => Buffer.from(event)),
        turn.split,
      ),
    )
  }
  const body = Buffer.from(JSON.stringify(encodeBody(turn, encoder)))
  const sent = ending === 'end' ? body : body.subarray(0, body.length / 2)
  return planned(formatHeaders(turn), splitWrites([sent], turn.split))
}

function chooseEnding({ hang, cutAfter }: Turn): PlannedResponse['ending'] {
  if (hang === true) return 'silence'
  if (hang !== undefined) return 'hang'
  return cutAfter === undefined ? 'end' : 'cut'
}

/** Deltas (or writes of a raw body) after which the turn falls silent; undefined when it goes to its end. */
function getStop({ hang, cutAfter }: Turn): number | undefined {
  return hang === true ? 0 : (hang ?? cutAfter)
}

function isError(turn: Turn): boolean {
  return !turn.raw && getStatus(turn) >= 400
}

function getStatus({ status, error }: Turn): number {
  return status ?? (error ? 500 : 200)
}

/** The body of a response that does not stream. */
function encodeBody(turn: Turn, encoder: TurnEncoder): object {
  if (isError(turn)) return encoder.encodeError(turn.error, getStatus(turn))
  if (turn.errorInStream) return encoder.encodeError(turn.errorInStream.error, 200)
  return encoder.encodeBody()
}

function formatHeaders({ headers, retryAfter, retryAfterMs }: Turn): Record<string, string> {
  return {
    ...(retryAfter !== undefined && { 'retry-after': `${retryAfter}` }),
    ...(retryAfterMs !== undefined && { 'retry-after-ms': `${retryAfterMs}` }),
    ...removeFraming(headers ?? {}),
  }
}

const framingHeaders = ['content-length', 'transfer-encoding', 'connection', 'keep-alive']

/** Names in lower case, so that later ones replace earlier ones, and without those that the server sets itself. */
function removeFraming(headers: Record<string, string>): Record<string, string> {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const)
  return Object.fromEntries(lower.filter(([name]) => !framingHeaders.includes(name)))
}

/** The same bytes in other writes. */
function splitWrites(pieces: Uint8Array[], how: Turn['split']): Uint8Array[] {
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
