import type { ContentPart, Message, ToolMessage, UserMessage } from '../../../machines/agent/messages.js'
import type { MediaKind, Refusal } from '../../../machines/agent/refusals.js'
import { describeParts, leaveOutContent, listMedia } from './leave-out.js'
import { getMediaKind, describeMedia, readTextFile } from './media.js'
import { ModelError, type ModelProvider } from './provider.js'

/** What was made for the last result of a batch: the same message each time, as those of the transcript are. */
const followerByResult = new WeakMap<ToolMessage, UserMessage>()

/**
 * The messages with what tools returned besides words right after the results of their batch, as a user's message: most APIs
 * take nothing but words in a result. Each picture comes after the line that stands for it in the result.
 */
export function insertMediaMessages(messages: readonly Message[]): readonly Message[] {
  if (!messages.some((message) => message.role === 'tool' && message.media)) return messages
  const spread: Message[] = []
  let batch: ToolMessage[] = []
  const flush = (): void => {
    const last = batch.at(-1)
    if (last !== undefined && batch.some(({ media }) => media)) spread.push(getMediaMessage(last, batch))
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

function getMediaMessage(last: ToolMessage, batch: readonly ToolMessage[]): UserMessage {
  const known = followerByResult.get(last)
  if (known !== undefined) return known
  const content = batch.flatMap(({ media = [] }) =>
    media.flatMap((part): ContentPart[] => [{ type: 'text', text: describeMedia(part) }, part]),
  )
  const made: UserMessage = {
    role: 'user',
    id: `${last.id}-media`,
    createdAt: last.createdAt,
    internal: true,
    content,
  }
  followerByResult.set(last, made)
  return made
}

/** The messages as they are sent to this model: without the content that it does not take. */
export function toAcceptedMessages(
  messages: readonly Message[],
  refused: readonly Refusal[] | undefined,
  model: Pick<ModelProvider, 'media' | 'provider' | 'model'>,
): readonly Message[] {
  return describeEarlierMedia(leaveOutContent(replaceUnknownMedia(messages, model), refused, model), model)
}

/** Earlier turns with other models, and turns that ended with `unsupported_content`, must not refuse the present one. */
function describeEarlierMedia(
  messages: readonly Message[],
  { media }: Pick<ModelProvider, 'media'>,
): readonly Message[] {
  if (media === undefined) return messages
  const turn = messages.findLastIndex(({ role, internal }) => role === 'user' && !internal)
  if (!messages.slice(0, turn).some((message) => isRefusedMedia(message, media))) return messages
  return messages.map((message, at) =>
    at < turn && isRefusedMedia(message, media) ? toDescribed(message, media) : message,
  )
}

function isRefusedMedia(message: Message, media: readonly MediaKind[]): boolean {
  return listMediaKinds(message).some((kind) => !media.includes(kind))
}

const described = new WeakMap<Message, Map<string, Message>>()

/** The same message for the same model: providers know messages by identity. */
function toDescribed(message: Message, media: readonly MediaKind[]): Message {
  const made = described.get(message) ?? new Map<string, Message>()
  described.set(message, made)
  const key = media.join()
  const known = made.get(key) ?? describeParts(message, (part) => !media.includes(getMediaKind(part)))
  made.set(key, known)
  return known
}

/** What was made of results for models that do not take all that is in them. */
const replacedResults = new WeakMap<ToolMessage, Map<number, ToolMessage>>()

/** The messages with the media of results that may be words where the model is not known to take them. */
function replaceUnknownMedia(
  messages: readonly Message[],
  model: Pick<ModelProvider, 'media' | 'model'>,
): readonly Message[] {
  const isConcerned = (message: Message): message is ToolMessage =>
    message.role === 'tool' && message.media !== undefined && message.data?.['orWords'] === true
  if (!messages.some(isConcerned)) return messages
  return messages.map((message) => (isConcerned(message) ? toAcceptedResult(message, model) : message))
}

/** The same message for the same parts: providers know messages by identity. */
function toAcceptedResult(message: ToolMessage, model: Pick<ModelProvider, 'media' | 'model'>): ToolMessage {
  const { media: all = [], ...words } = message
  const media = all.filter((part) => isKnownToAccept(model, getMediaKind(part)))
  if (media.length === all.length) return message
  const made = replacedResults.get(message) ?? new Map<number, ToolMessage>()
  replacedResults.set(message, made)
  const key = all.reduce((bits, part) => bits * 2 + (media.includes(part) ? 1 : 0), 1)
  const known = made.get(key) ?? { ...words, ...(media.length > 0 && { media }) }
  made.set(key, known)
  return known
}

/** @throws ModelError `unsupported_content`, before anything is sent, where the model is known not to take what there is. */
export function refuseUnsupportedMedia(
  messages: readonly Message[],
  { media, model }: Pick<ModelProvider, 'media' | 'model'>,
): void {
  if (media === undefined) return
  for (const message of messages) {
    const kind = listMediaKinds(message).find((one) => !media.includes(one))
    if (kind === undefined) continue
    const takes = media.length === 0 ? 'text alone' : `text, ${media.join(' and ')}`
    const whose =
      message.role === 'tool' ? `The result of the call ${message.tool_call_id}` : `Message ${message.id}`
    throw new ModelError({
      kind: 'fatal',
      code: 'unsupported_content',
      message: `${whose} has ${mediaNames[kind]} in it, and ${model} takes ${takes} (option media of the model). Leave it out, or ask a model that takes it.`,
    })
  }
}

const mediaNames: Readonly<Record<MediaKind, string>> = { image: 'a picture', audio: 'sound', file: 'a file' }

function listMediaKinds(message: Message): MediaKind[] {
  if (message.role === 'assistant') return []
  return listMedia(message).flatMap((part) => (readTextFile(part) === null ? [getMediaKind(part)] : []))
}

/** Families of models, wherever they are served, and what all of each take. */
const modelFamilies: readonly [name: RegExp, kinds: readonly MediaKind[]][] = [
  [
    /(^|[/.:])(gpt-4o|chatgpt-4o|gpt-4\.1|gpt-4-turbo|gpt-5|o1(?!-mini|-preview)|o3(?!-mini)|o4)/,
    ['image', 'file'],
  ],
  [/(^|[/.:])claude-(3|opus|sonnet|haiku)/, ['image', 'file']],
  [/(^|[/.:])gemini-(?!embedding)/, ['image', 'audio', 'file']],
]

/** Whether a model is known to take such media: because it is said of it (`media`), or by its name. */
function isKnownToAccept({ media, model }: Pick<ModelProvider, 'media' | 'model'>, kind: MediaKind): boolean {
  if (media !== undefined) return media.includes(kind)
  return modelFamilies.some(([name, kinds]) => name.test(model) && kinds.includes(kind))
}
