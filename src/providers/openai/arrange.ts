import { isBlank, type WireMessage } from './wire-messages.js'

/** Most calls that a message may have at OpenAI. */
const mostCalls = 128

/**
 * Messages in an order that every provider takes: what the system says first and in one, then a user's, users' and
 * answers' in turns, and no more calls in one message than may be. `bridge`: an answer between results and what a user
 * says next, which Mistral's models insist on. Messages that need no change stay the same objects.
 */
export function arranged(messages: readonly WireMessage[], { bridge }: { bridge: boolean }): WireMessage[] {
  const system = messages.filter(isSystem).map(({ content }) => content)
  const arranged: WireMessage[] = system.length > 0 ? [{ role: 'system', content: system.join('\n\n') }] : []
  for (const message of partBatches(messages.filter((message) => !isSystem(message)))) {
    const { role } = message
    const last = arranged.at(-1)
    if (role === 'assistant' && (last === undefined || isSystem(last))) arranged.push(opening)
    if (bridge && role === 'user' && last?.['role'] === 'tool') arranged.push(between)
    if (last && continues(last, message)) arranged[arranged.length - 1] = joined(last, message)
    else arranged.push(message)
  }
  return arranged
}

/** The words of the system, of the user and of guidance, as messages; none where they are blank. */
export function saying(role: 'system' | 'user', words: string | null): WireMessage[] {
  return isBlank(words) ? [] : [{ role, content: words }]
}

/** An app may greet its users first; most chat templates refuse that. */
const opening: WireMessage = { role: 'user', content: 'Begin.' }
const between: WireMessage = { role: 'assistant', content: 'OK.' }

function isSystem({ role }: WireMessage): boolean {
  return role === 'system'
}

/** Some chat templates refuse two of a kind in a row, and to a model one is the same. */
function continues(last: WireMessage, message: WireMessage): boolean {
  if (last['role'] !== message['role']) return false
  return message['role'] === 'user' || (message['role'] === 'assistant' && last['tool_calls'] === undefined)
}

function joined(last: WireMessage, message: WireMessage): WireMessage {
  const contents = [last['content'], message['content']].filter((content) => content !== null)
  const isText = contents.every((content) => typeof content === 'string')
  return { ...last, ...message, content: isText ? contents.join('\n\n') : contents.flatMap(partsOf) }
}

function partsOf(content: unknown): unknown[] {
  return Array.isArray(content) ? content : [{ type: 'text', text: content }]
}

/** A batch of more calls than a message may have as several, each with its results. */
function partBatches(messages: readonly WireMessage[]): readonly WireMessage[] {
  if (!messages.some((message) => callsOf(message).length > mostCalls)) return messages
  const parted: WireMessage[] = []
  for (let at = 0; at < messages.length; ) {
    const message = messages[at] as WireMessage
    const calls = callsOf(message)
    const results = messages.slice(at + 1, at + 1 + calls.length)
    for (let from = 0; from === 0 || from < calls.length; from += mostCalls) {
      const to = from + mostCalls
      const part = calls.length <= mostCalls ? message : { ...message, tool_calls: calls.slice(from, to) }
      parted.push(from === 0 ? part : { ...part, content: null }, ...results.slice(from, to))
    }
    at += 1 + calls.length
  }
  return parted
}

function callsOf({ tool_calls: calls }: WireMessage): readonly unknown[] {
  return Array.isArray(calls) ? calls : []
}
