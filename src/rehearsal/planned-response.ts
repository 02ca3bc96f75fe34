import type { Refusal, ChatRequest } from './chat-request.js'
import type { CallLimits } from './request-problem.js'
import type { Turn } from './turn-schema.js'

export interface ProviderApi {
  name: 'chat' | 'responses' | 'messages' | 'gemini'
  /**
   * The maximum number of calls per message and the maximum length of an id. Defaults to the limits of Chat
   * Completions.
   */
  limits?: CallLimits
  idPrefix: string
  /**
   * Reads a body as a Chat Completions request. In some APIs, the path contains parts of the request.
   *
   * @throws Refusal
   */
  readRequest(sent: unknown, path: string): ChatRequest
  /** The first violation of API-specific rules, or null. */
  findStrictProblem(sent: unknown, request: ChatRequest): { message: string; param: string } | null
  createEncoder(turn: Turn, request: ChatRequest, envelope: Envelope): TurnEncoder
  formatRefusal(refusal: Refusal): object
}

export interface Envelope {
  id: string
  /** Seconds since the epoch. */
  created: number
  model: string
  callPrefix: string
}

export interface TurnEncoder {
  encodeBody(): object
  encodeStream(): EncodedStream
  /** The body of an error response, or of an error that replaces a streamed answer (status 200). */
  encodeError(error: NonNullable<Turn['error']> | undefined, status: number): object
}

/** The server-sent events of a turn. A delta consists of one or more events. */
export interface EncodedStream {
  opening: readonly object[]
  deltas: readonly (object | readonly object[])[]
  end: readonly (object | string)[]
  toFailure: (error: NonNullable<Turn['error']>) => object
  /** Sends only the data by default. */
  formatEvent?: (event: object | string) => string
}

/** The events of a turn, truncated after `stop` deltas. */
export function encodeEvents(
  { errorInStream: failure }: Turn,
  encoder: Pick<TurnEncoder, 'encodeStream'>,
  stop: number | undefined,
): string[] {
  const { opening, deltas, end, toFailure, formatEvent = formatData } = encoder.encodeStream()
  const rest = failure ? [toFailure(failure.error)] : stop === undefined ? end : []
  return [...opening, ...deltas.slice(0, failure?.after ?? stop).flat(), ...rest].map(formatEvent)
}

const formatData = (event: object | string): string =>
  `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`

/** Formats an event with its type as its name. */
export function formatTyped(event: object | string): string {
  return `event: ${String(Reflect.get(Object(event), 'type'))}\n${formatData(event)}`
}

export interface PlannedResponse {
  status: number
  headers: Record<string, string>
  writes: Uint8Array[]
  /** `cut` destroys the socket, `hang` leaves the connection open, `silence` sends nothing, not even headers. */
  ending: 'end' | 'cut' | 'hang' | 'silence'
}

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
    const events = encodeEvents(turn, encoder, getStop(turn)).map((event) => Buffer.from(event))
    return planned(formatHeaders(turn), splitWrites(events, turn.split))
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

/** The number of deltas (or writes of a raw body) before the turn stops, or undefined if it completes. */
function getStop({ hang, cutAfter }: Turn): number | undefined {
  return hang === true ? 0 : (hang ?? cutAfter)
}

function isError(turn: Turn): boolean {
  return !turn.raw && getStatus(turn) >= 400
}

function getStatus({ status, error }: Turn): number {
  return status ?? (error ? 500 : 200)
}

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

/** Converts header names to lower case, so that later headers override earlier ones, and drops framing headers. */
function removeFraming(headers: Record<string, string>): Record<string, string> {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const)
  return Object.fromEntries(lower.filter(([name]) => !framingHeaders.includes(name)))
}

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
