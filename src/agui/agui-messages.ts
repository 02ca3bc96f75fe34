import { joinTextParts } from '../core/base/text.js'
import { expectArgument, getOrCreate, listRule } from '../core/base/values.js'
import type { ContentPart, MediaPart, Message, ToolMessage } from '../../machines/agent/messages.js'
import { isRestState, type TurnEnd } from '../../machines/agent/run-result.js'
import { getShownContent } from '../web/chat-turn.js'
import { findClientId } from '../core/sessions/find-turn.js'
import { getSentence } from '../web/exposure.js'
import type { AGUIEnd, AGUIMessage, AGUIPart, AGUISource } from './protocol.js'

/**
 * Converts a transcript into AG-UI messages with the same ids as `toAGUI`, for `MESSAGES_SNAPSHOT` or for a page that
 * loads a conversation. Internal messages and provider-specific items are left out.
 *
 * @example
 * const { messages } = await agent.run('What is 19 + 23?').result
 * const shown = toAGUIMessages(messages)
 */
export function toAGUIMessages(messages: readonly Message[]): AGUIMessage[] {
  const rule = listRule('a list of messages, such as (await run.result).messages')
  expectArgument('toAGUIMessages(messages)', messages, rule)
  const names = createCallNames()
  return messages.flatMap((message) => toPageMessages(message, names))
}

export type CallNames = ReturnType<typeof createCallNames>

/**
 * Gives each call a unique id, because some providers restart call numbers in each answer. A call keeps its id unless
 * an earlier message used it.
 */
export function createCallNames() {
  const messagesByCall = new Map<string, Set<string>>()
  const latestNames = new Map<string, string>()
  const getLatestName = (callId: string): string => latestNames.get(callId) ?? callId
  return {
    getLatestName,

    nameCall(callId: string, messageId: string): string {
      const owners = getOrCreate(messagesByCall, callId, () => new Set<string>()).add(messageId)
      const name = toCallName(callId, messageId, owners)
      latestNames.set(callId, name)
      return name
    },

    /** The page's name for a call that waits for an answer. A sub-agent's call starts with the outer calls. */
    getRequestName(callId: string): string {
      if (latestNames.has(callId)) return getLatestName(callId)
      const above = [...latestNames.keys()].filter((id) => callId.startsWith(`${id}/`))
      const nearest = above.toSorted((a, b) => b.length - a.length)[0] ?? ''
      return `${getLatestName(nearest)}${callId.slice(nearest.length)}`
    },

    hasName(name: string): boolean {
      const names = [...messagesByCall].flatMap(([id, owners]) =>
        [...owners].map((owner) => toCallName(id, owner, owners)),
      )
      return names.some((known) => name === known || name.startsWith(`${known}/`))
    },
  }
}

function toCallName(callId: string, messageId: string, owners: ReadonlySet<string>): string {
  const [first] = owners
  return first === messageId ? callId : `${callId}.${messageId}`
}

export function collectCallNames(messages: readonly Message[]): CallNames {
  const names = createCallNames()
  for (const message of messages) {
    if (message.role !== 'assistant') continue
    for (const { id } of message.tool_calls ?? []) names.nameCall(id, message.id)
  }
  return names
}

export function toPageMessages(message: Message, names: CallNames): AGUIMessage[] {
  if (message.internal) return []
  const { id } = message
  switch (message.role) {
    case 'system':
      return [{ id, role: 'system', content: message.content }]
    case 'user':
      return [{ id: getUserMessageId(message), role: 'user', content: toParts(message.content) }]
    case 'tool':
      return [toToolMessage(message, names)]
    default: {
      const { reasoning, tool_calls: calls } = message
      // Withheld text is omitted, because connected pages did not receive it either.
      const content = message.data?.['withheld'] === true ? '' : message.content || message.refusal || ''
      const toolCalls = calls?.map((call) => ({
        id: names.nameCall(call.id, id),
        type: 'function' as const,
        function: { name: call.function.name, arguments: call.function.arguments },
      }))
      const isShown = content !== '' || toolCalls !== undefined
      const answer = { id, role: 'assistant' as const, ...(content !== '' && { content }) }
      return [
        ...(reasoning ? [{ id: toReasoningId(id), role: 'reasoning' as const, content: reasoning }] : []),
        ...(isShown ? [{ ...answer, ...(toolCalls && { toolCalls }) }] : []),
      ]
    }
  }
}

/**
 * Lists the end of each run that did not answer in full, for a page that loads a conversation. A paused run has an
 * interrupt instead.
 *
 * @example
 * const { messages, ends = [] } = await agent.replay('ann')
 * const shown = toAGUIEnds(ends, messages)
 */
export function toAGUIEnds(
  ends: readonly TurnEnd[],
  messages: readonly Message[],
  getMessageId: (message: Message) => string = getUserMessageId,
): AGUIEnd[] {
  const rule = listRule('a list of turn ends, such as (await agent.replay(id)).ends')
  expectArgument('toAGUIEnds(ends)', ends, rule)
  expectArgument('toAGUIEnds(ends, messages)', messages, listRule('a list of messages'))
  const byId = new Map(messages.map((message) => [message.id, message]))
  return ends.flatMap(({ messageId, state, reason, error }) => {
    const opening = byId.get(messageId)
    if (isRestState(state) || opening === undefined) return []
    const { code = reason, message = getSentence(reason) } = error ?? {}
    return [{ messageId: getMessageId(opening), state, reason, code, message }]
  })
}

export function getUserMessageId(message: Message): string {
  return findClientId(message) ?? message.id
}

export function toReasoningId(messageId: string): string {
  return `${messageId}.reasoning`
}

function toToolMessage(message: ToolMessage, names: CallNames): AGUIMessage {
  const { id, media, data } = message
  const content = getShownContent(message)
  const status = data?.['status']
  return {
    id,
    role: 'tool',
    toolCallId: names.getLatestName(message.tool_call_id),
    content: joinMedia(content, media),
    ...(typeof status === 'string' && { error: content }),
  }
}

export function joinMedia(text: string, media: readonly MediaPart[] | undefined): string | AGUIPart[] {
  if (!media || media.length === 0) return text
  return [{ type: 'text', text }, ...media.map(toPart)]
}

function toParts(content: string | readonly ContentPart[]): string | AGUIPart[] {
  return typeof content === 'string' ? content : content.map(toPart)
}

function toPart(part: ContentPart): AGUIPart {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'image_url':
      return { type: 'image', source: parseSource(part.image_url.url) }
    case 'input_audio': {
      const { data: value, format } = part.input_audio
      return { type: 'audio', source: { type: 'data', value, mimeType: `audio/${format}` } }
    }
    default: {
      const { file_data: data, file_id: handle, filename } = part.file
      const source: AGUISource =
        data === undefined ? { type: 'file', value: handle ?? '' } : parseSource(data)
      return { type: 'document', source, ...(filename !== undefined && { metadata: { filename } }) }
    }
  }
}

function parseSource(address: string): AGUISource {
  const [, mimeType, value] = /^data:([^;,]*)[^,]*;base64,(.*)$/s.exec(address) ?? []
  if (value === undefined) return { type: 'url', value: address }
  return { type: 'data', value, mimeType: mimeType || 'application/octet-stream' }
}

/** A lookup of the page's ids. User messages are matched by their text, from the end. */
export function matchClientIds(
  history: readonly Message[],
  page: readonly { id: string; role: string; content?: unknown }[],
): (message: Message) => string {
  const names = new Map<string, string>()
  const recorded = history.filter(({ role, internal }) => role === 'user' && !internal).toReversed()
  const shown = page.filter(({ role }) => role === 'user').toReversed()
  let at = 0
  for (const { id, content } of shown) {
    // A screened message always counts as a match, because its text may differ from what the page sent.
    const found = recorded.findIndex(
      ({ content: text, data }, i) =>
        i >= at && (data?.['screened'] === true || joinTextParts(text) === joinTextParts(content)),
    )
    const message = recorded[found]
    if (!message) continue
    names.set(message.id, id)
    at = found + 1
  }
  return ({ id }) => names.get(id) ?? id
}

/** Whether the page shows exactly these messages. Only ids are compared. */
export function hasAllMessages(
  messages: readonly AGUIMessage[],
  shown: readonly { id: string; role: string; subagentRunId?: string }[],
): boolean {
  const transcriptIds = messages.filter(isTranscriptMessage).map(({ id }) => id)
  const shownIds = shown.filter(isTranscriptMessage).map(({ id }) => id)
  const hasSameIds = new Set([...transcriptIds, ...shownIds]).size === transcriptIds.length
  return hasSameIds && transcriptIds.length === shownIds.length
}

/** Reasoning, activities and sub-agent messages are not part of the transcript. */
function isTranscriptMessage({ role, subagentRunId }: { role: string; subagentRunId?: string }): boolean {
  return subagentRunId === undefined && role !== 'reasoning' && role !== 'activity'
}
