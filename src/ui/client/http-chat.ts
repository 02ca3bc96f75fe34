import type { Clock } from '../../core/base/clock.js'
import type { PageChunk, UIMessage, UIMessageChunk, UIMessagePart } from '../ui-message-types.js'
import {
  ChatError,
  Connection,
  type ConnectionOptions,
  createLostError,
  isLostError,
  type RequestSource,
} from './connection.js'

interface HttpChatOptions extends ConnectionOptions {
  /** The mount path of the handler, without a trailing slash. */
  api: string
  version: '6' | '7'
  readHeaders: () => Promise<Record<string, string>>
  credentials: RequestCredentials | undefined
  stopRuns: boolean
  onStopError: (error: ChatError) => void
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
  /** Sends the message again. The server answers the message once. Absent if the message must not be sent twice. */
  source?: RequestSource
  isCut: boolean
  requested: Set<string>
}

export class HttpChat {
  readonly resumeStreamIsReplay = true
  readonly #options: HttpChatOptions
  readonly #connection: Connection
  readonly #answers = new Map<string, OpenAnswer>()
  /** The last user message of each chat that the page has read without an answer. */
  readonly #unanswered = new Map<string, string>()

  constructor(options: HttpChatOptions) {
    this.#options = options
    this.#connection = new Connection(options)
  }

  async sendMessages(options: SendOptions): Promise<ReadableStream<PageChunk>> {
    const { chatId, trigger, messageId, abortSignal: signal } = options
    const message = findSentMessage(options)
    this.#unanswered.delete(chatId)
    const source = this.#createRequest('', options, {
      ...options.body,
      id: chatId,
      messages: message ? [message] : [],
      trigger,
      messageId,
    })
    // The server recognizes repeated messages by id, but not repeated regenerations and edits.
    const isKnownById = message?.role === 'user' && trigger === 'submit-message' && messageId === undefined
    const repeatable = isKnownById || message?.role === 'assistant'
    const answer: OpenAnswer = { isCut: false, requested: new Set(), ...(isKnownById && { source }) }
    this.#open(chatId, answer, signal)
    let isRepeated = false
    const onRepeat = (): void => {
      isRepeated = true
    }
    try {
      const response = await this.#connection.request(source, { signal, repeatable, onRepeat })
      return toStream(this.#readAnswer(chatId, answer, { response, signal, isReplay: false }))
    } catch (error) {
      // The first of two attempts may have arrived. The chat then has the answer.
      const hasArrived = isRepeated && error instanceof ChatError && error.status === 409
      if (!hasArrived && !isLostError(error)) this.#close(chatId, answer)
      else answer.isCut = true
      throw hasArrived ? createLostError(error) : error
    }
  }

  async reconnectToStream(options: ReconnectOptions): Promise<ReadableStream<PageChunk> | null> {
    const { chatId, abortSignal: signal } = options
    const earlier = this.#answers.get(chatId)
    const answer: OpenAnswer = earlier?.isCut ? { ...earlier } : { isCut: false, requested: new Set() }
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
      const isNew = last?.role === 'assistant' && (answer.isCut || hasWaitingCall(last))
      return isNew ? toStream(replayCalls(toChunks(last), answer.requested)) : null
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
    const response = await this.#connection.request(this.#createRequest(path), { signal })
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
      const response = await this.#connection.request(this.#createRequest(toStreamPath(chatId, messageId)), {
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
    await this.#connection.request(this.#createRequest(`${toPath(chatId)}/stop`, {}, {}))
  }

  /** Replays the answer from its start. Returns null if none is in progress. */
  async #reopen(options: ReconnectOptions, { source }: OpenAnswer): Promise<Response | null> {
    const { chatId, abortSignal: signal } = options
    try {
      // Resending the message also continues a run whose process has died.
      if (source) return await this.#connection.request(source, { signal })
    } catch (error) {
      // The chat has continued without this page.
      if (!(error instanceof ChatError) || error.status !== 409) throw error
    }
    const stream = this.#createRequest(toStreamPath(chatId, this.#unanswered.get(chatId)), options)
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
    let hasStarted = false
    let pass = isReplay ? replayCalls : noteCalls
    for (let opened = response; ; ) {
      const chunks = readChunks(opened.body, this.#options.clock)
      try {
        for await (const chunk of pass(chunks, answer.requested)) {
          hasStarted = true
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
        // A queued message is sent again, because the page has no part of its answer yet.
        if (hasStarted || !answer.source) throw error
        opened = await this.#connection.request(answer.source, { signal })
        answer.isCut = false
        pass = replayCalls
      }
    }
  }

  #open(chatId: string, answer: OpenAnswer, signal: AbortSignal | undefined): void {
    this.#answers.set(chatId, answer)
    signal?.addEventListener('abort', () => {
      // `ai` also aborts a reconnect that it immediately replaces.
      queueMicrotask(() => {
        if (this.#answers.get(chatId) !== answer) return
        this.#close(chatId, answer)
        if (this.#options.stopRuns) this.stop(chatId).catch(this.#options.onStopError)
      })
    })
  }

  /** `useChat` considers a chat ready if a reconnect finds nothing. */
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

  /** A POST of `body`, or a GET without it. */
  #createRequest(
    path: string,
    options: Pick<ReconnectOptions, 'headers'> = {},
    body?: object,
  ): RequestSource {
    const { api, version, readHeaders, credentials } = this.#options
    const init = body ? { method: 'POST', body: JSON.stringify(body) } : { method: 'GET' }
    return async () => {
      const headers = {
        ...(await readHeaders()),
        ...Object.fromEntries(new Headers(options.headers).entries()),
        ...(body && { 'content-type': 'application/json' }),
        'x-ai-sdk': version,
      }
      return [`${api}${path}`, { ...init, ...(credentials && { credentials }), headers }]
    }
  }
}

const toPath = (chatId: string): string => `/${encodeURIComponent(chatId)}`

const toStreamPath = (chatId: string, of: string | undefined): string =>
  `${toPath(chatId)}/stream${of === undefined ? '' : `?of=${encodeURIComponent(of)}`}`

/** The last message, or the one whose calls are answered, reduced to the calls of its last step. */
function findSentMessage({ messages, trigger, messageId }: SendOptions): SentMessage | undefined {
  const named = trigger === 'submit-message' ? messages.find(({ id }) => id === messageId) : undefined
  const message = named ?? messages.at(-1)
  if (message?.role !== 'assistant') return message
  const from = message.parts.findLastIndex(({ type }) => type === 'step-start')
  return { ...message, parts: message.parts.slice(Math.max(from, 0)).filter(isCallOrStep) }
}

const isCallOrStep = ({ type }: { type: string }): boolean => /^(tool-|dynamic-tool$|step-start$)/.test(type)

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

/**
 * Reads the chunks of an answer.
 *
 * @throws {ChatError} `connection_lost` if the response breaks before the answer ends
 */
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
    if (!hasEnded) throw isAbort(cause) ? cause : createLostError(cause)
  } finally {
    void reader.cancel().catch(() => undefined)
  }
  if (!hasEnded) throw createLostError()
}

const isAbort = (error: unknown): boolean => error instanceof Error && error.name === 'AbortError'

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
 * `useChat` runs `onToolCall` unless `providerExecuted` is set, which is cleared only for calls that still wait when
 * the answer rests. `requested` contains the calls that this page was already asked to execute.
 */
async function* replayCalls(
  chunks: AsyncIterable<UIMessageChunk> | Iterable<UIMessageChunk>,
  requested: Set<string>,
): AsyncGenerator<PageChunk, void> {
  const open = new Map<string, InputChunk>()
  for await (const chunk of chunks) {
    switch (chunk.type) {
      case 'tool-input-available':
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

async function* noteCalls(
  chunks: AsyncIterable<UIMessageChunk>,
  requested: Set<string>,
): AsyncGenerator<PageChunk, void> {
  for await (const chunk of chunks) {
    if (chunk.type === 'tool-input-available') requested.add(chunk.toolCallId)
    yield chunk
  }
}

function hasWaitingCall({ parts }: Pick<UIMessage, 'parts'>): boolean {
  return parts.some((part) => 'toolCallId' in part && part.state === 'input-available')
}

function* toChunks({ id, metadata, parts }: UIMessage): Generator<UIMessageChunk> {
  yield { type: 'start', messageId: id, ...(metadata && { messageMetadata: metadata }) }
  for (const [at, part] of parts.entries()) yield* toPartChunks(part, `${id}.${at}`)
  yield { type: 'finish', finishReason: hasWaitingCall({ parts }) ? 'tool-calls' : 'stop' }
}

function* toPartChunks(part: UIMessagePart, id: string): Generator<UIMessageChunk> {
  switch (part.type) {
    case 'step-start':
      yield { type: 'start-step' }
      return
    case 'text':
    case 'reasoning':
      yield { type: `${part.type}-start`, id }
      yield { type: `${part.type}-delta`, id, delta: part.text }
      yield { type: `${part.type}-end`, id }
      return
    case 'file':
      yield { type: 'file', url: part.url, mediaType: part.mediaType }
      return
    case 'source-url':
    case 'source-document':
    case 'steering-message':
      yield part
      return
  }
  if ('toolCallId' in part) yield* toCallChunks(part)
  else yield part
}

type CallPart = Extract<UIMessagePart, { toolCallId: string }>

function* toCallChunks(part: CallPart): Generator<UIMessageChunk> {
  const { toolCallId, input, title, type } = part
  const isDynamic = type === 'dynamic-tool'
  const toolName = isDynamic ? part.toolName : type.slice('tool-'.length)
  const marks = { ...(isDynamic && { dynamic: true }), ...(title !== undefined && { title }) }
  yield { type: 'tool-input-available', toolCallId, toolName, input, ...marks }
  switch (part.state) {
    case 'approval-requested':
      yield { type: 'tool-approval-request', toolCallId, approvalId: part.approval.id }
      return
    case 'output-available':
      yield { type: 'tool-output-available', toolCallId, output: part.output }
      return
    case 'output-error':
      yield { type: 'tool-output-error', toolCallId, errorText: part.errorText }
      return
    case 'output-denied':
      yield { type: 'tool-output-denied', toolCallId }
  }
}
