import type { Json, JsonObject } from '../../machines/agent/json.js'
import type {
  AssistantMessage,
  ContentPart,
  MediaPart,
  Message,
  ToolCall,
  ToolMessage,
} from '../../machines/agent/messages.js'
import { asText } from '../core/base/values.js'
import { emptyText, isBlank, toObjectText, toValidName } from '../core/models/openai/wire-messages.js'
import type { ModelRequest } from '../core/models/provider.js'
import { insertMediaMessages } from '../core/models/result-media.js'
import { readTextFile } from '../core/models/media.js'
import { toWellFormed } from '../core/models/plain-json.js'
import { markTurns, type CacheMark } from './cache-marks.js'
import { type Echo, findEcho, fingerprintCall, readOptions } from './provider-echo.js'
import { toFilePart, type FileTarget } from './file-parts.js'
import { keepAnswered, canSendBack } from './hosted-calls.js'
import type { FileData, PromptMessage, PromptPart, ToolOutput } from './spec.js'

/** Whom a prompt is for. */
export interface PromptTarget extends FileTarget {
  /** The model's own name for its provider, by which it finds what it said before. */
  origin: string
  /** What calls are told apart by on the wire. */
  callId: (id: string) => string
  cache: CacheMark | null
}

type Turn = Exclude<PromptMessage, { role: 'system' }>

/**
 * The transcript as a prompt: what the system says first and in one, then turns of users, answers with what their provider
 * wants back, and the results of a batch in one message. `translated` remembers what a message was made into.
 */
export function toPrompt(
  request: ModelRequest,
  target: PromptTarget,
  translated: Translations,
): PromptMessage[] {
  const { instructions, messages, nudges } = request
  const system = [
    instructions,
    ...messages.map((message) => (message.role === 'system' ? message.content : null)),
  ]
  const words = system.filter((text): text is string => !isBlank(text)).join('\n\n')
  const turns = toTurns(insertMediaMessages(messages), target, translated)
  const stable = target.cache === null ? turns : markTurns(turns, target.cache)
  const guidance = nudges.join('\n\n')
  if (!isBlank(guidance)) appendTurn(stable, createUserTurn([{ type: 'text', text: toWellFormed(guidance) }]))
  if (words === '') return stable
  const cached = target.cache === null ? {} : { providerOptions: target.cache }
  return [{ role: 'system', content: toWellFormed(words), ...cached }, ...stable]
}

/** Messages are never changed in place, and come again with every request: each is translated once. */
export type Translations = WeakMap<Message, Turn>

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
    if (turn.role === 'assistant' && turns.length === 0) turns.push(openingTurn)
    appendTurn(turns, turn)
  }
  return turns
}

/** An app may greet its users first; most providers want the user to begin. */
const openingTurn: Turn = { role: 'user', content: [{ type: 'text', text: 'Begin.' }] }

/** Turns of the same side are one. */
function appendTurn(turns: Turn[], turn: Turn): void {
  const last = turns.at(-1)
  const continues = last?.role === turn.role && !last.content.some(({ type }) => type === 'tool-call')
  if (last === undefined || !continues) turns.push(turn)
  else turns[turns.length - 1] = { ...last, content: [...last.content, ...turn.content] }
}

/** A message as it is sent; null for one that says nothing. */
function toTurn(
  message: Exclude<Message, { role: 'system' }>,
  calls: readonly ToolCall[],
  target: PromptTarget,
): Turn | null {
  switch (message.role) {
    case 'user':
      return createUserTurn(toUserParts(message.content, target))
    case 'tool':
      return { role: 'tool', content: [toResultPart(message, calls, target)] }
    default: {
      const content = toAnswerParts(message, target)
      return content.length === 0 ? null : { role: 'assistant', content }
    }
  }
}

function createUserTurn(content: PromptPart[]): Turn {
  return { role: 'user', content }
}

function toUserParts(content: string | ContentPart[], target: PromptTarget): PromptPart[] {
  const parts: ContentPart[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const said = parts.flatMap((part): PromptPart[] => {
    const text = part.type === 'text' ? part.text : readTextFile(part)
    if (text === null) return [toFilePart(part as MediaPart, target)]
    return isBlank(text) ? [] : [{ type: 'text', text: toWellFormed(text) }]
  })
  return said.length === 0 ? [{ type: 'text', text: emptyText }] : said
}

function toResultPart(
  { tool_call_id: id, content }: ToolMessage,
  calls: readonly ToolCall[],
  { callId }: PromptTarget,
): PromptPart {
  const call = calls.find((one) => one.id === id)
  const output: ToolOutput = { type: 'text', value: isBlank(content) ? emptyText : toWellFormed(content) }
  return {
    type: 'tool-result',
    toolCallId: callId(id),
    toolName: toValidName(call?.function.name ?? ''),
    output,
  }
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

function toCallPart(
  { id, function: { name, arguments: input } }: ToolCall,
  { callId }: PromptTarget,
): PromptPart {
  return {
    type: 'tool-call',
    toolCallId: callId(id),
    toolName: toValidName(name),
    input: JSON.parse(toObjectText(input)) as JsonObject,
  }
}

/** What the message itself has of an answer. */
interface AnswerContent {
  text: string
  calls: readonly PromptPart[]
  media: readonly MediaPart[]
}

const noContent: AnswerContent = { text: '', calls: [], media: [] }

/** The answer as its provider gave it: every piece in its place, with what belongs to it. */
function restoreParts({ parts }: Echo, said: AnswerContent, target: PromptTarget): PromptPart[] {
  const { text } = said
  let at = 0
  return keepAnswered(parts).flatMap((part): PromptPart[] => {
    if (part.type === 'text') {
      const piece = text.slice(at, at + part.length)
      at += part.length
      const options = readOptions(part)
      // An empty text with a signature is one that its provider wants back.
      return isBlank(piece) && options.providerOptions === undefined
        ? []
        : [{ type: 'text', text: toWellFormed(piece), ...options }]
    }
    return toOtherParts(part, said, target)
  })
}

/** Thoughts and summaries stay, what has been changed is written out: without what belonged to its old words. */
function rewriteParts(
  { parts }: Echo,
  text: string,
  calls: readonly ToolCall[],
  target: PromptTarget,
): PromptPart[] {
  const kept = parts
    .filter(({ type }) => type === 'reasoning' || type === 'summary')
    .flatMap((part) => toOtherParts(part, noContent, target))
  return [
    ...kept,
    ...toTextParts(text),
    ...calls.map((call, i): PromptPart => {
      const same = parts.find(
        ({ type, index, said }) => type === 'call' && index === i && said === fingerprintCall(call),
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
    // Under the ids that the provider gave them, by which it may look them up.
    case 'tool-call':
      if (!canSendBack(origin, options.providerOptions)) return []
      return [
        {
          type: 'tool-call',
          toolCallId: asText(part['toolCallId']),
          toolName: asText(part['toolName']),
          input: part['input'] ?? {},
          providerExecuted: true,
          ...options,
        },
      ]
    case 'tool-result':
      if (!canSendBack(origin, options.providerOptions)) return []
      return [
        {
          type: 'tool-result',
          toolCallId: asText(part['toolCallId']),
          toolName: asText(part['toolName']),
          output: part['output'] ?? null,
          ...options,
        },
      ]
    case 'file': {
      const made = media[Number(part['index'])]
      return made === undefined ? [] : [{ ...toFilePart(made, target), ...options }]
    }
    case 'reasoning-file': {
      const { url, mediaType } = part
      const data = asText(url) === '' ? toFileData(part['data'], version) : toFileUrl(asText(url), version)
      return [{ type: part['type'], mediaType: asText(mediaType), data, ...options }]
    }
    case 'custom':
      return [{ type: 'custom', kind: asText(part['kind']), ...options }]
    default:
      return []
  }
}

function toFileData(data: Json | undefined, version: PromptTarget['version']): FileData {
  return version === 'v4' ? { type: 'data', data: asText(data) } : asText(data)
}

function toFileUrl(href: string, version: PromptTarget['version']): FileData {
  const url = new URL(href)
  return version === 'v4' ? { type: 'url', url } : url
}
