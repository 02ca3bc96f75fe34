import type { Clock } from '../../core/base/clock.js'
import type { UIMessage, UIMessageChunk } from '../ui-message-chunks.js'
import { ChatError, createLostError, isLostError } from './chat-error.js'
import { Connection, type ConnectionOptions, type RequestSource } from './connection.js'
import { hasWaitingCall, noteCalls, type PageChunk, replayCalls, toChunks } from './replayed-calls.js'

export interface HttpChatOptions extends ConnectionOptions {
  /** Without a slash at its end. */
  api: string
  /** The client's major version, as the server's header has it. */
  version: '6' | '7'
  readHeaders: () => Promise<Record<string, string>>
  credentials: RequestCredentials | undefined
  stopRuns: boolean
  onStopError: (error: ChatError) => void
}

/** A message of `useChat`, of any type. */
export interface SentMessage {
  id: string
  role: string
  parts: readonly { type: string }[]
}

/** What `useChat` gives `sendMessages`. */
export interface SendOptions {
  chatId: string
  messages: readonly SentMessage[]
  trigger: 'submit-message' | 'regenerate-message'
  messageId: string | undefined
  abortSignal: AbortSignal | undefined
  headers?: Record<string, string> | Headers
  body?: object
  metadata?: unknown
}

/** What `useChat` gives `reconnectToStream`. */
export interface ReconnectOptions {
  chatId: string
  abortSignal?: AbortSignal | undefined
  headers?: Record<string, string> | Headers
  body?: object
  metadata?: unknown
}

/** An answer that has not ended, as this page knows it. */
interface OpenAnswer {
  /** Called when it has ended. */
  onClose?: () => void
  /** Sends its message again: the server answers it once. Absent for what must not be sent twice. */
  source?: RequestSource | undefined
  /** The connection broke in the middle of it. */
  isCut: boolean
  /** Calls that the page was asked to carry out. */
  asked: Set<string>
}

/** Requests of one page to a `chatHandler`. */
export class HttpChat {
  readonly #options: HttpChatOptions
  readonly #connection: Connection
  /** The last answer of each chat, until it has ended. */
  readonly #answers = new Map<string, OpenAnswer>()
  /** The user message at the end of each chat, as the page has read it: its answer is still to be streamed. */
  readonly #unanswered = new Map<string, string>()

  constructor(options: HttpChatOptions) {
    this.#options = options
    this.#connection = new Connection(options)
  }

  async sendMessages(options: SendOptions): Promise<ReadableStream<PageChunk>> {
    const { chatId, trigger, messageId, abortSignal: signal } = options
    const message = findSentMessage(options)
    this.#unanswered.delete(chatId)
    const source = this.#createPost('', options, {
      ...options.body,
      id: chatId,
      messages: message ? [message] : [],
      trigger,
      messageId,
    })
    // The server knows a message by its id. It would regenerate or edit twice.
    const isKnownById = message?.role === 'user' && trigger === 'submit-message' && messageId === undefined
    const repeatable = isKnownById || message?.role === 'assistant'
    const answer: OpenAnswer = { source: isKnownById ? source : undefined, isCut: false, asked: new Set() }
    this.#open(chatId, answer, signal)
    let isRepeated = false
    const onRepeat = (): void => {
      isRepeated = true
    }
    try {
      const response = await this.#connection.request(source, { signal, repeatable, onRepeat })
      return toStream(this.#readAnswer(chatId, answer, { response, signal, isReplay: false }))
    } catch (error) {
      // Of a request that was sent twice, the first may have arrived: the chat has what became of it.
      const hasArrived = isRepeated && error instanceof ChatError && error.status === 409
      if (!hasArrived && !isLostError(error)) this.#close(chatId, answer)
      else answer.isCut = true
      throw hasArrived ? createLostError(error) : error
    }
  }

  async reconnectToStream(options: ReconnectOptions): Promise<ReadableStream<PageChunk> | null> {
    const { chatId, abortSignal: signal } = options
    const earlier = this.#answers.get(chatId)
    const answer: OpenAnswer = earlier?.isCut ? { ...earlier } : { isCut: false, asked: new Set() }
    this.#open(chatId, answer, signal)
    try {
      const response = await this.#reopen(options, answer)
      const messages = response ? [] : await this.readMessages(chatId, { signal })
      if (this.#answers.get(chatId) !== answer) {
        void response?.body?.cancel()
        await this.#waitForEnd(chatId, signal)
        return null
      }
      if (response) return toStream(this.#readAnswer(chatId, answer, { response, signal, isReplay: true }))
      this.#close(chatId, answer)
      const last = messages.findLast(({ metadata }) => !metadata?.queued)
      const isNews = last?.role === 'assistant' && (answer.isCut || hasWaitingCall(last))
      return isNews ? toStream(replayCalls(toChunks(last), answer.asked)) : null
    } catch (error) {
      if (!answer.isCut) this.#close(chatId, answer)
      throw error
    }
  }

  async readMessages(
    chatId: string,
    { branch, signal }: { branch?: number; signal?: AbortSignal | undefined } = {},
  ): Promise<UIMessage[]> {
    const path = branch === undefined ? toPath(chatId) : `${toPath(chatId)}?branch=${branch}`
    const response = await this.#connection.request(this.#createGet(path), { signal })
    const messages = (await response.json()) as UIMessage[]
    const last = messages.findLast(({ metadata }) => !metadata?.queued)
    if (last?.role === 'user') this.#unanswered.set(chatId, last.id)
    else this.#unanswered.delete(chatId)
    return messages
  }

  async waitForTurn(
    chatId: string,
    messageId: string,
    { signal }: { signal?: AbortSignal | undefined } = {},
  ): Promise<boolean> {
    for (;;) {
      const response = await this.#connection.request(this.#createGet(toStreamPath(chatId, messageId)), {
        signal,
      })
      if (response.status === 204) return false
      const chunks = readChunks(response.body, this.#options.clock)
      try {
        return (await chunks.next()).done !== true
      } catch (error) {
        if (!isLostError(error)) throw error
        this.#connection.report('lost')
      } finally {
        void chunks.return(undefined)
      }
    }
  }

  async stop(chatId: string): Promise<void> {
    await this.#connection.request(this.#createPost(`${toPath(chatId)}/stop`, {}, {}))
  }

  /** The answer again from its beginning; null when none is under way. */
  async #reopen(options: ReconnectOptions, { source }: OpenAnswer): Promise<Response | null> {
    const { chatId, abortSignal: signal } = options
    try {
      // Sending the message again also continues a run whose process has ended.
      if (source) return await this.#connection.request(source, { signal })
    } catch (error) {
      // The chat went on without this page.
      if (!(error instanceof ChatError) || error.status !== 409) throw error
    }
    const stream = this.#createGet(toStreamPath(chatId, this.#unanswered.get(chatId)), options)
    const response = await this.#connection.request(stream, { signal })
    return response.status === 204 ? null : response
  }

  async *#readAnswer(
    chatId: string,
    answer: OpenAnswer,
    {
      response,
      signal,
      isReplay,
    }: { response: Response; signal: AbortSignal | undefined; isReplay: boolean },
  ): AsyncGenerator<PageChunk, void> {
    let hasBegun = false
    let pass = isReplay ? replayCalls : noteCalls
    for (let opened = response; ; ) {
      const chunks = readChunks(opened.body, this.#options.clock)
      try {
        for await (const chunk of pass(chunks, answer.asked)) {
          hasBegun = true
          yield chunk
        }
        this.#close(chatId, answer)
        return
      } catch (error) {
        if (!isLostError(error)) {
          this.#close(chatId, answer)
          throw error
        }
        this.#connection.report('lost')
        answer.isCut = true
        // A message that still waits for its turn is sent again: the page has nothing of its answer.
        if (hasBegun || !answer.source) throw error
        opened = await this.#connection.request(answer.source, { signal })
        answer.isCut = false
        pass = replayCalls
      }
    }
  }

  #open(chatId: string, answer: OpenAnswer, signal: AbortSignal | undefined): void {
    this.#answers.set(chatId, answer)
    signal?.addEventListener('abort', () => {
      // `ai` also aborts a reconnect that it replaces by another one, at once.
      queueMicrotask(() => {
        if (this.#answers.get(chatId) !== answer) return
        this.#close(chatId, answer)
        if (this.#options.stopRuns) this.stop(chatId).catch(this.#options.onStopError)
      })
    })
  }

  /** `useChat` takes a chat for ready when a reconnect finds nothing: where a message was sent meanwhile, its answer ends first. */
  #waitForEnd(chatId: string, signal: AbortSignal | undefined): Promise<void> {
    const newer = this.#answers.get(chatId)
    return new Promise((resolve) => {
      if (!newer || signal?.aborted) return resolve()
      newer.onClose = resolve
      signal?.addEventListener('abort', () => resolve())
    })
  }

  #close(chatId: string, answer: OpenAnswer): void {
    answer.onClose?.()
    if (this.#answers.get(chatId) === answer) this.#answers.delete(chatId)
  }

  #createPost(path: string, { headers }: Pick<SendOptions, 'headers'>, body: object): RequestSource {
    const text = JSON.stringify(body)
    return this.#createRequest(path, headers, {
      method: 'POST',
      body: text,
      headers: { 'content-type': 'application/json' },
    })
  }

  #createGet(path: string, { headers }: Pick<ReconnectOptions, 'headers'> = {}): RequestSource {
    return this.#createRequest(path, headers, { method: 'GET' })
  }

  #createRequest(
    path: string,
    more: Record<string, string> | Headers | undefined,
    { headers, ...init }: RequestInit,
  ): RequestSource {
    const { api, version, readHeaders, credentials } = this.#options
    return async () => {
      const own = { ...(headers as Record<string, string>), 'x-ai-sdk': version }
      const given = Object.fromEntries(new Headers(more).entries())
      return [
        `${api}${path}`,
        {
          ...init,
          ...(credentials && { credentials }),
          headers: { ...(await readHeaders()), ...given, ...own },
        },
      ]
    }
  }
}

const toPath = (chatId: string): string => `/${encodeURIComponent(chatId)}`

const toStreamPath = (chatId: string, of: string | undefined): string =>
  `${toPath(chatId)}/stream${of === undefined ? '' : `?of=${encodeURIComponent(of)}`}`

/**
 * The message that a request is about: the last one, or the earlier one whose calls are answered. Of an answer only the calls
 * since the last step are sent: the log has the rest.
 */
function findSentMessage({ messages, trigger, messageId }: SendOptions): SentMessage | undefined {
  const named = trigger === 'submit-message' ? messages.find(({ id }) => id === messageId) : undefined
  const message = named ?? messages.at(-1)
  if (message?.role !== 'assistant') return message
  const from = message.parts.findLastIndex(({ type }) => type === 'step-start')
  return { ...message, parts: message.parts.slice(Math.max(from, 0)).filter(isCallOrStep) }
}

const isCallOrStep = ({ type }: { type: string }): boolean => /^(tool-|dynamic-tool$|step-start$)/.test(type)

/** Chunks are made as the page reads them. */
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

/** The server sends something every 15 seconds: after three times that, the connection counts as lost. */
const maxSilenceMs = 45_000

/** After these chunks an answer has ended. */
const lastChunks: ReadonlySet<string> = new Set(['finish', 'abort', 'error'])

/**
 * Reads the chunks of an answer from a response.
 *
 * @throws {ChatError} `connection_lost` when the response breaks off before the answer has ended
 */
async function* readChunks(
  body: ReadableStream<Uint8Array> | null,
  clock: Clock,
): AsyncGenerator<UIMessageChunk, void> {
  if (body === null) throw createLostError()
  const reader = body.getReader()
  const decoder = new TextDecoder()
  // Pieces of a frame that has not ended. They are joined once: a picture comes in hundreds.
  let pieces: string[] = []
  /** The last characters: the end of a frame may be cut, too. */
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
    // The server keeps the response open for its hooks: what breaks then is no loss.
    if (!hasEnded) throw isAbort(cause) ? cause : createLostError(cause)
  } finally {
    void reader.cancel().catch(() => undefined)
  }
  if (!hasEnded) throw createLostError()
}

const isAbort = (error: unknown): boolean => error instanceof Error && error.name === 'AbortError'

/** The next bytes; null at the end. */
async function readInTime(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  clock: Clock,
): Promise<Uint8Array | null> {
  let timer: unknown
  const silence = new Promise<never>((_, reject) => {
    timer = clock.setTimeout(() => reject(new Error('The server has been silent.')), maxSilenceMs)
  })
  try {
    const { done, value } = await Promise.race([reader.read(), silence])
    return done ? null : value
  } finally {
    clock.clearTimeout(timer)
  }
}
