import { getOrCreate, mapKept, memoize } from '../base/values.js'
import type { ContentPart, Message, ToolMessage, UserMessage } from '../../../machines/agent/messages.js'
import type { MediaKind, Refusal } from '../../../machines/agent/refusals.js'
import { describeParts, leaveOutContent, listMedia } from './leave-out.js'
import { getMediaKind, describeMedia, readTextFile } from './media.js'
import { ModelError, type ModelProvider } from './provider.js'

const followerByResult = new WeakMap<ToolMessage, UserMessage>()

/** Inserts media after their batch, because most APIs accept only text in results. */
export function insertMediaMessages(messages: readonly Message[]): readonly Message[] {
  if (!messages.some((message) => message.role === 'tool' && message.media)) return messages
  const spread: Message[] = []
  let batch: ToolMessage[] = []
  const flush = (): void => {
    const last = batch.at(-1)
    if (last !== undefined && batch.some(({ media }) => media)) {
      const results = batch
      spread.push(getOrCreate(followerByResult, last, () => createMediaMessage(last, results)))
    }
    batch = []
  }
  for (const message of messages) {
    if (message.role === 'tool') batch.push(message)
    else flush()
    spread.push(message)
  }
  flush()
  return spread
}

function createMediaMessage(last: ToolMessage, batch: readonly ToolMessage[]): UserMessage {
  const content = batch.flatMap(({ media = [] }) =>
    media.flatMap((part): ContentPart[] => [{ type: 'text', text: describeMedia(part) }, part]),
  )
  return { role: 'user', id: `${last.id}-media`, createdAt: last.createdAt, internal: true, content }
}

export function toAcceptedMessages(
  messages: readonly Message[],
  refused: readonly Refusal[] | undefined,
  model: Pick<ModelProvider, 'media' | 'provider' | 'model'>,
): readonly Message[] {
  return describeEarlierMedia(leaveOutContent(replaceUnknownMedia(messages, model), refused, model), model)
}

/** Otherwise, media that other models accepted in earlier turns would make this turn fail. */
function describeEarlierMedia(messages: readonly Message[], { media }: Pick<ModelProvider, 'media'>) {
  if (media === undefined) return messages
  const turn = messages.findLastIndex(({ role, internal }) => role === 'user' && !internal)
  const describe = getDescriber(media)
  return mapKept(messages, (message, at) =>
    at < turn && listMediaKinds(message).some((kind) => !media.includes(kind)) ? describe(message) : message,
  )
}

/** Describes other media. Returns the same object for the same message, because providers cache by identity. */
function getDescriber(accepted: readonly MediaKind[]): (message: Message) => Message {
  return getOrCreate(describers, accepted.join(), () => {
    // A copy, because the app may change its list later.
    const kinds = [...accepted]
    return memoize((message) => describeParts(message, (part) => !kinds.includes(getMediaKind(part))))
  })
}

/** By accepted kinds. */
const describers = new Map<string, (message: Message) => Message>()

/** Removes optional media (`mediaOptional`) if the model is not known to accept it. */
function replaceUnknownMedia(messages: readonly Message[], model: Pick<ModelProvider, 'media' | 'model'>) {
  return mapKept(messages, (message) =>
    message.role === 'tool' && message.media !== undefined && message.data?.['mediaOptional'] === true
      ? getDescriber(listKnownKinds(model))(message)
      : message,
  )
}

/** @throws ModelError `unsupported_content`, before a request, for content that the model does not accept */
export function refuseUnsupportedMedia(
  messages: readonly Message[],
  { media, model }: Pick<ModelProvider, 'media' | 'model'>,
): void {
  if (media === undefined) return
  for (const message of messages) {
    const kind = listMediaKinds(message).find((one) => !media.includes(one))
    if (kind === undefined) continue
    const takes = media.length === 0 ? 'text only' : `text, ${media.join(' and ')}`
    const whose =
      message.role === 'tool' ? `The result of the call ${message.tool_call_id}` : `Message ${message.id}`
    throw new ModelError({
      kind: 'fatal',
      code: 'unsupported_content',
      message: `${whose} contains ${mediaNames[kind]}, but ${model} accepts ${takes} (model option media). Remove it, or use a model that accepts it.`,
    })
  }
}

const mediaNames: Readonly<Record<MediaKind, string>> = { image: 'an image', audio: 'audio', file: 'a file' }

function listMediaKinds(message: Message): MediaKind[] {
  if (message.role === 'assistant') return []
  return listMedia(message).flatMap((part) => (readTextFile(part) === null ? [getMediaKind(part)] : []))
}

const modelFamilies: readonly [name: RegExp, kinds: readonly MediaKind[]][] = [
  [
    /(^|[/.:])(gpt-4o|chatgpt-4o|gpt-4\.1|gpt-4-turbo|gpt-5|o1(?!-mini|-preview)|o3(?!-mini)|o4)/,
    ['image', 'file'],
  ],
  [/(^|[/.:])claude-(3|opus|sonnet|haiku)/, ['image', 'file']],
  [/(^|[/.:])gemini-(?!embedding)/, ['image', 'audio', 'file']],
]

function listKnownKinds({ media, model }: Pick<ModelProvider, 'media' | 'model'>): readonly MediaKind[] {
  return media ?? modelFamilies.flatMap(([name, kinds]) => (name.test(model) ? kinds : []))
}
