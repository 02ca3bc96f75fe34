import { deepest, isDeeper } from '../core/models/plain-extra.js'
import { isWellFormed } from '../core/models/well-formed.js'
import { findHistoryProblem } from './history.js'
import type { ChatRequest, WireMessage } from './request.js'

/** What is wrong with a request, and where. */
export interface Problem {
  /** One sentence, which begins with the path. */
  message: string
  /** The path, `messages[2].tool_calls[0].function.name`. */
  param: string
}

/** The longest text and the longest lists that OpenAI takes. */
const longestText = 10_485_760
const mostTools = 128
const ofChats = { calls: 128, id: 40 }

/** How many calls a message may have, and how long their ids may be. */
export interface Limits {
  calls: number
  id: number
}

/**
 * What some provider would refuse in a request, or null: each rule is one that OpenAI, Mistral, Anthropic's or Google's
 * compatible APIs, or the chat templates of open models keep, so that a history without a problem goes everywhere.
 * Besides what `findHistoryProblem` asks for: valid names of calls and tools, arguments that are JSON objects, unique ids, no
 * blank content, whole surrogate pairs, the system first, users and answers in turns, a user or results last, and sizes.
 */
export function strictProblem(request: ChatRequest, limits: Limits = ofChats): Problem | null {
  const { messages, tools } = request
  // Others are the provider's own, whose form it knows itself.
  const functions = (tools ?? []).filter(({ type }) => type === 'function')
  return (
    requestProblem(request) ??
    first(functions, (tool, i) => toolProblem(tool, i, functions)) ??
    first(
      messages,
      (message, i) => messageProblem(message, `messages[${i}]`, limits) ?? turnProblem(messages, i),
    ) ??
    unpaired(messages)
  )
}

type Tool = NonNullable<ChatRequest['tools']>[number]
type Call = NonNullable<WireMessage['tool_calls']>[number]

function requestProblem({ tools, ...rest }: ChatRequest): Problem | null {
  if (tools?.length === 0) return problem('tools', 'is an empty list: leave it out.')
  if (tools && tools.length > mostTools)
    return problem('tools', `has ${tools.length} tools of at most ${mostTools}.`)
  if (!tools && rest['tool_choice'] != null) return problem('tool_choice', 'stands without tools.')
  const key = Object.keys(rest).find((name) => name !== 'messages' && !isWellFormed(rest[name]))
  return key === undefined ? null : problem(key, torn)
}

function toolProblem(tool: Tool, i: number, tools: readonly Tool[]): Problem | null {
  const at = `tools[${i}]`
  const { name, parameters }: { name?: string; parameters?: unknown } = tool.function ?? {}
  if (!isWellFormed(tool)) return problem(at, torn)
  if (name === undefined || !isName(name)) return problem(`${at}.function.name`, whyNoName(name))
  if (tools.findIndex((other) => other.function?.name === name) < i)
    return problem(`${at}.function.name`, `is '${name}', like that of another tool.`)
  const { type } = (parameters ?? { type: 'object' }) as { type?: unknown }
  return type === 'object' ? null : problem(`${at}.function.parameters`, "must be a schema of type 'object'.")
}

function messageProblem(message: WireMessage, at: string, limits: Limits): Problem | null {
  const { role, content, tool_calls: calls } = message
  const isCalling = calls != null && calls.length > 0
  // Within the message, its parts or calls, and what is in them.
  if (isDeeper(message, deepest + 4)) return problem(at, tooDeep)
  if (!isWellFormed(message)) return problem(at, torn)
  if (role === 'tool' && !message.tool_call_id) return problem(`${at}.tool_call_id`, 'is missing.')
  if (calls && calls.length > limits.calls)
    return problem(`${at}.tool_calls`, `has ${calls.length} calls of at most ${limits.calls}.`)
  if (content == null && role !== 'assistant') return problem(`${at}.content`, 'is missing.')
  if (content == null && !isCalling) return problem(at, 'must have either content or tool_calls.')
  const blank = content == null ? null : textProblem(content, role, `${at}.content`)
  return blank ?? first(calls ?? [], (call, i) => callProblem(call, `${at}.tool_calls[${i}]`, limits.id))
}

function textProblem(content: NonNullable<WireMessage['content']>, role: string, at: string): Problem | null {
  if (typeof content === 'string') {
    if (content.length > longestText)
      return problem(at, `has ${content.length} characters of at most ${longestText}.`)
    return content.trim() === ''
      ? problem(at, `is blank: a message of the role ${role} has to say something.`)
      : null
  }
  if (content.length === 0) return problem(at, 'is an empty list of parts.')
  return first(content, (part, i) => {
    if (part.type !== 'text') return null
    if (typeof part['text'] !== 'string') return problem(`${at}[${i}].text`, 'is missing.')
    return textProblem(part['text'], role, `${at}[${i}].text`)
  })
}

function callProblem(
  { id, function: { name, arguments: text } }: Call,
  at: string,
  longestId: number,
): Problem | null {
  if (id === '' || id.length > longestId)
    return problem(`${at}.id`, `must have 1 to ${longestId} characters, but has ${id.length}.`)
  if (!isName(name)) return problem(`${at}.function.name`, whyNoName(name))
  const input = parsed(text)
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    return problem(`${at}.function.arguments`, `must be the text of a JSON object, but is ${shown(text)}.`)
  if (isDeeper(input, deepest)) return problem(`${at}.function.arguments`, tooDeep)
  return isWellFormed(input) ? null : problem(`${at}.function.arguments`, torn)
}

/** The system first, then a user, then users and answers in turns; and something to answer at the end. */
function turnProblem(messages: readonly WireMessage[], i: number): Problem | null {
  const at = `messages[${i}]`
  const role = roleOf(messages[i])
  const before = roleOf(messages[i - 1])
  if (role === 'system' && before !== undefined)
    return problem(at, `has the role system after the role ${before}: one such message may stand, and first.`)
  if (role === 'assistant' && (before === undefined || before === 'system'))
    return problem(
      at,
      "is an answer that nobody asked for: the first message after that of the system is a user's.",
    )
  if (role === before && (role === 'user' || role === 'assistant'))
    return problem(at, `has the role ${role}, like the message before it: users and assistants take turns.`)
  const isLast = i === messages.length - 1
  return isLast && role !== 'user' && role !== 'tool'
    ? problem(at, `has the role ${role}: the last message is a user's or a tool's.`)
    : null
}

function roleOf(message: WireMessage | undefined): string | undefined {
  return message?.role === 'developer' ? 'system' : message?.role
}

function unpaired(messages: readonly WireMessage[]): Problem | null {
  const sentence = findHistoryProblem(messages)
  return sentence === null ? null : { message: sentence, param: 'messages' }
}

function first<Item>(
  items: readonly Item[],
  look: (item: Item, index: number) => Problem | null,
): Problem | null {
  for (const [i, item] of items.entries()) {
    const found = look(item, i)
    if (found !== null) return found
  }
  return null
}

function problem(param: string, what: string): Problem {
  return { message: `${param} ${what}`, param }
}

const tooDeep = `is nested deeper than ${deepest} levels.`
const torn = 'has half of a surrogate pair in it, which is no text in UTF-8.'

function isName(name: string): boolean {
  return /^[a-zA-Z0-9_-]{1,64}$/.test(name)
}

function whyNoName(name: string | undefined): string {
  return `must have 1 to 64 letters, digits, _ and -, but is ${shown(name ?? '')}.`
}

function shown(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
