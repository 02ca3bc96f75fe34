// The chat suite replaces it with `ai` 7, see scripts/chat.mjs.
import {
  AbstractChat,
  type ChatInit,
  type ChatState,
  type ChatStatus,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  parseJsonEventStream,
  readUIMessageStream,
  type UIMessage,
  type UIMessageChunk,
  uiMessageChunkSchema,
} from 'ai'
import type { Protocol } from '../../src/ui/index.js'

export { lastAssistantMessageIsCompleteWithToolCalls }

/** The stream of this client. */
export const protocol: Protocol = process.env['AI_NEWEST'] === 'installed' ? 'v7' : 'v6'

/** The client of `ai`, as `useChat` drives it, without React. */
export class Chat extends AbstractChat<UIMessage> {
  readonly errors: Error[] = []

  constructor(id: string, handler: Handler, options: Partial<ChatInit<UIMessage>> = {}) {
    const errors: Error[] = []
    const { messages = [], ...init } = options
    const fetch = ((input: string, how?: RequestInit) =>
      handler(new Request(new URL(input, 'http://chat.test'), how))) as typeof globalThis.fetch
    super({
      id,
      transport: new DefaultChatTransport({ fetch }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
      onError: (error) => errors.push(error),
      ...init,
      state: new State(messages),
    })
    this.errors = errors
  }

  /** The text of the last message. */
  get text(): string {
    return textOf(this.lastMessage)
  }
}

export type Handler = (request: Request) => Promise<Response>

export function textOf(message: UIMessage | undefined): string {
  return (message?.parts ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
}

class State implements ChatState<UIMessage> {
  status: ChatStatus = 'ready'
  error: Error | undefined
  messages: UIMessage[]

  constructor(messages: UIMessage[]) {
    this.messages = messages
  }

  pushMessage = (message: UIMessage): void => {
    this.messages = [...this.messages, message]
  }
  popMessage = (): void => {
    this.messages = this.messages.slice(0, -1)
  }
  replaceMessage = (index: number, message: UIMessage): void => {
    this.messages = this.messages.with(index, message)
  }
  snapshot = <Value>(value: Value): Value => structuredClone(value)
}

/** The chunks of an answer, validated by the client's schema. */
export async function chunksOf(response: Response): Promise<UIMessageChunk[]> {
  const chunks: UIMessageChunk[] = []
  const stream = parseJsonEventStream({
    stream: response.body as ReadableStream<Uint8Array<ArrayBuffer>>,
    schema: uiMessageChunkSchema,
  })
  for await (const read of stream) {
    if (!read.success) throw read.error
    chunks.push(read.value)
  }
  return chunks
}

/** The messages that the client creates from chunks. Throws for unknown chunks. */
export async function messageOf(
  chunks: readonly UIMessageChunk[],
  message?: UIMessage,
): Promise<UIMessage | undefined> {
  const errors: unknown[] = []
  let last = message
  const stream = new ReadableStream<UIMessageChunk>({
    start: (controller) => {
      for (const chunk of chunks) controller.enqueue(chunk)
      controller.close()
    },
  })
  const read = readUIMessageStream({
    stream,
    onError: (error) => errors.push(error),
    ...(message && { message }),
  })
  for await (const each of read) last = each
  const reported = chunks.flatMap((chunk) => (chunk.type === 'error' ? [chunk.errorText] : []))
  const own = errors.filter((error) => !reported.includes((error as Error).message))
  if (own.length > 0) throw own[0]
  return last
}
