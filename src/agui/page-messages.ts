import type { Json } from '../../machines/agent/json.js'
import { toReasoningId } from './agui-messages.js'
import type { AGUICall, AGUIEvent, AGUIMessage } from './protocol.js'

export type PageMessages = ReturnType<typeof createPageMessages>

/** Tracks a page's messages, because AG-UI can remove text only with a snapshot of all of them. */
export function createPageMessages(history: readonly AGUIMessage[]) {
  const messages = new Map(history.map((message) => [message.id, message]))
  const openTexts = new Map<string, 'assistant' | 'reasoning'>()
  const openCalls = new Map<string, string>()
  let events: AGUIEvent[] = []
  /** Of the agent's event that is being converted. */
  let timestamp = 0
  let owner: { subagentRunId?: string } = {}

  const emit = (event: AGUIEvent): void => void events.push(event)
  const write = (event: AGUIEvent): void => emit({ timestamp, ...owner, ...event })

  function writeText(messageId: string, role: 'assistant' | 'reasoning', delta: string): void {
    const isNew = !openTexts.has(messageId)
    openTexts.set(messageId, role)
    if (role === 'assistant') {
      if (isNew) write({ type: 'TEXT_MESSAGE_START', messageId, role })
      write({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })
    } else {
      if (isNew) write({ type: 'REASONING_START', messageId })
      if (isNew) write({ type: 'REASONING_MESSAGE_START', messageId, role })
      write({ type: 'REASONING_MESSAGE_CONTENT', messageId, delta })
    }
    append(messageId, role, delta)
  }

  /** Writes a complete text, or the remainder of a text that was already closed. */
  function addText(messageId: string, role: 'assistant' | 'user', delta: string): void {
    closeText(messageId)
    write({ type: 'TEXT_MESSAGE_CHUNK', messageId, role, delta })
    append(messageId, role, delta)
  }

  function append(id: string, role: AGUIMessage['role'], delta: string): void {
    const message = messages.get(id) ?? { id, role, ...owner }
    const { content = '' } = message as { content?: unknown }
    if (typeof content === 'string') messages.set(id, { ...message, content: content + delta } as AGUIMessage)
  }

  function closeText(messageId: string): void {
    const role = openTexts.get(messageId)
    if (!openTexts.delete(messageId)) return
    if (role === 'assistant') return write({ type: 'TEXT_MESSAGE_END', messageId })
    write({ type: 'REASONING_MESSAGE_END', messageId })
    write({ type: 'REASONING_END', messageId })
  }

  function closeCall(toolCallId: string): void {
    if (openCalls.delete(toolCallId)) write({ type: 'TOOL_CALL_END', toolCallId })
  }

  function writeCallDelta(
    messageId: string,
    id: string,
    { name, arguments: delta }: AGUICall['function'],
  ): void {
    const isNew = !openCalls.has(id)
    if (isNew) {
      openCalls.set(id, messageId)
      write({ type: 'TOOL_CALL_START', toolCallId: id, toolCallName: name, parentMessageId: messageId })
    }
    if (delta !== '') write({ type: 'TOOL_CALL_ARGS', toolCallId: id, delta })
    const before = isNew ? '' : getArguments(messageId, id)
    setCall(messageId, id, { name, arguments: before + delta })
  }

  /** The calls in an answer, including calls that are still streaming. */
  function getCalls(messageId: string): readonly AGUICall[] {
    const message = messages.get(messageId)
    return message?.role === 'assistant' ? (message.toolCalls ?? []) : []
  }

  const getArguments = (messageId: string, toolCallId: string): string =>
    getCalls(messageId).find(({ id }) => id === toolCallId)?.function.arguments ?? ''

  function setCall(messageId: string, id: string, called: AGUICall['function']): void {
    const calls = getCalls(messageId)
    const call = { id, type: 'function' as const, function: called }
    const at = calls.findIndex((known) => known.id === id)
    const toolCalls = at < 0 ? [...calls, call] : calls.with(at, call)
    messages.set(messageId, { ...getAnswer(messageId), toolCalls })
  }

  function getAnswer(id: string): Extract<AGUIMessage, { role: 'assistant' }> {
    const known = messages.get(id)
    return known?.role === 'assistant' ? known : { id, role: 'assistant', ...owner }
  }

  const listAll = (): AGUIMessage[] => [...messages.values()]

  function replaceMessages(ids: readonly string[], replacements: readonly AGUIMessage[]): void {
    const shown = ids.filter((id) => messages.has(id))
    if (shown.length === 0 && replacements.length === 0) return
    for (const id of ids) if (!replacements.some((message) => message.id === id)) messages.delete(id)
    for (const message of replacements) messages.set(message.id, message)
    const all = listAll()
    // A page keeps its reasoning messages unless the snapshot has at least one reasoning message.
    const reasoning = shown.find((id) => id.endsWith('.reasoning'))
    if (reasoning !== undefined && !all.some(({ role }) => role === 'reasoning'))
      all.push({ id: reasoning, role: 'reasoning', content: '' })
    emit({ timestamp, type: 'MESSAGES_SNAPSHOT', messages: all })
  }

  return {
    emit,
    write,
    writeText,
    addText,
    closeText,
    writeCallDelta,
    getCalls,
    replaceMessages,
    listAll,
    setMark(at: number, of: typeof owner = {}): void {
      timestamp = at
      owner = of
    },
    writeCustom: (name: string, value: Json): void =>
      write({ type: 'CUSTOM', name: `statewright.${name}`, value }),
    takeEvents(): AGUIEvent[] {
      const taken = events
      events = []
      return taken
    },
    has: (id: string): boolean => messages.has(id),
    getText(id: string): string {
      const content = messages.get(id)?.content
      return typeof content === 'string' ? content : ''
    },

    /** Adds a message that the page already has or receives in another way. */
    remember: (message: AGUIMessage): void => void messages.set(message.id, message),

    removeAnswers(ids: readonly string[]): void {
      for (const messageId of ids) {
        for (const [id, owner] of openCalls) if (owner === messageId) closeCall(id)
        closeText(messageId)
        closeText(toReasoningId(messageId))
      }
      replaceMessages(
        ids.flatMap((id) => [id, toReasoningId(id)]),
        [],
      )
    },

    /** Writes a complete call, or the remainder of a call whose arguments were streamed. */
    writeCall(messageId: string, toolCallId: string, { name, arguments: text }: AGUICall['function']): void {
      const streamed = openCalls.has(toolCallId) ? getArguments(messageId, toolCallId) : ''
      const isContinued = text.startsWith(streamed)
      if (isContinued) writeCallDelta(messageId, toolCallId, { name, arguments: text.slice(streamed.length) })
      closeCall(toolCallId)
      if (isContinued) return
      setCall(messageId, toolCallId, { name, arguments: text })
      replaceMessages([messageId], [getAnswer(messageId)])
    },

    /** Removes streamed calls that the final version of a message does not contain. */
    keepCalls(messageId: string, final: readonly string[]): void {
      const { toolCalls = [], ...message } = getAnswer(messageId)
      const stale = toolCalls.filter(({ id }) => openCalls.get(id) === messageId && !final.includes(id))
      if (stale.length === 0) return
      for (const { id } of stale) closeCall(id)
      const rest = toolCalls.filter((call) => !stale.includes(call))
      const isEmpty = rest.length === 0 && (message.content ?? '') === ''
      const whole = { ...message, ...(rest.length > 0 && { toolCalls: rest }) }
      replaceMessages([messageId], isEmpty ? [] : [whole])
    },
  }
}
