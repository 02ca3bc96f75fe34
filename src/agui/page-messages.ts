import type { AGUIEvent, AGUIMessage } from './protocol.js'

/** The time of an event, and the sub-agent that it belongs to. */
export interface Mark {
  timestamp: number
  subagentRunId?: string
}

/**
 * Tracks the messages that a page has, and makes the events that change them. AG-UI removes a text only by a snapshot of
 * all messages, so the server must know them all.
 */
export class PageMessages {
  /** By id, in order. */
  readonly #messages = new Map<string, AGUIMessage>()
  readonly #texts = new Set<string>()
  readonly #thoughts = new Set<string>()
  #events: AGUIEvent[] = []

  constructor(history: readonly AGUIMessage[]) {
    for (const message of history) this.#messages.set(message.id, message)
  }

  emit(event: AGUIEvent): void {
    this.#events.push(event)
  }

  /** The events since the last call. */
  takeEvents(): AGUIEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }

  has(id: string): boolean {
    return this.#messages.has(id)
  }

  /** The text of this message; '' when there is none. */
  getText(id: string): string {
    const content = this.#messages.get(id)?.content
    return typeof content === 'string' ? content : ''
  }

  /** Adds a message that the page already has, or gets in another way. */
  remember(message: AGUIMessage): void {
    this.#messages.set(message.id, message)
  }

  writeText(messageId: string, delta: string, mark: Mark): void {
    if (!this.#texts.has(messageId)) {
      this.#texts.add(messageId)
      this.emit({ ...mark, type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' })
    }
    this.emit({ ...mark, type: 'TEXT_MESSAGE_CONTENT', messageId, delta })
    this.#append({ id: messageId, role: 'assistant', ...toOwner(mark) }, delta)
  }

  /** A complete text, or the rest of one that was closed. */
  addText(messageId: string, role: 'assistant' | 'user', delta: string, mark: Mark): void {
    this.closeText(messageId, mark)
    this.emit({ ...mark, type: 'TEXT_MESSAGE_CHUNK', messageId, role, delta })
    this.#append(
      role === 'user'
        ? { id: messageId, role, content: '', ...toOwner(mark) }
        : { id: messageId, role, ...toOwner(mark) },
      delta,
    )
  }

  writeReasoning(messageId: string, delta: string, mark: Mark): void {
    if (!this.#thoughts.has(messageId)) {
      this.#thoughts.add(messageId)
      this.emit({ ...mark, type: 'REASONING_START', messageId })
      this.emit({ ...mark, type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' })
    }
    this.emit({ ...mark, type: 'REASONING_MESSAGE_CONTENT', messageId, delta })
    this.#append({ id: messageId, role: 'reasoning', content: '', ...toOwner(mark) }, delta)
  }

  /** Ends the text or reasoning with this id, if it is open. */
  closeText(messageId: string, mark: Mark): void {
    if (this.#texts.delete(messageId)) this.emit({ ...mark, type: 'TEXT_MESSAGE_END', messageId })
    if (!this.#thoughts.delete(messageId)) return
    this.emit({ ...mark, type: 'REASONING_MESSAGE_END', messageId })
    this.emit({ ...mark, type: 'REASONING_END', messageId })
  }

  writeCall(
    messageId: string,
    toolCallId: string,
    { name, arguments: text }: { name: string; arguments: string },
    mark: Mark,
  ): void {
    this.emit({
      ...mark,
      type: 'TOOL_CALL_START',
      toolCallId,
      toolCallName: name,
      parentMessageId: messageId,
    })
    this.emit({ ...mark, type: 'TOOL_CALL_ARGS', toolCallId, delta: text })
    this.emit({ ...mark, type: 'TOOL_CALL_END', toolCallId })
    const said = this.#messages.get(messageId)
    const message =
      said?.role === 'assistant' ? said : { id: messageId, role: 'assistant' as const, ...toOwner(mark) }
    const call = { id: toolCallId, type: 'function' as const, function: { name, arguments: text } }
    this.#messages.set(messageId, { ...message, toolCalls: [...(message.toolCalls ?? []), call] })
  }

  get all(): AGUIMessage[] {
    return [...this.#messages.values()]
  }

  /** Sends all messages. */
  emitSnapshot(): void {
    this.emit({ type: 'MESSAGES_SNAPSHOT', messages: this.all })
  }

  /** Replaces the messages with these ids by `messages`, with a snapshot. */
  replaceMessages(ids: readonly string[], messages: readonly AGUIMessage[], { timestamp }: Mark): void {
    const shown = ids.filter((id) => this.#messages.has(id))
    if (shown.length === 0 && messages.length === 0) return
    for (const id of ids) if (!messages.some((message) => message.id === id)) this.#messages.delete(id)
    for (const message of messages) this.#messages.set(message.id, message)
    const all = this.all
    // A page keeps its reasoning messages unless the snapshot has one.
    const thought = shown.find((id) => this.#isThought(id, all))
    if (thought !== undefined) all.push({ id: thought, role: 'reasoning', content: '' })
    this.emit({ timestamp, type: 'MESSAGES_SNAPSHOT', messages: all })
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

function toOwner({ subagentRunId }: Mark): { subagentRunId?: string } {
  return subagentRunId === undefined ? {} : { subagentRunId }
}
