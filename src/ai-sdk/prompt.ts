import type { JsonObject } from '../../machines/agent/json.js'
import type {
  AssistantMessage,
  ContentPart,
  MediaPart,
  Message,
  ToolCall,
  ToolMessage,
} from '../../machines/agent/messages.js'
import { decodePercent } from '../core/base/text.js'
import { asText } from '../core/base/values.js'
import { emptyText, isBlank, toObjectText, toValidName } from '../core/models/openai/wire-messages.js'
import { ModelError, type ModelRequest } from '../core/models/provider.js'
import { insertMediaMessages } from '../core/models/result-media.js'
import { readTextFile, toBase64 } from '../core/models/media.js'
import { toWellFormed } from '../core/models/plain-json.js'
import { unsupportedContent } from './ai-sdk-failure.js'
import {
  canSendBack,
  type Echo,
  findEcho,
  fingerprintCall,
  keepAnswered,
  readOptions,
} from './provider-echo.js'
import type { SpecificationVersion } from './model-options.js'
import type { FileData, PromptMessage, PromptPart, ProviderData } from './spec.js'

export type SupportedUrls = Readonly<Record<string, RegExp[]>>

export interface PromptTarget {
  version: SpecificationVersion
  provider: string
  modelId: string
  urls: SupportedUrls
  /** The model's name for its provider, which identifies its earlier answers. */
  origin: string
  callId: (id: string) => string
  cache: ProviderData | null
}

type Turn = Exclude<PromptMessage, { role: 'system' }>

/** One system message, then user turns, answers with their provider data, and each batch's results. */
export function toPrompt(request: ModelRequest, target: PromptTarget, known: Translations): PromptMessage[] {
  const { instructions, messages, nudges } = request
  const systemTexts = messages.map((message) => (message.role === 'system' ? message.content : null))
  const systemText = [instructions, ...systemTexts].filter((text) => !isBlank(text)).join('\n\n')
  const turns = toTurns(insertMediaMessages(messages), target, known)
  const stable = target.cache === null ? turns : markTurns(turns, target.cache)
  const guidance = nudges.join('\n\n')
  if (!isBlank(guidance)) appendTurn(stable, { role: 'user', content: toTextParts(guidance) })
  if (systemText === '') return stable
  const cached = target.cache === null ? {} : { providerOptions: target.cache }
  return [{ role: 'system', content: toWellFormed(systemText), ...cached }, ...stable]
}

/** The converted messages. Messages are immutable and repeated in every request, so each one is converted once. */
type Translations = WeakMap<Message, Turn>

function toTurns(messages: readonly Message[], target: PromptTarget, translated: Translations): Turn[] {
  const turns: Turn[] = []
  let calls: readonly ToolCall[] = []
  for (const message of messages) {
    if (message.role === 'system') continue
    const known = translated.get(message)
    const turn = known ?? toTurn(message, calls, target)
    if (message.role === 'assistant') calls = message.tool_calls ?? []
    if (turn === null) continue
    if (known === undefined) translated.set(message, turn)
    // Most providers require a user message at the start, but an app may greet its user first.
    if (turn.role === 'assistant' && turns.length === 0)
      turns.push({ role: 'user', content: toTextParts('Begin.') })
    appendTurn(turns, turn)
  }
  return turns
}

function appendTurn(turns: Turn[], turn: Turn): void {
  const last = turns.at(-1)
  const continues = last?.role === turn.role && !last.content.some(({ type }) => type === 'tool-call')
  if (last === undefined || !continues) turns.push(turn)
  else turns[turns.length - 1] = { ...last, content: [...last.content, ...turn.content] }
}

function toTurn(
  message: Exclude<Message, { role: 'system' }>,
  calls: readonly ToolCall[],
  target: PromptTarget,
): Turn | null {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: toUserParts(message.content, target) }
    case 'tool':
      return { role: 'tool', content: [toResultPart(message, calls, target)] }
    default: {
      const content = toAnswerParts(message, target)
      return content.length === 0 ? null : { role: 'assistant', content }
    }
  }
}

function toUserParts(content: string | ContentPart[], target: PromptTarget): PromptPart[] {
  const parts: ContentPart[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const read = parts.flatMap((part): PromptPart[] => {
    const text = part.type === 'text' ? part.text : readTextFile(part)
    return text === null ? [toFilePart(part as MediaPart, target)] : toTextParts(text)
  })
  return read.length === 0 ? [{ type: 'text', text: emptyText }] : read
}

function toResultPart(
  { tool_call_id: id, content }: ToolMessage,
  calls: readonly ToolCall[],
  { callId }: PromptTarget,
): PromptPart {
  const toolName = toValidName(calls.find((call) => call.id === id)?.function.name ?? '')
  const output = { type: 'text', value: isBlank(content) ? emptyText : toWellFormed(content) }
  return { type: 'tool-result', toolCallId: callId(id), toolName, output }
}

function toAnswerParts(message: AssistantMessage, target: PromptTarget): PromptPart[] {
  const echo = findEcho(message, target.origin)
  const text = [message.content, message.refusal].find((words) => !isBlank(words)) ?? ''
  const calls = (message.tool_calls ?? []).map((call) => toCallPart(call, target))
  if (echo === null) return [...toTextParts(text), ...calls]
  return echo.isWhole
    ? restoreParts(echo, { text, calls, media: message.media ?? [] }, target)
    : rewriteParts(echo, text, message.tool_calls ?? [], target)
}

function toTextParts(text: string): PromptPart[] {
  return isBlank(text) ? [] : [{ type: 'text', text: toWellFormed(text) }]
}

function toCallPart({ id, function: called }: ToolCall, { callId }: PromptTarget): PromptPart {
  const { name, arguments: text } = called
  const input = JSON.parse(toObjectText(text)) as JsonObject
  return { type: 'tool-call', toolCallId: callId(id), toolName: toValidName(name), input }
}

interface AnswerContent {
  text: string
  calls: readonly PromptPart[]
  media: readonly MediaPart[]
}

function restoreParts({ parts }: Echo, answer: AnswerContent, target: PromptTarget): PromptPart[] {
  const { text } = answer
  let at = 0
  return keepAnswered(parts).flatMap((part): PromptPart[] => {
    if (part.type === 'text') {
      const piece = text.slice(at, at + part.length)
      at += part.length
      const options = readOptions(part)
      // The provider requires empty text that has a signature.
      return isBlank(piece) && options.providerOptions === undefined
        ? []
        : [{ type: 'text', text: toWellFormed(piece), ...options }]
    }
    return toOtherParts(part, answer, target)
  })
}

/** Rewrites an edited answer. Keeps reasoning and summaries, and drops the provider data of edited parts. */
function rewriteParts(
  { parts }: Echo,
  text: string,
  calls: readonly ToolCall[],
  target: PromptTarget,
): PromptPart[] {
  const reasoningParts = parts
    .filter(({ type }) => type === 'reasoning' || type === 'summary')
    .flatMap((part) => toOtherParts(part, { text: '', calls: [], media: [] }, target))
  return [
    ...reasoningParts,
    ...toTextParts(text),
    ...calls.map((call, i): PromptPart => {
      const same = parts.find(
        ({ type, index, fingerprint }) =>
          type === 'call' && index === i && fingerprint === fingerprintCall(call),
      )
      return { ...toCallPart(call, target), ...(same && readOptions(same)) }
    }),
  ]
}

function toOtherParts(part: JsonObject, { calls, media }: AnswerContent, target: PromptTarget): PromptPart[] {
  const { version, origin } = target
  const options = readOptions(part)
  switch (part['type']) {
    case 'reasoning':
      return [{ type: 'reasoning', text: toWellFormed(asText(part['text'])), ...options }]
    case 'summary':
      return [{ type: 'text', text: toWellFormed(asText(part['text'])), ...options }]
    case 'call': {
      const call = calls[Number(part['index'])]
      return call === undefined ? [] : [{ ...call, ...options }]
    }
    // These parts keep the provider's ids, because the provider may look them up.
    case 'tool-call':
    case 'tool-result': {
      if (!canSendBack(origin, options.providerOptions)) return []
      const [toolCallId, toolName] = [asText(part['toolCallId']), asText(part['toolName'])]
      const called = { toolCallId, toolName, ...options }
      return part['type'] === 'tool-call'
        ? [{ type: 'tool-call', ...called, input: part['input'] ?? {}, providerExecuted: true }]
        : [{ type: 'tool-result', ...called, output: part['output'] ?? null }]
    }
    case 'file': {
      const file = media[Number(part['index'])]
      return file === undefined ? [] : [{ ...toFilePart(file, target), ...options }]
    }
    case 'reasoning-file': {
      const [mediaType, address] = [asText(part['mediaType']), asText(part['url'])]
      const data = toFileData(address === '' ? asText(part['data']) : new URL(address), version)
      return [{ type: 'reasoning-file', mediaType, data, ...options }]
    }
    case 'custom':
      return [{ type: 'custom', kind: asText(part['kind']), ...options }]
    default:
      return []
  }
}

/** The cache mark for a provider that needs one. Anthropic caches for five minutes after each use, or for an hour at a higher price. */
export function findCacheMark(provider: string, cache: boolean | '5m' | '1h'): ProviderData | null {
  if (cache === false || !provider.includes('anthropic')) return null
  return { anthropic: { cacheControl: { type: 'ephemeral', ...(cache !== true && { ttl: cache }) } } }
}

/** Also marks the end of the previous request, because Anthropic searches for its entry over a limited number of blocks. */
function markTurns(turns: readonly Turn[], mark: ProviderData): Turn[] {
  const answer = turns.findLastIndex(({ role }) => role === 'assistant')
  const ends = [turns.length - 1, turns.findLastIndex((_, i) => i < answer)]
  return turns.map((turn, i) => (ends.includes(i) ? markTurnEnd(turn, mark) : turn))
}

/** Only user and tool content is marked, because reasoning cannot be. */
function markTurnEnd(turn: Turn, mark: ProviderData): Turn {
  const last = turn.content.at(-1)
  if (turn.role === 'assistant' || last === undefined) return turn
  const options = 'providerOptions' in last ? last.providerOptions : undefined
  const marked = { ...last, providerOptions: { ...options, ...mark } }
  return { ...turn, content: [...turn.content.slice(0, -1), marked] }
}

function toFilePart(part: MediaPart, { version, provider, modelId, urls }: PromptTarget): PromptPart {
  const filename = part.type === 'file' ? part.file.filename : undefined
  const create = (data: FileData, mediaType: string): PromptPart & { type: 'file' | 'reasoning-file' } => ({
    type: 'file',
    mediaType,
    data,
    ...(filename !== undefined && { filename }),
  })

  /** `data:` URLs and base64 data are sent unchanged. An address is sent only if the provider can fetch it. */
  function locate(data: string, mediaType: string) {
    const [start, type = '', base64] = /^data:([^,;]*)[^,]*?(;base64)?,/i.exec(data) ?? []
    if (start !== undefined) {
      const rest = data.slice(data.indexOf(',') + 1)
      return create(toFileData(base64 === undefined ? encodeText(rest) : rest, version), type || mediaType)
    }
    if (!/^https?:\/\//i.test(data)) return create(toFileData(data, version), mediaType)
    if (!URL.canParse(data)) throw unsupportedContentError(`${data} is not a valid address.`)
    const url = new URL(data)
    if (canFetch(urls, mediaType, data)) return create(toFileData(url, version), mediaType)
    const kind = mediaType.startsWith('image/') ? 'images' : 'files'
    const remedy = `Load the file and pass its data: data:${mediaType.replace('*', 'png')};base64,…`
    throw unsupportedContentError(`${modelId} cannot fetch ${kind} from ${url.host}. ${remedy}`)
  }

  switch (part.type) {
    case 'image_url': {
      const { url, detail } = part.image_url
      const options = detail && provider === 'openai' && { openai: { imageDetail: detail } }
      return { ...locate(url, 'image/*'), ...(options && { providerOptions: options }) }
    }
    case 'input_audio': {
      const { data, format } = part.input_audio
      return create(toFileData(data, version), format === 'mp3' ? 'audio/mpeg' : 'audio/wav')
    }
    default: {
      const { file_data: data, file_id: id = '' } = part.file
      const mediaType = getMediaType(filename)
      if (data !== undefined) return locate(data, mediaType)
      if (version === 'v4') return create({ type: 'reference', reference: { [provider]: id } }, mediaType)
      // Packages of these versions recognize OpenAI's ids by their prefix.
      if (provider === 'openai' || provider === 'azure') return create(id, mediaType)
      throw unsupportedContentError(
        `${modelId} does not support file ids (${id}). Pass the file itself as file_data.`,
      )
    }
  }
}

/** Data is plain in v2 and v3, and tagged in v4. */
function toFileData(data: string | URL, version: SpecificationVersion): FileData {
  if (version !== 'v4') return data
  return typeof data === 'string' ? { type: 'data', data } : { type: 'url', url: data }
}

const mediaTypes: Readonly<Record<string, string>> = {
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  html: 'text/html',
  json: 'application/json',
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  mp4: 'video/mp4',
}

/** Derives the media type from the file extension. Defaults to PDF, which every provider supports. */
function getMediaType(filename: string | undefined): string {
  const [, extension = ''] = /\.(\w+)$/.exec(filename ?? '') ?? []
  return mediaTypes[extension.toLowerCase()] ?? 'application/pdf'
}

/** As in the specification, address patterns are lower case, and media types can be wildcards. */
function canFetch(urls: SupportedUrls, mediaType: string, url: string): boolean {
  const [kind] = mediaType.split('/')
  const all = ['*', '*/*', mediaType, `${kind}/*`]
  return Object.entries(urls).some(([pattern, addresses]) => {
    const fits = all.includes(pattern) || (mediaType.endsWith('/*') && pattern.startsWith(`${kind}/`))
    return fits && addresses.some((address) => address.test(url.toLowerCase()))
  })
}

function encodeText(text: string): string {
  // An invalid % sequence is kept.
  const plain = text.replaceAll(/(%[\da-f]{2})+|%/gi, decodePercent)
  return toBase64(new TextEncoder().encode(plain))
}

const unsupportedContentError = (message: string): ModelError => new ModelError(unsupportedContent(message))
