import { configError } from '../../core/base/errors.js'
import type { ChunkOf, Protocol, ToolMessage } from '../ui-message-types.js'
import {
  type ChatTransportOptions,
  createHttpChat,
  type ReconnectOptions,
  type SendOptions,
} from './http-chat.js'

/** A transport for `useChat`, compatible with `ChatTransport` in `ai` 6 and 7. */
export interface ChatTransport<Message = ToolMessage, Version extends Protocol = 'v7'> {
  /** The server replays an answer from its start. */
  readonly resumeStreamIsReplay: true
  /** Sends the last message and streams the answer. Called by `useChat`. */
  sendMessages(options: SendOptions): Promise<ReadableStream<ChunkOf<Version>>>
  /** Streams the answer in progress from its start, or returns null if there is none. Called by `useChat`. */
  reconnectToStream(options: ReconnectOptions): Promise<ReadableStream<ChunkOf<Version>> | null>
  /**
   * The messages of a chat or of one of its branches, for `useChat({ messages })`. Queued messages come last, with
   * `metadata: { queued: true }`.
   *
   * @throws {ChatError}
   */
  readMessages(chatId: string, options?: { branch?: number; signal?: AbortSignal }): Promise<Message[]>
  /**
   * Waits for the turn of a queued message. Returns true once its answer has started. Then read the chat again, and
   * resume the stream. Returns false if the message waits for a person, or if the chat does not contain it.
   *
   * @throws {ChatError}
   */
  waitForTurn(chatId: string, messageId: string, options?: { signal?: AbortSignal }): Promise<boolean>
  /**
   * Stops the run of a chat on the server, like `useChat`'s `stop()`.
   *
   * @throws {ChatError}
   */
  stop(chatId: string): Promise<void>
}

/**
 * Connects `useChat` to a `chatHandler`:
 *
 * - sends only the last message, and the client's protocol: set `protocol: 'v6'` for `ai` 6
 * - retries requests while the server is unreachable: after half a second at first, and at most every five seconds
 * - `stop()` stops the run on the server
 * - `resumeStream()` continues an answer, and triggers `useChat`'s `onToolCall` for calls that wait for the page
 * - a refusal is a `ChatError` with a `code`
 *
 * If the connection breaks during an answer, `useChat` has the error `connection_lost`. Call `resumeStream()` then.
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
  return createHttpChat(options)
}

const optionNames = [
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
    throw configError(`${key} must be ${rule}.`, key)
  }
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    refuse('options', "an object, such as { api: '/api/chat' }")
  const unknownKey = Object.keys(options).find((key) => !optionNames.includes(key))
  if (unknownKey !== undefined)
    throw configError(
      `chatTransport has no option '${unknownKey}'. Options: ${optionNames.join(', ')}.`,
      unknownKey,
    )
  const { api = '/', protocol = 'v7', maxOutageMs = 0 } = options
  if (typeof api !== 'string' || api === '')
    refuse('api', "the mount path of chatHandler, such as '/api/chat'")
  if (protocol !== 'v6' && protocol !== 'v7') refuse('protocol', "'v7', or 'v6' for ai 6")
  if (!(maxOutageMs >= 0)) refuse('maxOutageMs', 'a non-negative number of milliseconds')
  for (const key of ['fetch', 'onConnection', 'onStopError'] as const)
    if (options[key] !== undefined && typeof options[key] !== 'function') refuse(key, 'a function')
}
