import { isBlank, type WireMessage } from './wire-messages.js'

/** Most calls that a message may have at OpenAI. */
const maxCallsPerMessage = 128

export interface Arrangement {
  /** Whether an answer goes between results and what a user says next, which Mistral's models insist on. */
  bridge: boolean
  /** Most calls in one message. Default: what OpenAI takes. */
  most?: number
}

/**
 * Messages in an order that every provider takes: what the system says first and in one, then a user's, users' and
 * answers' in turns, and no more calls in one message than may be. Messages that need no change stay the same objects.
 */
export function arrangeMessages(
  messages: readonly WireMessage[],
  { bridge, most = maxCallsPerMessage }: Arrangement,
): WireMessage[] {
  const system: WireMessage[] = []
  const turns: WireMessage[] = []
  let last: WireMessage | undefined
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at] as WireMessage
    const role = message['role']
    if (role === 'system') {
      system.push(message)
      continue
    }
    const calls = role === 'assistant' ? getCalls(message) : noCalls
    if (role === 'assistant' && last === undefined) turns.push(openingMessage)
    if (bridge && role === 'user' && last?.['role'] === 'tool') turns.push(bridgeMessage)
    if (calls.length > most) {
      turns.push(...splitBatch(message, calls, messages.slice(at + 1, at + 1 + calls.length)))
      at += calls.length
    } else if (last && canJoin(last, message)) turns[turns.length - 1] = joinMessages(last, message)
    else turns.push(message)
    last = turns.at(-1)
  }
  const [first] = system
  if (first !== undefined) turns.unshift(system.length === 1 ? first : joinSystem(system))
  return turns
}

function joinSystem(system: readonly WireMessage[]): WireMessage {
  return { role: 'system', content: system.map((message) => message['content']).join('\n\n') }
}

/** The words of the system, of the user and of guidance, as messages; none where they are blank. */
export function toTextMessages(role: 'system' | 'user', words: string | null): WireMessage[] {
  return isBlank(words) ? [] : [{ role, content: words }]
}

/** As `saying`: the same message for the words of the time before. */
export function createTextMessageCache(role: 'system' | 'user'): (words: string | null) => WireMessage[] {
  let last: WireMessage[] = []
  return (words) => {
    if (last[0]?.['content'] !== words) last = toTextMessages(role, words)
    return [...last]
  }
}

/** An app may greet its users first; most chat templates refuse that. */
const openingMessage: WireMessage = { role: 'user', content: 'Begin.' }
const bridgeMessage: WireMessage = { role: 'assistant', content: 'OK.' }

/** Some chat templates refuse two of a kind in a row, and to a model one is the same. A provider's own items stay as they are. */
function canJoin(last: WireMessage, message: WireMessage): boolean {
  if (last['role'] !== message['role']) return false
  if (last['items'] !== undefined || message['items'] !== undefined) return false
  return message['role'] === 'user' || (message['role'] === 'assistant' && last['tool_calls'] === undefined)
}

function joinMessages(last: WireMessage, message: WireMessage): WireMessage {
  const contents = [last['content'], message['content']].filter((content) => content !== null)
  const isText = contents.every((content) => typeof content === 'string')
  return { ...last, ...message, content: isText ? contents.join('\n\n') : contents.flatMap(toParts) }
}

function toParts(content: unknown): unknown[] {
  return Array.isArray(content) ? content : [{ type: 'text', text: content }]
}

/** A batch of more calls than a message may have as several, each with its results. */
function splitBatch(
  message: WireMessage,
  calls: readonly unknown[],
  results: readonly WireMessage[],
): WireMessage[] {
  return Array.from({ length: Math.ceil(calls.length / maxCallsPerMessage) }, (_, i) => {
    const [from, to] = [i * maxCallsPerMessage, (i + 1) * maxCallsPerMessage]
    const part = { ...message, ...(i > 0 && { content: null }), tool_calls: calls.slice(from, to) }
    return [part, ...results.slice(from, to)]
  }).flat()
}

const noCalls: readonly unknown[] = []

function getCalls({ tool_calls: calls }: WireMessage): readonly unknown[] {
  return Array.isArray(calls) ? calls : noCalls
}
