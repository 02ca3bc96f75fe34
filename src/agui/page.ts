import type { AGUIEvent, AGUIMessage } from './protocol.js'

/** Whose work it is, and when it was done. */
export interface Mark {
  timestamp: number
  subagentRunId?: string
}

/**
 * The messages of a page that follows the events, and the events that make them so: AG-UI takes a text back only by
 * telling all messages anew, and for that somebody has to know them.
 */
export class Page {
  /** By their ids, in their order. Those of this page alone: a text grows in its place. */
  readonly #messages = new Map<string, AGUIMessage>()
  readonly #texts = new Set<string>()
  readonly #thoughts = new Set<string>()
  #news: AGUIEvent[] = []

  constructor(history: readonly AGUIMessage[]) {
    for (const message of history) this.#messages.set(message.id, message)
  }

  tell(event: AGUIEvent): void {
    this.#news.push(event)
  }

  /** What has to be told since this was asked last. */
  takeNews(): AGUIEvent[] {
    const news = this.#news
    this.#news = []
    return news
  }

  has(id: string): boolean {
    return this.#messages.has(id)
  }

  /** What it shows under this id; '' where that is nothing. */
  textOf(id: string): string {
    const content = this.#messages.get(id)?.content
    return typeof content === 'string' ? content : ''
  }

  /** The page has it already, or is told of it in another way. */
  know(message: AGUIMessage): void {
    this.#messages.set(message.id, message)
  }

  write(messageId: string, delta: string, mark: Mark): void {
    if (!this.#texts.has(messageId)) {
      this.#texts.add(messageId)
      this.tell({ ...mark, type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' })
    }
    this.tell({ ...mark, type: 'TEXT_MESSAGE_CONTENT', messageId, delta })
    this.#append({ id: messageId, role: 'assistant', ...owner(mark) }, delta)
  }

  /** A text that comes at once, or the rest of one that has been closed. */
  add(messageId: string, role: 'assistant' | 'user', delta: string, mark: Mark): void {
    this.close(messageId, mark)
    this.tell({ ...mark, type: 'TEXT_MESSAGE_CHUNK', messageId, role, delta })
    this.#append(
      role === 'user'
        ? { id: messageId, role, content: '', ...owner(mark) }
        : { id: messageId, role, ...owner(mark) },
      delta,
    )
  }

  think(messageId: string, delta: string, mark: Mark): void {
    if (!this.#thoughts.has(messageId)) {
      this.#thoughts.add(messageId)
      this.tell({ ...mark, type: 'REASONING_START', messageId })
      this.tell({ ...mark, type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' })
    }
    this.tell({ ...mark, type: 'REASONING_MESSAGE_CONTENT', messageId, delta })
    this.#append({ id: messageId, role: 'reasoning', content: '', ...owner(mark) }, delta)
  }

  /** Ends the text or the thoughts of this id, if they are still being written. */
  close(messageId: string, mark: Mark): void {
    if (this.#texts.delete(messageId)) this.tell({ ...mark, type: 'TEXT_MESSAGE_END', messageId })
    if (!this.#thoughts.delete(messageId)) return
    this.tell({ ...mark, type: 'REASONING_MESSAGE_END', messageId })
    this.tell({ ...mark, type: 'REASONING_END', messageId })
  }

  call(
    messageId: string,
    toolCallId: string,
    { name, arguments: text }: { name: string; arguments: string },
    mark: Mark,
  ): void {
    this.tell({
      ...mark,
      type: 'TOOL_CALL_START',
      toolCallId,
      toolCallName: name,
      parentMessageId: messageId,
    })
    this.tell({ ...mark, type: 'TOOL_CALL_ARGS', toolCallId, delta: text })
    this.tell({ ...mark, type: 'TOOL_CALL_END', toolCallId })
    const said = this.#messages.get(messageId)
    const message =
      said?.role === 'assistant' ? said : { id: messageId, role: 'assistant' as const, ...owner(mark) }
    const call = { id: toolCallId, type: 'function' as const, function: { name, arguments: text } }
    this.#messages.set(messageId, { ...message, toolCalls: [...(message.toolCalls ?? []), call] })
  }

  get all(): AGUIMessage[] {
    return [...this.#messages.values()]
  }

  /** Tells all that it shows. */
  restateAll(): void {
    this.tell({ type: 'MESSAGES_SNAPSHOT', messages: this.all })
  }

  /** Takes away what it shows under these ids, and puts these in their places, where there are any. */
  restate(ids: readonly string[], messages: readonly AGUIMessage[], { timestamp }: Mark): void {
    const shown = ids.filter((id) => this.#messages.has(id))
    if (shown.length === 0 && messages.length === 0) return
    for (const id of ids) if (!messages.some((message) => message.id === id)) this.#messages.delete(id)
    for (const message of messages) this.#messages.set(message.id, message)
    const told = this.all
    // A page keeps the thoughts that it has unless it is told of some.
    const thought = shown.find((id) => this.#isThought(id, told))
    if (thought !== undefined) told.push({ id: thought, role: 'reasoning', content: '' })
    this.tell({ timestamp, type: 'MESSAGES_SNAPSHOT', messages: told })
  }

  #isThought(id: string, told: readonly AGUIMessage[]): boolean {
    return id.endsWith('.reasoning') && !told.some(({ role }) => role === 'reasoning')
  }

  #append(fresh: AGUIMessage, delta: string): void {
    const message = this.#messages.get(fresh.id) ?? fresh
    const { content = '' } = message
    if (typeof content === 'string')
      this.#messages.set(fresh.id, { ...message, content: content + delta } as AGUIMessage)
  }
}

function owner({ subagentRunId }: Mark): { subagentRunId?: string } {
  return subagentRunId === undefined ? {} : { subagentRunId }
}
