import type { Clock } from '../../core/base/clock.js'
import { ConfigError } from '../../core/base/errors.js'
import type { Protocol } from '../ui-message-chunks.js'
import type { ConnectionState } from './connection.js'
import { HttpChat, type ReconnectOptions, type SendOptions } from './http-chat.js'
import type { ChunkOf, ToolMessage } from './ui-message-types.js'
import type { ChatError } from './chat-error.js'

type Value<Type> = Type | (() => Type | Promise<Type>)

/** Headers of requests: an object, pairs, or `Headers`. */
export type HeaderValues = Record<string, string | undefined> | Headers | [string, string][]

export interface ChatTransportOptions {
  /** Where `chatHandler` is mounted. Default: `/api/chat`. */
  api?: string
  /** Headers of every request, or a function that returns them anew for each one. */
  headers?: Value<HeaderValues>
  /** Default: the platform's, `same-origin`. */
  credentials?: RequestCredentials
  /** Sends the requests. Default: the platform's `fetch`. */
  fetch?: typeof globalThis.fetch
  /** How long a request is sent again while the server is away, in milliseconds. Default: 300,000 (5 minutes). */
  maxOutageMs?: number
  /**
   * Whether `stop()` of `useChat` stops the run on the server. `useChat({ transport })` also calls it when its component is
   * unmounted; `useChat({ chat })` does not. Default: true.
   */
  stopRuns?: boolean
  /** Called with `lost` when the server is away, and with `open` when it is back. */
  onConnection?: (state: ConnectionState) => void
  /** Receives the error when a run could not be stopped. Default: a warning in the console. */
  onStopError?: (error: ChatError) => void
  /** Time for tests. Default: the platform's. */
  clock?: Clock
}

/** A transport for `useChat` of `ai` 6 and 7: it fits the `ChatTransport` of both. */
export interface ChatTransport<Message = ToolMessage, Version extends Protocol = 'v7'> {
  /** The server sends an answer again from its beginning. */
  readonly resumeStreamIsReplay: true
  /** Sends the last message, and streams the answer. `useChat` calls it. */
  sendMessages(options: SendOptions): Promise<ReadableStream<ChunkOf<Version>>>
  /** Streams the answer that is under way, from its beginning; null when nothing is. `useChat` calls it. */
  reconnectToStream(options: ReconnectOptions): Promise<ReadableStream<ChunkOf<Version>> | null>
  /**
   * The messages of a chat, for `useChat({ messages })`. Queued messages come last, with `metadata: { queued: true }`. `branch`: as
   * that branch of the chat has them.
   *
   * @throws {ChatError}
   */
  readMessages(chatId: string, options?: { branch?: number; signal?: AbortSignal }): Promise<Message[]>
  /**
   * Waits for the turn of a queued message. True when its answer has begun: read the chat again, and resume the stream. False
   * when it waits for a person, or the chat does not have it.
   *
   * @throws {ChatError}
   */
  waitForTurn(chatId: string, messageId: string, options?: { signal?: AbortSignal }): Promise<boolean>
  /**
   * Stops the run of a chat on the server, as `stop()` of `useChat` does.
   *
   * @throws {ChatError}
   */
  stop(chatId: string): Promise<void>
}

/**
 * Connects `useChat` with a `chatHandler`:
 *
 * - sends the last message alone, and names the client's protocol: `protocol: 'v6'` for `ai` 6
 * - sends requests again while the server is away: after half a second, and at most every five seconds
 * - `stop()` stops the run on the server
 * - `resumeStream()` continues an answer, and asks for the calls that wait for the page: see `onToolCall` of `useChat`
 * - a refusal is a `ChatError` with a `code`
 *
 * When the connection breaks in the middle of an answer, `useChat` has the error `connection_lost`: call `resumeStream()`.
 *
 * @example
 * const transport = chatTransport({ api: '/api/chat', headers: () => ({ 'x-user': 'ann' }) })
 * // const { messages, sendMessage, stop } = useChat({ id: 'c1', transport, resume: true })
 * @throws {ConfigError} `invalid_config`
 */
export function chatTransport<Message = ToolMessage>(
  options?: ChatTransportOptions & { protocol?: 'v7' },
): ChatTransport<Message>
export function chatTransport<Message = ToolMessage>(
  options: ChatTransportOptions & { protocol: 'v6' },
): ChatTransport<Message, 'v6'>
export function chatTransport(
  options: ChatTransportOptions & { protocol?: Protocol } = {},
): ChatTransport<unknown, Protocol> {
  checkOptions(options)
  const { api = '/api/chat', protocol = 'v7', stopRuns = true, maxOutageMs = 300_000 } = options
  const { headers = {}, credentials, clock = pageClock, onConnection = ignore } = options
  const http = new HttpChat({
    api: api.replace(/\/+$/, ''),
    version: protocol === 'v6' ? '6' : '7',
    readHeaders: async () => toHeaders(typeof headers === 'function' ? await headers() : headers),
    credentials,
    // A fetch that is replaced later counts, too.
    fetch: options.fetch ?? ((url, init) => globalThis.fetch(url, init)),
    clock,
    maxOutageMs,
    stopRuns,
    onConnection,
    onStopError: options.onStopError ?? warn,
  })
  return {
    resumeStreamIsReplay: true,
    sendMessages: (request) => http.sendMessages(request),
    reconnectToStream: (request) => http.reconnectToStream(request),
    readMessages: (chatId, options) => http.readMessages(chatId, options),
    waitForTurn: (chatId, messageId, options) => http.waitForTurn(chatId, messageId, options),
    stop: (chatId) => http.stop(chatId),
  }
}

/** The core's own would be another file for the page to load. */
const pageClock: Clock = {
  now: () => Date.now(),
  setTimeout: (fn, ms) => setTimeout(fn, ms),
  clearTimeout: (id) => clearTimeout(id as Parameters<typeof clearTimeout>[0]),
}

const ignore = (): void => undefined

function warn(error: ChatError): void {
  // oxlint-disable-next-line no-console -- the page has no other place
  console.warn(`The run could not be stopped: ${error.message}`)
}

export function toHeaders(values: HeaderValues): Record<string, string> {
  const pairs =
    values instanceof Headers
      ? [...values.entries()]
      : Array.isArray(values)
        ? values
        : Object.entries(values)
  return Object.fromEntries(
    pairs.flatMap(([name, value]) => (value === undefined ? [] : [[name.toLowerCase(), value]])),
  ) as Record<string, string>
}

const known = [
  'api',
  'protocol',
  'headers',
  'credentials',
  'fetch',
  'maxOutageMs',
  'stopRuns',
  'onConnection',
  'onStopError',
  'clock',
]

function checkOptions(options: ChatTransportOptions & { protocol?: Protocol }): void {
  const refuse = (key: string, rule: string): never => {
    throw new ConfigError('invalid_config', `${key} must be ${rule}.`, key)
  }
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    refuse('options', "an object, such as { api: '/api/chat' }")
  const { api, protocol, maxOutageMs } = options
  const strange = Object.keys(options).find((key) => !known.includes(key))
  if (strange !== undefined)
    throw new ConfigError(
      'invalid_config',
      `chatTransport has no option '${strange}'. It takes ${known.join(', ')}.`,
      strange,
    )
  if (api !== undefined && (typeof api !== 'string' || api === ''))
    refuse('api', "where chatHandler is mounted, such as '/api/chat'")
  if (protocol !== undefined && protocol !== 'v6' && protocol !== 'v7')
    refuse('protocol', "'v7', or 'v6' for ai 6")
  if (maxOutageMs !== undefined && !(maxOutageMs >= 0))
    refuse('maxOutageMs', 'a number of milliseconds from 0')
  for (const key of ['fetch', 'onConnection', 'onStopError'] as const)
    if (options[key] !== undefined && typeof options[key] !== 'function') refuse(key, 'a function')
}
