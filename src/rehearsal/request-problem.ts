import type { JsonObject } from '../../machines/agent/json.js'
import { asObject, isObject } from '../core/base/values.js'
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
const chatLimits: CallLimits = { calls: 128, id: 40 }

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
export function findStrictProblem(request: ChatRequest, limits = chatLimits): RequestProblem | null {
  const [found = null] = listStrictProblems(request, limits)
  return found
}

type Problems = Generator<RequestProblem, void>

function* listStrictProblems(request: ChatRequest, limits: CallLimits): Problems {
  const { messages, tools = null, ...rest } = request
  if (tools?.length === 0) yield createProblem('tools', 'is an empty list; omit it.')
  if (tools && tools.length > maxTools)
    yield createProblem('tools', `has ${tools.length} tools, but the maximum is ${maxTools}.`)
  if (!tools && rest['tool_choice'] != null) yield createProblem('tool_choice', 'is set without tools.')
  const key = Object.keys(rest).find((name) => !isWellFormed(rest[name]))
  if (key !== undefined) yield createProblem(key, torn)
  // Other tools are provider-defined; the provider checks them.
  const functions = (tools ?? []).filter(({ type }) => type === 'function')
  const names = new Set<string>()
  for (const [i, tool] of functions.entries())
    yield* listToolProblems(tool, `tools[${i}]`, names, request.model)
  for (const [i, message] of messages.entries()) {
    yield* listMessageProblems(message, `messages[${i}]`, limits)
    yield* listTurnProblems(messages, i)
  }
  const unpaired = findHistoryProblem(messages)
  if (unpaired !== null) yield { message: unpaired, param: 'messages' }
}

type Tool = NonNullable<ChatRequest['tools']>[number]
type Call = NonNullable<WireMessage['tool_calls']>[number]

function* listToolProblems(tool: Tool, at: string, names: Set<string>, model: string): Problems {
  const { name = '', parameters }: { name?: string; parameters?: unknown } = tool.function ?? {}
  if (!isWellFormed(tool)) yield createProblem(at, torn)
  yield* listNameProblems(name, `${at}.function.name`)
  if (names.has(name))
    yield createProblem(`${at}.function.name`, `is '${name}', which another tool already uses.`)
  names.add(name)
  const schema = asObject(parameters ?? { type: 'object' }) ?? {}
  const problem = findSchemaProblem(schema, /claude/i.test(model))
  if (problem !== null) yield createProblem(`${at}.function.parameters`, problem)
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

function* listMessageProblems(message: WireMessage, at: string, limits: CallLimits): Problems {
  const { role, content, tool_calls: calls } = message
  // Levels for the message, its parts or calls, and their fields.
  if (isNestedDeeper(message, maxDepth + 4)) yield createProblem(at, tooDeep)
  if (!isWellFormed(message)) yield createProblem(at, torn)
  if (role === 'tool' && !message.tool_call_id) yield createProblem(`${at}.tool_call_id`, 'is missing.')
  if (calls && calls.length > limits.calls)
    yield createProblem(`${at}.tool_calls`, `has ${calls.length} calls, but the maximum is ${limits.calls}.`)
  if (content == null && role !== 'assistant') yield createProblem(`${at}.content`, 'is missing.')
  if (content == null && !calls?.length) yield createProblem(at, 'must have either content or tool_calls.')
  if (typeof content === 'string') yield* listTextProblems(content, role, `${at}.content`)
  if (content?.length === 0) yield createProblem(`${at}.content`, 'is an empty list of parts.')
  for (const [i, part] of typeof content === 'object' ? (content ?? []).entries() : [])
    if (part.type === 'text') yield* listTextProblems(part['text'], role, `${at}.content[${i}].text`)
  for (const [i, call] of (calls ?? []).entries())
    yield* listCallProblems(call, `${at}.tool_calls[${i}]`, limits.id)
}

function* listTextProblems(text: unknown, role: string, at: string): Problems {
  if (typeof text !== 'string') yield createProblem(at, 'is missing.')
  else if (text.length > maxTextLength)
    yield createProblem(at, `has ${text.length} characters, but the maximum is ${maxTextLength}.`)
  else if (text.trim() === '')
    yield createProblem(at, `is blank; a message with the role ${role} needs content.`)
}

function* listCallProblems({ id, function: called }: Call, at: string, longestId: number): Problems {
  if (id === '' || id.length > longestId)
    yield createProblem(`${at}.id`, `must have 1 to ${longestId} characters, but has ${id.length}.`)
  yield* listNameProblems(called.name, `${at}.function.name`)
  const problem = (what: string) => createProblem(`${at}.function.arguments`, what)
  const input = parseJsonOr(called.arguments, undefined)
  if (!isObject(input)) yield problem(`must be a JSON object as text, but is ${quoteText(called.arguments)}.`)
  if (isNestedDeeper(input, maxDepth)) yield problem(tooDeep)
  if (!isWellFormed(input)) yield problem(torn)
}

function* listTurnProblems(messages: readonly WireMessage[], i: number): Problems {
  const problem = (what: string) => createProblem(`messages[${i}]`, what)
  const role = getRole(messages[i])
  const before = getRole(messages[i - 1])
  if (role === 'system' && before !== undefined)
    yield problem(`has the role system after the role ${before}; only the first message may have it.`)
  if (role === 'assistant' && (before === undefined || before === 'system'))
    yield problem(
      'is an answer without a question; the first message after the system message must be from the user.',
    )
  if (role === before && (role === 'user' || role === 'assistant'))
    yield problem(
      `has the role ${role}, like the previous message; user and assistant messages must alternate.`,
    )
  if (i === messages.length - 1 && role !== 'user' && role !== 'tool')
    yield problem(`has the role ${role}; the last message must be from the user or a tool.`)
}

function getRole(message: WireMessage | undefined): string | undefined {
  return message?.role === 'developer' ? 'system' : message?.role
}

export function createProblem(param: string, what: string): RequestProblem {
  return { message: `${param} ${what}`, param }
}

const tooDeep = `is nested deeper than ${maxDepth} levels.`
const torn = 'contains an unpaired surrogate, which is not valid UTF-8.'

function* listNameProblems(name: string, at: string): Problems {
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name))
    yield createProblem(at, `must consist of 1 to 64 letters, digits, _ and -, but is ${quoteText(name)}.`)
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
