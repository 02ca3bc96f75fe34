import type { Json } from '../../machines/agent/json.js'
import type { AGUICall, AGUIEvent, AGUIMessage } from './protocol.js'

/** The time of an event, and the sub-agent it belongs to. */
export interface Mark {
  timestamp: number
  subagentRunId?: string
}

/** Tracks a page's messages, because AG-UI can remove text only with a snapshot of all of them. */
export class PageMessages {
  readonly #messages = new Map<string, AGUIMessage>()
  readonly #texts = new Set<string>()
  readonly #reasoning = new Set<string>()
  readonly #calls = new Map<string, string>()
  #events: AGUIEvent[] = []

  constructor(history: readonly AGUIMessage[]) {
    for (const message of history) this.#messages.set(message.id, message)
  }

  emit(event: AGUIEvent): void {
    this.#events.push(event)
  }

  emitCustom(name: string, value: Json, mark: Mark): void {
    this.emit({ ...mark, type: 'CUSTOM', name: `statewright.${name}`, value })
  }

  takeEvents(): AGUIEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }

  has(id: string): boolean {
    return this.#messages.has(id)
  }

  getText(id: string): string {
    const content = this.#messages.get(id)?.content
    return typeof content === 'string' ? content : ''
  }

  /** Adds a message that the page already has or receives in another way. */
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

  /** Writes a complete text, or the remainder of a text that was already closed. */
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
    if (!this.#reasoning.has(messageId)) {
      this.#reasoning.add(messageId)
      this.emit({ ...mark, type: 'REASONING_START', messageId })
      this.emit({ ...mark, type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' })
    }
    this.emit({ ...mark, type: 'REASONING_MESSAGE_CONTENT', messageId, delta })
    this.#append({ id: messageId, role: 'reasoning', content: '', ...toOwner(mark) }, delta)
  }

  closeMessage(messageId: string, reasoningId: string, mark: Mark): void {
    for (const [id, owner] of this.#calls) if (owner === messageId) this.#closeCall(id, mark)
    this.closeText(messageId, mark)
    this.closeText(reasoningId, mark)
  }

  closeText(messageId: string, mark: Mark): void {
    if (this.#texts.delete(messageId)) this.emit({ ...mark, type: 'TEXT_MESSAGE_END', messageId })
    if (!this.#reasoning.delete(messageId)) return
    this.emit({ ...mark, type: 'REASONING_MESSAGE_END', messageId })
    this.emit({ ...mark, type: 'REASONING_END', messageId })
  }

  /** Writes a complete call, or the remainder of a call whose arguments were streamed. */
  writeCall(
    messageId: string,
    toolCallId: string,
    { name, arguments: text }: { name: string; arguments: string },
    mark: Mark,
  ): void {
    const streamed = this.#calls.has(toolCallId) ? this.#getArguments(messageId, toolCallId) : ''
    const isContinued = text.startsWith(streamed)
    if (isContinued)
      this.writeCallDelta(messageId, toolCallId, { name, delta: text.slice(streamed.length) }, mark)
    this.#closeCall(toolCallId, mark)
    if (isContinued) return
    this.#setArguments(messageId, toolCallId, { name, arguments: text }, mark)
    this.replaceMessages([messageId], [this.#getAnswer(messageId, mark)], mark)
  }

  writeCallDelta(
    messageId: string,
    toolCallId: string,
    { name, delta }: { name: string; delta: string },
    mark: Mark,
  ): void {
    const isNew = !this.#calls.has(toolCallId)
    if (isNew) {
      this.#calls.set(toolCallId, messageId)
      const parentMessageId = messageId
      this.emit({ ...mark, type: 'TOOL_CALL_START', toolCallId, toolCallName: name, parentMessageId })
    }
    if (delta !== '') this.emit({ ...mark, type: 'TOOL_CALL_ARGS', toolCallId, delta })
    const before = isNew ? '' : this.#getArguments(messageId, toolCallId)
    this.#setArguments(messageId, toolCallId, { name, arguments: before + delta }, mark)
  }

  /** Removes streamed calls that the final version of a message does not contain. */
  keepCalls(messageId: string, final: readonly string[], mark: Mark): void {
    const isStale = (id: string): boolean => this.#calls.get(id) === messageId && !final.includes(id)
    const { toolCalls = [], ...message } = this.#getAnswer(messageId, mark)
    const stale = toolCalls.filter(({ id }) => isStale(id))
    if (stale.length === 0) return
    for (const { id } of stale) this.#closeCall(id, mark)
    const rest = toolCalls.filter((call) => !stale.includes(call))
    const isEmpty = rest.length === 0 && (message.content ?? '') === ''
    const whole = { ...message, ...(rest.length > 0 && { toolCalls: rest }) }
    this.replaceMessages([messageId], isEmpty ? [] : [whole], mark)
  }

  /** The calls in an answer, including calls that are still streaming. */
  getCalls(messageId: string): readonly AGUICall[] {
    const message = this.#messages.get(messageId)
    return message?.role === 'assistant' ? (message.toolCalls ?? []) : []
  }

  #closeCall(toolCallId: string, mark: Mark): void {
    if (this.#calls.delete(toolCallId)) this.emit({ ...mark, type: 'TOOL_CALL_END', toolCallId })
  }

  #getArguments(messageId: string, toolCallId: string): string {
    return this.getCalls(messageId).find(({ id }) => id === toolCallId)?.function.arguments ?? ''
  }

  #setArguments(messageId: string, id: string, called: AGUICall['function'], mark: Mark): void {
    const message = this.#getAnswer(messageId, mark)
    const { toolCalls = [] } = message
    const call = { id, type: 'function' as const, function: called }
    const at = toolCalls.findIndex((known) => known.id === id)
    const calls = at < 0 ? [...toolCalls, call] : toolCalls.with(at, call)
    this.#messages.set(messageId, { ...message, toolCalls: calls })
  }

  #getAnswer(id: string, mark: Mark): Extract<AGUIMessage, { role: 'assistant' }> {
    const known = this.#messages.get(id)
    return known?.role === 'assistant' ? known : { id, role: 'assistant', ...toOwner(mark) }
  }

  get all(): AGUIMessage[] {
    return [...this.#messages.values()]
  }

  emitSnapshot(): void {
    this.emit({ type: 'MESSAGES_SNAPSHOT', messages: this.all })
  }

  replaceMessages(ids: readonly string[], messages: readonly AGUIMessage[], { timestamp }: Mark): void {
    const shown = ids.filter((id) => this.#messages.has(id))
    if (shown.length === 0 && messages.length === 0) return
    for (const id of ids) if (!messages.some((message) => message.id === id)) this.#messages.delete(id)
    for (const message of messages) this.#messages.set(message.id, message)
    const all = this.all
    // A page keeps its reasoning messages unless the snapshot has at least one reasoning message.
    const reasoning = shown.find((id) => id.endsWith('.reasoning'))
    if (reasoning !== undefined && !all.some(({ role }) => role === 'reasoning'))
      all.push({ id: reasoning, role: 'reasoning', content: '' })
    this.emit({ timestamp, type: 'MESSAGES_SNAPSHOT', messages: all })
  }

  #append(fresh: AGUIMessage, delta: string): void {
    const message = this.#messages.get(fresh.id) ?? fresh
    const { content = '' } = message
    if (typeof content === 'string')
      this.#messages.set(fresh.id, { ...message, content: content + delta } as AGUIMessage)
  }
}

export function toOwner({ subagentRunId }: Pick<Mark, 'subagentRunId'>): { subagentRunId?: string } {
  return subagentRunId === undefined ? {} : { subagentRunId }
}
