import { getOrCreate, memoize } from '../base/values.js'
import {
  type AssistantMessage,
  type ContentPart,
  type MediaPart,
  type Message,
  parseMessageNumber,
} from '../../../machines/agent/messages.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { RefusedContent } from '../../../machines/agent/model-response.js'
import {
  findOpenQuestion,
  listRefusedIds,
  listUnanswered,
  type MediaKind,
  type Refusal,
} from '../../../machines/agent/refusals.js'
import { describeMedia, getMediaKind } from './media.js'
import type { ModelProvider } from './provider.js'

type NamedModel = Pick<ModelProvider, 'provider' | 'model'>

const getName = ({ provider, model }: NamedModel): string => `${provider}/${model}`

export function leaveOutMessages(
  messages: readonly Message[],
  refused: readonly Refusal[] | undefined,
): readonly Message[] {
  if (refused === undefined) return messages
  const ids = listRefusedIds(refused)
  return ids.size === 0
    ? messages
    : messages.map((message) => (ids.has(message.id) ? createPlaceholder(message) : message))
}

/** The same object for the same message, because providers cache messages by identity. */
const createPlaceholder = memoize((message: Message): Message => {
  switch (message.role) {
    case 'assistant':
      return { ...withoutReasoning(message), content: message.content && leftOut('answer') }
    case 'tool': {
      const { media: _media, ...rest } = message
      return { ...rest, content: leftOut('result') }
    }
    default:
      return { ...message, content: leftOut('message') }
  }
})

const leftOut = (what: string): string => `[This ${what} is omitted because the provider refused it.]`

export function leaveOutContent(
  messages: readonly Message[],
  refused: readonly Refusal[] | undefined,
  model: NamedModel,
): readonly Message[] {
  if (refused === undefined) return messages
  const name = getName(model)
  const own = refused.filter((one) => one.what !== 'messages' && one.model === name)
  if (own.length === 0) return messages
  const reduce = getOrCreate(getReducers(refused), name, () => createReducer(own))
  return messages.map((message) => reduce(message))
}

type Reducer = (message: Message) => Message

/** The reducers of refusals by model, which return the same object for the same message. */
const getReducers = memoize((_refused: readonly Refusal[]) => new Map<string, Reducer>())

function createReducer(own: readonly Refusal[]): Reducer {
  const refuses = createMediaTest(own)
  const upTo = Math.max(...own.map((one) => (one.what === 'reasoning' ? (one.upTo ?? Infinity) : -1)))
  return memoize((message) => {
    const plain = describeParts(message, refuses)
    const number = parseMessageNumber(message.id) ?? 0
    return plain.role === 'assistant' && number <= upTo ? withoutReasoning(plain) : plain
  })
}

type MediaTest = (part: MediaPart) => boolean

function createMediaTest(refused: readonly Refusal[]): MediaTest {
  const kinds = new Set<MediaKind>()
  const parts = new Set<string>()
  for (const one of refused) {
    if (one.what !== 'media') continue
    if ('kinds' in one) for (const kind of one.kinds) kinds.add(kind)
    else for (const part of one.parts) parts.add(part)
  }
  return (part) => kinds.has(getMediaKind(part)) || (parts.size > 0 && parts.has(describeMedia(part)))
}

/** Replaces media parts with text. Tool results already contain a text for each media part. */
export function describeParts(message: Message, isDescribed: MediaTest): Message {
  if (!listMedia(message).some(isDescribed)) return message
  switch (message.role) {
    case 'user':
      return {
        ...message,
        content: (message.content as ContentPart[]).map(
          (part): ContentPart =>
            part.type !== 'text' && isDescribed(part)
              ? { type: 'text', text: `${describeMedia(part)} (omitted: the model does not accept it)` }
              : part,
        ),
      }
    case 'assistant': {
      const { media: _media, ...rest } = withoutReasoning(message)
      return rest
    }
    default: {
      const { media = [], ...rest } = message as Extract<Message, { role: 'tool' }>
      const left = media.filter((part) => !isDescribed(part))
      return { ...rest, ...(left.length > 0 && { media: left }) }
    }
  }
}

export function listMedia(message: Message): MediaPart[] {
  if (message.role === 'tool') return message.media ?? []
  if (message.role === 'assistant') return message.provider_items ? (message.media ?? []) : []
  if (message.role !== 'user' || typeof message.content === 'string') return []
  return message.content.filter((part): part is MediaPart => part.type !== 'text')
}

export function withoutReasoning(message: AssistantMessage): AssistantMessage {
  if (!hasReasoning(message)) return message
  const { reasoning: _thoughts, reasoning_details: _details, provider_items: _items, ...rest } = message
  const { tool_calls: calls } = message
  return { ...rest, ...(calls && { tool_calls: calls.map(({ extra_content: _extra, ...call }) => call) }) }
}

function hasReasoning(message: Message): boolean {
  if (message.role !== 'assistant') return false
  const { reasoning, reasoning_details: details, provider_items: items, tool_calls: calls = [] } = message
  return Boolean(reasoning || details || items || calls.some((call) => call.extra_content !== undefined))
}

/** The content of a request's messages that later requests omit, or null if there is none to omit. */
export function toRefusal(
  content: RefusedContent,
  requested: readonly Message[],
  namedModel: NamedModel,
  { messages: transcript, lastMessageNumber, refusals = [] }: AgentContext,
): Refusal | null {
  if (content.what === 'messages') return toMessageRefusal(transcript, refusals)
  const messages = leaveOutContent(requested, refusals, namedModel)
  const model = getName(namedModel)
  if (content.what === 'media') return toMediaRefusal(content, messages, model)
  if (!messages.some(hasReasoning)) return null
  // A second refusal means that the provider never accepts such content.
  const isAgain = refusals.some((one) => one.what === 'reasoning' && one.model === model)
  return { what: 'reasoning', model, upTo: content.never || isAgain ? null : lastMessageNumber }
}

/** Omits the newest parts first, because the provider has already accepted the older parts. */
function toMediaRefusal(
  { kinds, never }: Extract<RefusedContent, { what: 'media' }>,
  messages: readonly Message[],
  model: string,
): Refusal | null {
  const all = messages.flatMap(listMedia)
  const isNamed = (part: MediaPart): boolean => kinds === undefined || kinds.includes(getMediaKind(part))
  const named = all.some(isNamed) ? isNamed : () => true
  const fresh = listUnanswered(messages).flatMap(listMedia).filter(named)
  const parts = never || fresh.length === 0 ? all.filter(named) : fresh
  if (parts.length === 0) return null
  if (never) return { what: 'media', model, kinds: [...new Set(parts.map(getMediaKind))] }
  return { what: 'media', model, parts: [...new Set(parts.map(describeMedia))] }
}

/**
 * Omits the newest messages first, then the question itself. If the previous question was also refused, an older
 * message may be the cause, for example after a change to another provider. The last user message is never omitted
 * together with others, because the response would not answer it.
 */
function toMessageRefusal(transcript: readonly Message[], refused: readonly Refusal[]): Refusal | null {
  const known = listRefusedIds(refused)
  const question = findOpenQuestion(transcript)
  const task = transcript.findLast(({ role, internal }) => role === 'user' && !internal)
  const isLeft = ({ id, role, content }: Message): boolean =>
    role !== 'system' && content !== null && id !== task?.id && !known.has(id)
  const refuse = (messages: readonly Message[]): Refusal => ({
    what: 'messages',
    ids: messages.map(({ id }) => id),
    question: question?.id ?? null,
  })
  const unanswered = listUnanswered(transcript)
  const fresh = unanswered.filter(isLeft)
  if (fresh.length > 0) return refuse(fresh)
  const older = transcript.filter(isLeft)
  const isQuestionNew = question !== undefined && !known.has(question.id)
  const wasRefusedBefore = unanswered.some(({ id, role }) => role === 'user' && known.has(id))
  if (isQuestionNew && !(wasRefusedBefore && older.length > 0)) return refuse([question])
  return older.length > 0 ? refuse(older) : null
}

/** Removes data that only the model of the message can use. */
export function stripForeignEcho(name: string, message: Message): Message {
  if (message.role !== 'assistant' || message.by === undefined || message.by === name) return message
  return stripEcho(message)
}

/** The same object for the same message, because providers cache messages by identity. */
const stripEcho = memoize((message: AssistantMessage): AssistantMessage => {
  const { tool_calls: calls, ...rest } = withoutReasoning(message)
  return { ...rest, ...(calls && { tool_calls: calls.map(({ hosted: _hosted, ...call }) => call) }) }
})

/** Marks the responses, and withholds data from other models. `withFallbacks` does this itself. */
export const getMarkedModel = memoize((model: ModelProvider): ModelProvider => {
  if (model.fallbacks) return model
  const name = `${model.provider}/${model.model}`
  return replaceRequest(model, async (request, options) => {
    const messages = request.messages.map((message) => stripForeignEcho(name, message))
    return { ...(await model.request({ ...request, messages }, options)), by: name }
  })
})

const optional = [
  'fallbacks',
  'structuredOutput',
  'canForbidCalls',
  'searchesTools',
  'media',
  'echoesReasoning',
  'endpoint',
] as const

/** Copies the fields by name, because a class may define them as getters. */
export function replaceRequest(whole: ModelProvider, request: ModelProvider['request']): ModelProvider {
  const { provider, model } = whole
  const fields = optional.map((key) => [key, whole[key]] as const).filter(([, value]) => value)
  return {
    provider,
    model,
    ...(Object.fromEntries(fields) as Pick<ModelProvider, (typeof optional)[number]>),
    ...(whole.check && { check: () => whole.check?.() }),
    request,
  }
}
