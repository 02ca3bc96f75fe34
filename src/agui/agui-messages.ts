import { expectArgument, listRule } from '../core/base/expect-argument.js'
import type { ContentPart, MediaPart, Message, ToolMessage } from '../../machines/agent/messages.js'
import { getShownContent } from '../web/chat-turn.js'
import type { AGUIMessage, AGUIPart, AGUISource } from './protocol.js'

/**
 * A transcript as AG-UI has it, with the ids that `toAGUI` uses: for `MESSAGES_SNAPSHOT`, or for a page that begins
 * with what was said before. Messages of the loop's own are left out, and so is what only a provider understands.
 *
 * @example
 * const { messages } = await agent.run('What is 19 + 23?').result
 * const shown = toAGUIMessages(messages)
 */
export function toAGUIMessages(messages: readonly Message[]): AGUIMessage[] {
  expectArgument(
    'toAGUIMessages(messages)',
    messages,
    listRule('a list of messages, such as (await run.result).messages'),
  )
  const names = new CallNames()
  return messages.flatMap((message) => toPageMessages(message, names))
}

/**
 * Providers number their calls as they like, some from anew in each answer; a page keeps one list for a whole
 * conversation. A call keeps its id where no message before has used it.
 */
export class CallNames {
  /** The messages that use an id, in their order. */
  readonly #messagesByCall = new Map<string, Set<string>>()
  readonly #latestNames = new Map<string, string>()

  /** What the page calls a call of this message. */
  nameCall(callId: string, messageId: string): string {
    const owners = (this.#messagesByCall.get(callId) ?? new Set()).add(messageId)
    this.#messagesByCall.set(callId, owners)
    const name = toCallName(callId, messageId, owners)
    this.#latestNames.set(callId, name)
    return name
  }

  /** What it calls the one that was made last. */
  getLatestName(callId: string): string {
    return this.#latestNames.get(callId) ?? callId
  }

  /** What it calls a call that asks: a sub-agent's has the ids of the calls that lead to it before its own. */
  getQuestionName(callId: string): string {
    if (this.#latestNames.has(callId)) return this.getLatestName(callId)
    const above = [...this.#latestNames.keys()].filter((id) => callId.startsWith(`${id}/`))
    const nearest = above.toSorted((a, b) => b.length - a.length)[0] ?? ''
    return `${this.getLatestName(nearest)}${callId.slice(nearest.length)}`
  }

  /** Whether it has ever called a call so, or one that leads to it. */
  hasName(name: string): boolean {
    const names = [...this.#messagesByCall].flatMap(([id, owners]) =>
      [...owners].map((owner) => toCallName(id, owner, owners)),
    )
    return names.some((known) => name === known || name.startsWith(`${known}/`))
  }
}

function toCallName(callId: string, messageId: string, owners: ReadonlySet<string>): string {
  const [first] = owners
  return first === messageId ? callId : `${callId}.${messageId}`
}

/** The names of the calls of a transcript. */
export function collectCallNames(messages: readonly Message[]): CallNames {
  const names = new CallNames()
  for (const message of messages) {
    if (message.role !== 'assistant') continue
    for (const { id } of message.tool_calls ?? []) names.nameCall(id, message.id)
  }
  return names
}

/** What a page shows of one message: none, one, or two where somebody has thought aloud. */
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
      // What no shield has cleared is no message: a page that was there has heard of none either.
      const content = message.data?.['withheld'] === true ? '' : message.content || message.refusal || ''
      const toolCalls = calls?.map((call) => ({
        id: names.nameCall(call.id, id),
        type: 'function' as const,
        function: { name: call.function.name, arguments: call.function.arguments },
      }))
      return [
        ...(reasoning ? [{ id: toReasoningId(id), role: 'reasoning' as const, content: reasoning }] : []),
        ...(content === '' && !toolCalls
          ? []
          : [
              {
                id,
                role: 'assistant' as const,
                ...(content !== '' && { content }),
                ...(toolCalls && { toolCalls }),
              },
            ]),
      ]
    }
  }
}

/** A page's message keeps the id that the page has given it. */
function getUserMessageId({ id, data }: Message): string {
  const own = data?.['clientId']
  return typeof own === 'string' ? own : id
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

/** What a tool has returned: its words, and the media besides. */
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
