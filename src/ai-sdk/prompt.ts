import type { Json, JsonObject } from '../../machines/agent/json.js'
import type {
  AssistantMessage,
  ContentPart,
  MediaPart,
  Message,
  ToolCall,
  ToolMessage,
} from '../../machines/agent/messages.js'
import { asText } from '../core/models/as-json.js'
import { empty, isBlank, objectText, validName } from '../core/models/openai/wire-messages.js'
import type { ModelRequest } from '../core/models/provider.js'
import { withMediaAfter } from '../core/models/result-media.js'
import { wellFormed } from '../core/models/well-formed.js'
import { marked, type CacheMark } from './cache.js'
import { type Echo, echoOf, fingerprintOf, optionsOf } from './echo.js'
import { filePart, type FileTarget } from './files.js'
import { answered, canGoBack } from './hosted.js'
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
export function promptOf(
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
  const turns = turnsOf(withMediaAfter(messages), target, translated)
  const stable = target.cache === null ? turns : marked(turns, target.cache)
  const guidance = nudges.join('\n\n')
  if (!isBlank(guidance)) append(stable, user([{ type: 'text', text: wellFormed(guidance) }]))
  if (words === '') return stable
  const cached = target.cache === null ? {} : { providerOptions: target.cache }
  return [{ role: 'system', content: wellFormed(words), ...cached }, ...stable]
}

/** Messages are never changed in place, and come again with every request: each is translated once. */
export type Translations = WeakMap<Message, Turn>

function turnsOf(messages: readonly Message[], target: PromptTarget, translated: Translations): Turn[] {
  const turns: Turn[] = []
  let calls: readonly ToolCall[] = []
  for (const message of messages) {
    if (message.role === 'system') continue
    const known = translated.get(message)
    const turn = known ?? turnOf(message, calls, target)
    if (message.role === 'assistant') calls = message.tool_calls ?? []
    if (turn === null) continue
    if (known === undefined) translated.set(message, turn)
    if (turn.role === 'assistant' && turns.length === 0) turns.push(opening)
    append(turns, turn)
  }
  return turns
}

/** An app may greet its users first; most providers want the user to begin. */
const opening: Turn = { role: 'user', content: [{ type: 'text', text: 'Begin.' }] }

/** Turns of the same side are one. */
function append(turns: Turn[], turn: Turn): void {
  const last = turns.at(-1)
  const continues = last?.role === turn.role && !last.content.some(({ type }) => type === 'tool-call')
  if (last === undefined || !continues) turns.push(turn)
  else turns[turns.length - 1] = { ...last, content: [...last.content, ...turn.content] }
}

/** A message as it is sent; null for one that says nothing. */
function turnOf(
  message: Exclude<Message, { role: 'system' }>,
  calls: readonly ToolCall[],
  target: PromptTarget,
): Turn | null {
  switch (message.role) {
    case 'user':
      return user(spoken(message.content, target))
    case 'tool':
      return { role: 'tool', content: [result(message, calls, target)] }
    default: {
      const content = answer(message, target)
      return content.length === 0 ? null : { role: 'assistant', content }
    }
  }
}

function user(content: PromptPart[]): Turn {
  return { role: 'user', content }
}

function spoken(content: string | ContentPart[], target: PromptTarget): PromptPart[] {
  const parts: ContentPart[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const said = parts.flatMap((part): PromptPart[] => {
    if (part.type !== 'text') return [filePart(part, target)]
    return isBlank(part.text) ? [] : [{ type: 'text', text: wellFormed(part.text) }]
  })
  return said.length === 0 ? [{ type: 'text', text: empty }] : said
}

function result(
  { tool_call_id: id, content }: ToolMessage,
  calls: readonly ToolCall[],
  { callId }: PromptTarget,
): PromptPart {
  const call = calls.find((one) => one.id === id)
  const output: ToolOutput = { type: 'text', value: isBlank(content) ? empty : wellFormed(content) }
  return {
    type: 'tool-result',
    toolCallId: callId(id),
    toolName: validName(call?.function.name ?? ''),
    output,
  }
}

function answer(message: AssistantMessage, target: PromptTarget): PromptPart[] {
  const echo = echoOf(message, target.origin)
  const text = [message.content, message.refusal].find((words) => !isBlank(words)) ?? ''
  const calls = (message.tool_calls ?? []).map((call) => callPart(call, target))
  if (echo === null) return [...textPart(text), ...calls]
  return echo.isWhole
    ? retold(echo, { text, calls, media: message.media ?? [] }, target)
    : changed(echo, text, message.tool_calls ?? [], target)
}

function textPart(text: string): PromptPart[] {
  return isBlank(text) ? [] : [{ type: 'text', text: wellFormed(text) }]
}

function callPart(
  { id, function: { name, arguments: input } }: ToolCall,
  { callId }: PromptTarget,
): PromptPart {
  return {
    type: 'tool-call',
    toolCallId: callId(id),
    toolName: validName(name),
    input: JSON.parse(objectText(input)) as JsonObject,
  }
}

/** What the message itself has of an answer. */
interface Said {
  text: string
  calls: readonly PromptPart[]
  media: readonly MediaPart[]
}

const nothingSaid: Said = { text: '', calls: [], media: [] }

/** The answer as its provider gave it: every piece in its place, with what belongs to it. */
function retold({ parts }: Echo, said: Said, target: PromptTarget): PromptPart[] {
  const { text } = said
  let at = 0
  return answered(parts).flatMap((part): PromptPart[] => {
    if (part.type === 'text') {
      const piece = text.slice(at, at + part.length)
      at += part.length
      const options = optionsOf(part)
      // An empty text with a signature is one that its provider wants back.
      return isBlank(piece) && options.providerOptions === undefined
        ? []
        : [{ type: 'text', text: wellFormed(piece), ...options }]
    }
    return otherPart(part, said, target)
  })
}

/** Thoughts and summaries stay, what has been changed is written out: without what belonged to its old words. */
function changed(
  { parts }: Echo,
  text: string,
  calls: readonly ToolCall[],
  target: PromptTarget,
): PromptPart[] {
  const kept = parts
    .filter(({ type }) => type === 'reasoning' || type === 'summary')
    .flatMap((part) => otherPart(part, nothingSaid, target))
  return [
    ...kept,
    ...textPart(text),
    ...calls.map((call, i): PromptPart => {
      const same = parts.find(
        ({ type, index, said }) => type === 'call' && index === i && said === fingerprintOf(call),
      )
      return { ...callPart(call, target), ...(same && optionsOf(same)) }
    }),
  ]
}

function otherPart(part: JsonObject, { calls, media }: Said, target: PromptTarget): PromptPart[] {
  const { version, origin } = target
  const options = optionsOf(part)
  switch (part['type']) {
    case 'reasoning':
      return [{ type: 'reasoning', text: wellFormed(asText(part['text'])), ...options }]
    case 'summary':
      return [{ type: 'text', text: wellFormed(asText(part['text'])), ...options }]
    case 'call': {
      const call = calls[Number(part['index'])]
      return call === undefined ? [] : [{ ...call, ...options }]
    }
    // Under the ids that the provider gave them, by which it may look them up.
    case 'tool-call':
      if (!canGoBack(origin, options.providerOptions)) return []
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
      if (!canGoBack(origin, options.providerOptions)) return []
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
      return made === undefined ? [] : [{ ...filePart(made, target), ...options }]
    }
    case 'reasoning-file': {
      const { url, mediaType } = part
      const data = asText(url) === '' ? dataOf(part['data'], version) : urlOf(asText(url), version)
      return [{ type: part['type'], mediaType: asText(mediaType), data, ...options }]
    }
    case 'custom':
      return [{ type: 'custom', kind: asText(part['kind']), ...options }]
    default:
      return []
  }
}

function dataOf(data: Json | undefined, version: PromptTarget['version']): FileData {
  return version === 'v4' ? { type: 'data', data: asText(data) } : asText(data)
}

function urlOf(href: string, version: PromptTarget['version']): FileData {
  const url = new URL(href)
  return version === 'v4' ? { type: 'url', url } : url
}
