import type { JsonObject } from '../../machines/agent/json.js'
import { asObject } from '../core/base/values.js'
import { maxDepth, isNestedDeeper, isWellFormed } from '../core/models/plain-json.js'
import { parseJsonOr } from '../core/base/json.js'
import type { ChatRequest, WireMessage } from './chat-request.js'

export interface RequestProblem {
  /** A sentence that starts with the path. */
  message: string
  /** The path of the problem, such as `messages[2].tool_calls[0].function.name`. */
  param: string
}

/** The limits of OpenAI. */
const maxTextLength = 10_485_760
const maxTools = 128
const chatLimits = { calls: 128, id: 40 }

export interface CallLimits {
  calls: number
  id: number
}

/**
 * The first problem for which some provider would reject the request, or null. The rules combine those of OpenAI,
 * Mistral, the compatible APIs of Anthropic and Google, and chat templates of open models, so a request that passes
 * works everywhere.
 *
 * In addition to `findHistoryProblem`: valid call and tool names, arguments that are JSON objects, unique ids,
 * no blank content, complete surrogate pairs, the system message first, alternating user and assistant turns, a
 * user message or tool result last, and size limits.
 */
export function findStrictProblem(
  request: ChatRequest,
  limits: CallLimits = chatLimits,
): RequestProblem | null {
  const { messages, tools } = request
  // Other tools are provider-defined; the provider checks them.
  const functions = (tools ?? []).filter(({ type }) => type === 'function')
  const unpaired = findHistoryProblem(messages)
  return (
    findRequestProblem(request) ??
    findFirstProblem(functions, (tool, i) => findToolProblem(tool, i, functions, request.model)) ??
    findFirstProblem(
      messages,
      (message, i) => findMessageProblem(message, `messages[${i}]`, limits) ?? findTurnProblem(messages, i),
    ) ??
    (unpaired === null ? null : { message: unpaired, param: 'messages' })
  )
}

type Tool = NonNullable<ChatRequest['tools']>[number]
type Call = NonNullable<WireMessage['tool_calls']>[number]

function findRequestProblem({ tools, ...rest }: ChatRequest): RequestProblem | null {
  if (tools?.length === 0) return createProblem('tools', 'is an empty list; omit it.')
  if (tools && tools.length > maxTools)
    return createProblem('tools', `has ${tools.length} tools, but the maximum is ${maxTools}.`)
  if (!tools && rest['tool_choice'] != null) return createProblem('tool_choice', 'is set without tools.')
  const key = Object.keys(rest).find((name) => name !== 'messages' && !isWellFormed(rest[name]))
  return key === undefined ? null : createProblem(key, torn)
}

function findToolProblem(
  tool: Tool,
  i: number,
  tools: readonly Tool[],
  model?: string,
): RequestProblem | null {
  const at = `tools[${i}]`
  const { name, parameters }: { name?: string; parameters?: unknown } = tool.function ?? {}
  if (!isWellFormed(tool)) return createProblem(at, torn)
  if (name === undefined || !isValidName(name))
    return createProblem(`${at}.function.name`, describeBadName(name))
  if (tools.findIndex((other) => other.function?.name === name) < i)
    return createProblem(`${at}.function.name`, `is '${name}', which another tool already uses.`)
  const problem = findSchemaProblem(
    asObject(parameters ?? { type: 'object' }) ?? {},
    /claude/i.test(model ?? ''),
  )
  return problem === null ? null : createProblem(`${at}.function.parameters`, problem)
}

/** Checks OpenAI's rules for schemas, and Anthropic's rules for property names. */
function findSchemaProblem(schema: JsonObject, isClaude: boolean): string | null {
  if (schema.type !== 'object') return "must be a schema of type 'object'."
  const union = ['oneOf', 'anyOf', 'allOf', 'enum', 'not'].find((key) => key in schema)
  if (union !== undefined) return `must not have '${union}' at the top level.`
  const queue: JsonObject[] = [schema]
  for (const { const: _const, enum: _enum, default: _default, examples: _examples, ...part } of queue) {
    if (part.type === 'array' && !('items' in part || 'prefixItems' in part))
      return 'has an array without items.'
    if (typeof part.exclusiveMinimum === 'boolean' || typeof part.exclusiveMaximum === 'boolean')
      return 'has a limit that is not a number.'
    const key = Object.keys(asObject(part.properties) ?? {}).find((name) => !/^[\w.-]{1,64}$/.test(name))
    if (isClaude && key !== undefined)
      return `has the property '${key}': use 1 to 64 letters, digits, '_', '.' and '-'.`
    queue.push(
      ...Object.values(part)
        .flatMap((value) => (Array.isArray(value) ? value : [value]))
        .map(asObject)
        .filter((value) => value !== null),
    )
  }
  return null
}

function findMessageProblem(message: WireMessage, at: string, limits: CallLimits): RequestProblem | null {
  const { role, content, tool_calls: calls } = message
  const isCalling = calls != null && calls.length > 0
  // Levels for the message, its parts or calls, and their fields.
  if (isNestedDeeper(message, maxDepth + 4)) return createProblem(at, tooDeep)
  if (!isWellFormed(message)) return createProblem(at, torn)
  if (role === 'tool' && !message.tool_call_id) return createProblem(`${at}.tool_call_id`, 'is missing.')
  if (calls && calls.length > limits.calls)
    return createProblem(`${at}.tool_calls`, `has ${calls.length} calls, but the maximum is ${limits.calls}.`)
  if (content == null && role !== 'assistant') return createProblem(`${at}.content`, 'is missing.')
  if (content == null && !isCalling) return createProblem(at, 'must have either content or tool_calls.')
  const blank = content == null ? null : findTextProblem(content, role, `${at}.content`)
  return (
    blank ??
    findFirstProblem(calls ?? [], (call, i) => findCallProblem(call, `${at}.tool_calls[${i}]`, limits.id))
  )
}

function findTextProblem(
  content: NonNullable<WireMessage['content']>,
  role: string,
  at: string,
): RequestProblem | null {
  if (typeof content === 'string') {
    if (content.length > maxTextLength)
      return createProblem(at, `has ${content.length} characters, but the maximum is ${maxTextLength}.`)
    return content.trim() === ''
      ? createProblem(at, `is blank; a message with the role ${role} needs content.`)
      : null
  }
  if (content.length === 0) return createProblem(at, 'is an empty list of parts.')
  return findFirstProblem(content, (part, i) => {
    if (part.type !== 'text') return null
    if (typeof part['text'] !== 'string') return createProblem(`${at}[${i}].text`, 'is missing.')
    return findTextProblem(part['text'], role, `${at}[${i}].text`)
  })
}

function findCallProblem(
  { id, function: { name, arguments: text } }: Call,
  at: string,
  longestId: number,
): RequestProblem | null {
  if (id === '' || id.length > longestId)
    return createProblem(`${at}.id`, `must have 1 to ${longestId} characters, but has ${id.length}.`)
  if (!isValidName(name)) return createProblem(`${at}.function.name`, describeBadName(name))
  const input = parseJsonOr(text, undefined)
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    return createProblem(
      `${at}.function.arguments`,
      `must be a JSON object as text, but is ${quoteText(text)}.`,
    )
  if (isNestedDeeper(input, maxDepth)) return createProblem(`${at}.function.arguments`, tooDeep)
  return isWellFormed(input) ? null : createProblem(`${at}.function.arguments`, torn)
}

function findTurnProblem(messages: readonly WireMessage[], i: number): RequestProblem | null {
  const at = `messages[${i}]`
  const role = getRole(messages[i])
  const before = getRole(messages[i - 1])
  if (role === 'system' && before !== undefined)
    return createProblem(
      at,
      `has the role system after the role ${before}; only the first message may have it.`,
    )
  if (role === 'assistant' && (before === undefined || before === 'system'))
    return createProblem(
      at,
      'is an answer without a question; the first message after the system message must be from the user.',
    )
  if (role === before && (role === 'user' || role === 'assistant'))
    return createProblem(
      at,
      `has the role ${role}, like the previous message; user and assistant messages must alternate.`,
    )
  const isLast = i === messages.length - 1
  return isLast && role !== 'user' && role !== 'tool'
    ? createProblem(at, `has the role ${role}; the last message must be from the user or a tool.`)
    : null
}

function getRole(message: WireMessage | undefined): string | undefined {
  return message?.role === 'developer' ? 'system' : message?.role
}

function findFirstProblem<Item>(
  items: readonly Item[],
  look: (item: Item, index: number) => RequestProblem | null,
): RequestProblem | null {
  for (const [i, item] of items.entries()) {
    const found = look(item, i)
    if (found !== null) return found
  }
  return null
}

function createProblem(param: string, what: string): RequestProblem {
  return { message: `${param} ${what}`, param }
}

const tooDeep = `is nested deeper than ${maxDepth} levels.`
const torn = 'contains an unpaired surrogate, which is not valid UTF-8.'

function isValidName(name: string): boolean {
  return /^[a-zA-Z0-9_-]{1,64}$/.test(name)
}

function describeBadName(name: string | undefined): string {
  return `must consist of 1 to 64 letters, digits, _ and -, but is ${quoteText(name ?? '')}.`
}

function quoteText(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text)
}

/**
 * The first problem in a history as a sentence, or null. Every tool call needs exactly one result, directly
 * after the calling message and in call order. Results need a call, lists of calls must not be empty, and every
 * message needs content unless it is an assistant message with calls.
 */
export function findHistoryProblem(messages: readonly WireMessage[]): string | null {
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i]
    if (message === undefined) break
    const { role, tool_calls: calls } = message
    const here = `messages[${i}]`
    if (role === 'tool') return `${here} is a result without a preceding call (${message.tool_call_id}).`
    if (role !== 'assistant' && calls) return `${here} has the role ${role} and tool calls.`
    if (calls?.length === 0) return `${here} has an empty list of tool calls.`
    if (!calls && message.content == null && message.refusal == null) return `${here} has no content.`
    const ids = new Set<string>()
    for (const { id } of calls ?? []) {
      if (ids.has(id)) return `${here} has two tool calls with the id ${id}.`
      ids.add(id)
      const result = messages[++i]
      if (result?.role !== 'tool') return `${here} calls ${id}, which has no result right after it.`
      const there = `messages[${i}]`
      if (result.tool_call_id !== id) {
        return `${there} should be the result of ${id}, the next call of ${here}, but is the result of ${result.tool_call_id}.`
      }
      if (result.content == null) return `${there} has no content.`
    }
  }
  return null
}
