import { createHash } from 'node:crypto'
import type { Refusal, ChatRequest } from './chat-request.js'
import type { CallLimits, RequestProblem } from './request-problem.js'
import type { Turn } from './turn-schema.js'

export interface ProviderApi {
  name: 'chat' | 'responses' | 'messages' | 'gemini'
  /** Of calls per message, and of the length of an id. Defaults to the limits of Chat Completions. */
  limits?: CallLimits
  idPrefix: string
  /** Reads a body as a chat request. In some APIs, the path contains parts of the request. @throws Refusal */
  readRequest(sent: unknown, path: string): ChatRequest
  /** The violations of API-specific rules, found as they are read. */
  listProblems(sent: unknown, request: ChatRequest): Iterable<RequestProblem>
  toBody(answer: Answer): object
  toStream(answer: Answer): EncodedStream
  /** The body of an error response, or of an error that replaces a streamed answer (status 200). */
  toError(error: NonNullable<Turn['error']> | undefined, status: number): object
  formatRefusal(refusal: Refusal): object
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
  { opening, deltas, end, toFailure, formatEvent = formatData }: EncodedStream,
  stop: number | undefined,
): string[] {
  const rest = failure ? [toFailure(failure.error)] : stop === undefined ? end : []
  return [...opening, ...deltas.slice(0, failure?.after ?? stop).flat(), ...rest].map(formatEvent)
}

const formatData = (event: object | string): string =>
  `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`

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

export function planResponse(turn: Turn, answer: Answer, api: ProviderApi): PlannedResponse {
  const { raw, hang, cutAfter, error, errorInStream, split } = turn
  const status = raw?.status ?? turn.status ?? (error ? 500 : 200)
  const isError = !raw && status >= 400
  const streams = answer.request.stream === true && !isError
  const type = streams ? 'text/event-stream; charset=utf-8' : 'application/json'
  // The number of deltas (or writes of a raw body) before the turn stops.
  const stop = hang === true ? 0 : (hang ?? cutAfter)
  const early = hang === true ? 'silence' : hang === undefined ? 'cut' : 'hang'

  function encodeBody(): Uint8Array {
    const failure = isError ? error : errorInStream?.error
    const body = isError || failure ? api.toError(failure, isError ? status : 200) : api.toBody(answer)
    const bytes = Buffer.from(JSON.stringify(body))
    return stop === undefined ? bytes : bytes.subarray(0, bytes.length / 2)
  }

  function encodeWrites(): Uint8Array[] {
    if (raw) return splitWrites([Buffer.from(raw.body, raw.encoding ?? 'utf8')], split).slice(0, stop)
    if (!streams) return splitWrites([encodeBody()], split)
    const events = encodeEvents(turn, api.toStream(answer), stop)
    return splitWrites(
      events.map((event) => Buffer.from(event)),
      split,
    )
  }

  return {
    status,
    headers: { 'content-type': type, ...(raw ? removeFraming(raw.headers ?? {}) : formatHeaders(turn)) },
    writes: encodeWrites(),
    ending: stop === undefined ? 'end' : early,
  }
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

interface Envelope {
  id: string
  /** Seconds since the epoch. */
  created: number
  model: string
  callPrefix: string
}

export type Answer = ReturnType<typeof createAnswer>

export function createAnswer(turn: Turn, request: ChatRequest, envelope: Envelope) {
  const { text, reasoning, refusal, finishReason, toolCalls = [], chunkSize = 16, endWithout } = turn
  return {
    ...envelope,
    request,
    text,
    reasoning,
    refusal,
    finishReason,
    calls: toolCalls.map(({ id, name, arguments: input = {}, server }, i) => ({
      id: id ?? `${envelope.callPrefix}${i + 1}`,
      name,
      arguments: typeof input === 'string' ? input : JSON.stringify(input),
      server,
      explicitId: id,
    })),
    usage: turn.usage === null ? null : countUsage(turn, request),
    hasFinish: endWithout !== 'finish' && endWithout !== 'both',
    hasDone: endWithout !== 'done' && endWithout !== 'both',
    /** Splits by code points, so surrogate pairs stay together. */
    split: (words = ''): string[] => {
      const points = Array.from(words)
      return Array.from({ length: Math.ceil(points.length / chunkSize) }, (_, i) =>
        points.slice(i * chunkSize, (i + 1) * chunkSize).join(''),
      )
    },
  }
}

function countUsage(turn: Turn, { messages, tools }: ChatRequest) {
  const { text, reasoning: thoughts = '', refusal, toolCalls } = turn
  const counted: NonNullable<Turn['usage']> = turn.usage ?? {
    input: estimateTokens([messages, tools]),
    output: estimateTokens([text, thoughts, refusal, toolCalls]),
    reasoning: estimateTokens([thoughts]),
  }
  const { cached = 0, cacheWrite = 0, reasoning = 0, ...rest } = counted
  return { ...rest, cached, cacheWrite, reasoning }
}

/** Counts four characters of JSON as one token, which is inaccurate but deterministic. */
function estimateTokens(values: unknown[]): number {
  return Math.ceil((JSON.stringify(values.filter(Boolean)).length - 2) / 4)
}

export interface Event {
  type: string
  [key: string]: unknown
}

/** Adds events to the first and the last delta, so that a cut stream breaks off between two deltas. */
export function frame(deltas: readonly Event[][], before: Event[], after: Event[]): Event[][] {
  const [first = [], ...rest] = deltas
  const all = [[...before, ...first], ...rest]
  return [...all.slice(0, -1), [...(all.at(-1) ?? []), ...after]]
}

/** A signature that detects changed content. */
export const sign = (content: string): string =>
  createHash('sha256').update(`rehearsal:${content}`).digest('base64')
