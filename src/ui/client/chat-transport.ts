import type { Clock } from '../../core/base/clock.js'
import { configError } from '../../core/base/errors.js'
import type {
  ChunkOf,
  PageChunk,
  Protocol,
  ToolMessage,
  UIMessage,
  UIMessageChunk,
} from '../ui-message-types.js'
import {
  ChatError,
  type ConnectionState,
  createConnection,
  createLostError,
  isLostError,
  type RequestSource,
} from './connection.js'

type Value<Type> = Type | (() => Type | Promise<Type>)

export type HeaderValues = Record<string, string | undefined> | Headers | [string, string][]

export interface ChatTransportOptions {
  /** The mount path of `chatHandler`. Defaults to `/api/chat`. */
  api?: string
  /** Headers for every request, or a function that is called for each request. */
  headers?: Value<HeaderValues>
  /** Defaults to the platform's default, `same-origin`. */
  credentials?: RequestCredentials
  /** Sends the requests. Defaults to the platform's `fetch`. */
  fetch?: typeof globalThis.fetch
  /** How long to retry a request while the server is unreachable, in milliseconds. Defaults to 300,000 (5 minutes). */
  maxOutageMs?: number
  /**
   * Whether `useChat`'s `stop()` stops the run on the server. `useChat({ transport })` also calls `stop()` when its
   * component unmounts, `useChat({ chat })` does not. Defaults to true.
   */
  stopRuns?: boolean
  /** Called with `lost` when the server becomes unreachable, and with `open` when it is back. */
  onConnection?: (state: ConnectionState) => void
  /** Receives the error if a run could not be stopped. Defaults to a console warning. */
  onStopError?: (error: ChatError) => void
  /** A clock for tests. Defaults to the platform's clock. */
  clock?: Clock
}

export interface SentMessage {
  id: string
  role: string
  parts: readonly { type: string }[]
}

export interface ReconnectOptions {
  chatId: string
  abortSignal?: AbortSignal | undefined
  headers?: Record<string, string> | Headers
  body?: object
  metadata?: unknown
}

export interface SendOptions extends ReconnectOptions {
  messages: readonly SentMessage[]
  trigger: 'submit-message' | 'regenerate-message'
  messageId: string | undefined
  abortSignal: AbortSignal | undefined
}

interface OpenAnswer {
  onClose?: () => void
  /** Sends the message again. Absent if the server would answer it twice. */
  source?: RequestSource
  isCut: boolean
  requested: Set<string>
}

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
  const { protocol = 'v7', headers: common = {}, credentials, clock = pageClock, stopRuns = true } = options
  const { maxOutageMs = 300_000, onConnection = ignore, onStopError = warn } = options
  const api = (options.api ?? '/api/chat').replace(/\/+$/, '')
  // Looked up late, because apps may replace the global fetch.
  const fetch: typeof globalThis.fetch = options.fetch ?? ((url, init) => globalThis.fetch(url, init))
  const connection = createConnection({ fetch, clock, maxOutageMs, onConnection })
  const answers = new Map<string, OpenAnswer>()
  /** The last user message of each chat that the page has read without an answer. */
  const unanswered = new Map<string, string>()

  /** A POST of `body`, or a GET without it. */
  const createRequest = (
    path: string,
    { headers: own }: Pick<ReconnectOptions, 'headers'> = {},
    body?: object,
  ): RequestSource => {
    const init = body ? { method: 'POST', body: JSON.stringify(body) } : { method: 'GET' }
    return async () => {
      const headers = {
        ...toHeaders(typeof common === 'function' ? await common() : common),
        ...Object.fromEntries(new Headers(own).entries()),
        ...(body && { 'content-type': 'application/json' }),
        'x-ai-sdk': protocol === 'v6' ? '6' : '7',
      }
      return [`${api}${path}`, { ...init, ...(credentials && { credentials }), headers }]
    }
  }
  const close = (chatId: string, answer: OpenAnswer): void => {
    answer.onClose?.()
    if (answers.get(chatId) === answer) answers.delete(chatId)
  }
  const open = (chatId: string, answer: OpenAnswer, signal: AbortSignal | undefined): void => {
    answers.set(chatId, answer)
    signal?.addEventListener('abort', () => {
      // `ai` also aborts a reconnect that it immediately replaces.
      queueMicrotask(() => {
        if (answers.get(chatId) !== answer) return
        close(chatId, answer)
        if (stopRuns) stop(chatId).catch(onStopError)
      })
    })
  }
  /** `useChat` considers a chat ready if a reconnect finds nothing. */
  const waitForEnd = (chatId: string, signal: AbortSignal | undefined): Promise<void> => {
    const newer = answers.get(chatId)
    return new Promise((resolve) => {
      if (!newer || signal?.aborted) return resolve()
      newer.onClose = resolve
      signal?.addEventListener('abort', () => resolve())
    })
  }
  /** Also continues a run whose process has died. Returns null if the chat has continued without this page. */
  const resend = (source: RequestSource, signal: AbortSignal | undefined): Promise<Response | null> =>
    connection.request(source, { signal }).catch((error: unknown) => {
      if (error instanceof ChatError && error.status === 409) return null
      throw error
    })
  /** The answer to the user message `of`, even if it is complete. Without `of`, the answer in progress. */
  const openAnswer = async (options: ReconnectOptions, of: string | undefined): Promise<Response | null> => {
    const stream = createRequest(toStreamPath(options.chatId, of), options)
    const response = await connection.request(stream, { signal: options.abortSignal })
    return response.status === 204 ? null : response
  }
  async function* readAnswer(
    chatId: string,
    answer: OpenAnswer,
    response: Response,
    signal: AbortSignal | undefined,
    startsAgain: boolean,
  ): AsyncGenerator<PageChunk, void> {
    let hasStarted = false
    let isReplay = startsAgain
    for (let opened = response; ; ) {
      try {
        for await (const chunk of passCalls(readChunks(opened.body, clock), answer.requested, isReplay)) {
          hasStarted = true
          yield chunk
        }
        close(chatId, answer)
        return
      } catch (error) {
        if (!isLostError(error)) {
          close(chatId, answer)
          throw error
        }
        connection.report('lost')
        answer.isCut = true
        // A queued message is sent again, because the page has no part of its answer yet.
        if (hasStarted || !answer.source) throw error
        const again = await resend(answer.source, signal)
        // Only a reconnect can read the chat, which has continued without this page.
        if (again === null) throw error
        opened = again
        answer.isCut = false
        isReplay = true
      }
    }
  }

  const sendMessages = async (options: SendOptions): Promise<ReadableStream<PageChunk>> => {
    const { chatId, trigger, messageId, abortSignal: signal } = options
    const message = findSentMessage(options)
    unanswered.delete(chatId)
    const messages = message ? [message] : []
    const source = createRequest('', options, { ...options.body, id: chatId, messages, trigger, messageId })
    // The server recognizes repeated messages by id, but not repeated regenerations and edits.
    const isKnownById = message?.role === 'user' && trigger === 'submit-message' && messageId === undefined
    const repeatable = isKnownById || message?.role === 'assistant'
    const answer: OpenAnswer = { isCut: false, requested: new Set(), ...(isKnownById && { source }) }
    open(chatId, answer, signal)
    let isRepeated = false
    const onRepeat = (): void => void (isRepeated = true)
    try {
      const response = await connection.request(source, { signal, repeatable, onRepeat })
      return toStream(readAnswer(chatId, answer, response, signal, false))
    } catch (error) {
      // The first of two attempts may have arrived. The chat then has the answer.
      const hasArrived = isRepeated && error instanceof ChatError && error.status === 409
      if (!hasArrived && !isLostError(error)) close(chatId, answer)
      else answer.isCut = true
      throw hasArrived ? createLostError(error) : error
    }
  }

  const reconnectToStream = async (options: ReconnectOptions): Promise<ReadableStream<PageChunk> | null> => {
    const { chatId, abortSignal: signal } = options
    const earlier = answers.get(chatId)
    const answer: OpenAnswer = earlier?.isCut ? { ...earlier } : { isCut: false, requested: new Set() }
    open(chatId, answer, signal)
    try {
      let response = answer.source ? await resend(answer.source, signal) : null
      response ??= await openAnswer(options, unanswered.get(chatId))
      if (response === null) {
        const messages = await readMessages(chatId, { signal })
        const last = findLastSent(messages)
        const isNew = last?.role === 'assistant' && (answer.isCut || hasWaitingCall(last))
        if (isNew && answers.get(chatId) === answer)
          response = await openAnswer(options, findLastSent(messages, 'user')?.id)
      }
      if (answers.get(chatId) !== answer) {
        void response?.body?.cancel().catch(() => undefined)
        await waitForEnd(chatId, signal)
        return null
      }
      if (response) return toStream(readAnswer(chatId, answer, response, signal, true))
      close(chatId, answer)
      return null
    } catch (error) {
      if (!answer.isCut) close(chatId, answer)
      throw error
    }
  }

  const readMessages = async (
    chatId: string,
    { branch, signal }: { branch?: number; signal?: AbortSignal | undefined } = {},
  ): Promise<UIMessage[]> => {
    const path = branch === undefined ? toPath(chatId) : `${toPath(chatId)}?branch=${branch}`
    const response = await connection.request(createRequest(path), { signal })
    const messages = (await response.json()) as UIMessage[]
    const last = findLastSent(messages)
    if (last?.role === 'user') unanswered.set(chatId, last.id)
    else unanswered.delete(chatId)
    return messages
  }

  const waitForTurn = async (
    chatId: string,
    messageId: string,
    { signal }: { signal?: AbortSignal | undefined } = {},
  ): Promise<boolean> => {
    for (;;) {
      const response = await connection.request(createRequest(toStreamPath(chatId, messageId)), { signal })
      if (response.status === 204) return false
      const chunks = readChunks(response.body, clock)
      try {
        return (await chunks.next()).done !== true
      } catch (error) {
        if (!isLostError(error)) throw error
        connection.report('lost')
      } finally {
        void chunks.return(undefined)
      }
    }
  }

  const stop = async (chatId: string): Promise<void> => {
    await connection.request(createRequest(`${toPath(chatId)}/stop`, {}, {}))
  }

  const resumeStreamIsReplay = true as const
  return { resumeStreamIsReplay, sendMessages, reconnectToStream, readMessages, waitForTurn, stop }
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

/** A copy, because the core's clock would be another file for the page to load. */
const pageClock: Clock = {
  now: () => Date.now(),
  setTimeout: (fn, ms) => setTimeout(fn, ms),
  clearTimeout: (id) => clearTimeout(id as Parameters<typeof clearTimeout>[0]),
}

const ignore = (): void => undefined

function warn(error: ChatError): void {
  // oxlint-disable-next-line no-console -- pages have no other log
  console.warn(`The run could not be stopped: ${error.message}`)
}

function toHeaders(values: HeaderValues): Record<string, string> {
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

const findLastSent = (messages: readonly UIMessage[], from?: UIMessage['role']): UIMessage | undefined =>
  messages.findLast(({ role, metadata }) => !metadata?.queued && (from ?? role) === role)

const toPath = (chatId: string): string => `/${encodeURIComponent(chatId)}`

const toStreamPath = (chatId: string, of: string | undefined): string =>
  `${toPath(chatId)}/stream${of === undefined ? '' : `?of=${encodeURIComponent(of)}`}`

/** The last message, or the one whose calls are answered, reduced to the calls of its last step. */
function findSentMessage({ messages, trigger, messageId }: SendOptions): SentMessage | undefined {
  const named = trigger === 'submit-message' ? messages.find(({ id }) => id === messageId) : undefined
  const message = named ?? messages.at(-1)
  if (message?.role !== 'assistant') return message
  const from = message.parts.findLastIndex(({ type }) => type === 'step-start')
  const last = message.parts.slice(Math.max(from, 0))
  return { ...message, parts: last.filter(({ type }) => /^(tool-|dynamic-tool$|step-start$)/.test(type)) }
}

function toStream(chunks: AsyncGenerator<PageChunk, void>): ReadableStream<PageChunk> {
  return new ReadableStream<PageChunk>(
    {
      pull: async (controller) => {
        const { done, value } = await chunks.next()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: () => void chunks.return(undefined),
    },
    { highWaterMark: 0 },
  )
}

/** The server sends a heartbeat every 15 seconds. After three missed heartbeats the connection is lost. */
const maxSilenceMs = 45_000

const lastChunks: ReadonlySet<string> = new Set(['finish', 'abort', 'error'])

/** @throws {ChatError} `connection_lost` if the response breaks before the answer ends */
async function* readChunks(
  body: ReadableStream<Uint8Array> | null,
  clock: Clock,
): AsyncGenerator<UIMessageChunk, void> {
  if (body === null) throw createLostError()
  const reader = body.getReader()
  const decoder = new TextDecoder()
  // The pieces of an incomplete frame. They are joined once, because an image arrives in hundreds of pieces.
  let pieces: string[] = []
  /** The last characters, because a frame delimiter may be split. */
  let end = ''
  let hasEnded = false
  try {
    for (;;) {
      const read = await readInTime(reader, clock)
      if (read === null) break
      const piece = decoder.decode(read, { stream: true })
      const seen = end + piece
      end = seen.slice(-2)
      pieces.push(piece)
      if (!/\n\r?\n/.test(seen)) continue
      const frames = pieces.join('').split(/\r?\n\r?\n/)
      pieces = frames.splice(-1)
      for (const frame of frames) {
        if (!frame.startsWith('data:')) continue
        const data = frame.slice('data:'.length).trim()
        if (data === '[DONE]') {
          hasEnded = true
          continue
        }
        const chunk = JSON.parse(data) as UIMessageChunk
        hasEnded ||= lastChunks.has(chunk.type)
        yield chunk
      }
    }
  } catch (cause) {
    // After the end, the server keeps the response open only for its hooks.
    const isAbort = cause instanceof Error && cause.name === 'AbortError'
    if (!hasEnded) throw isAbort ? cause : createLostError(cause)
  } finally {
    void reader.cancel().catch(() => undefined)
  }
  if (!hasEnded) throw createLostError()
}

async function readInTime(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  clock: Clock,
): Promise<Uint8Array | null> {
  let timer: unknown
  const silence = new Promise<never>((_, reject) => {
    timer = clock.setTimeout(() => reject(new Error('The server sent no heartbeat.')), maxSilenceMs)
  })
  try {
    const { done, value } = await Promise.race([reader.read(), silence])
    return done ? null : value
  } finally {
    clock.clearTimeout(timer)
  }
}

type InputChunk = Extract<UIMessageChunk, { type: 'tool-input-available' }>

/**
 * `useChat` runs `onToolCall` unless `providerExecuted` is set. In a replay, it is cleared only for calls that still wait
 * when the answer rests. `requested` contains the calls that this page was already asked to execute.
 */
async function* passCalls(
  chunks: AsyncIterable<UIMessageChunk>,
  requested: Set<string>,
  isReplay: boolean,
): AsyncGenerator<PageChunk, void> {
  const open = new Map<string, InputChunk>()
  for await (const chunk of chunks) {
    switch (chunk.type) {
      case 'tool-input-available':
        if (!isReplay) {
          requested.add(chunk.toolCallId)
          break
        }
        open.set(chunk.toolCallId, chunk)
        yield { ...chunk, providerExecuted: true }
        continue
      case 'tool-output-available':
      case 'tool-output-error':
      case 'tool-output-denied':
        open.delete(chunk.toolCallId)
        break
      case 'tool-approval-request': {
        const input = open.get(chunk.toolCallId)
        open.delete(chunk.toolCallId)
        if (input) yield { ...input, providerExecuted: false }
        break
      }
      case 'start-step':
        open.clear()
        break
      case 'finish':
        for (const [callId, input] of open) {
          if (requested.has(callId)) continue
          requested.add(callId)
          yield { ...input, providerExecuted: false }
        }
    }
    yield chunk
  }
}

function hasWaitingCall({ parts }: Pick<UIMessage, 'parts'>): boolean {
  return parts.some((part) => 'toolCallId' in part && part.state === 'input-available')
}
