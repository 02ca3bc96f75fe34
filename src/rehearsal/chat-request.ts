import * as z from 'zod'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Turn } from './turn-schema.js'

const roleSchema = z.enum(['system', 'developer', 'user', 'assistant', 'tool'])
const contentSchema = z.union(
  [z.string(), z.array(z.looseObject({ type: z.string() }))],
  'expected a string or an array of parts',
)
const toolCallSchema = z.looseObject({
  id: z.string(),
  type: z.literal('function'),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
})
const messageSchema = z.looseObject({
  role: roleSchema,
  content: contentSchema.nullish(),
  tool_calls: z.array(toolCallSchema).nullish(),
  tool_call_id: z.string().optional(),
})
export const chatRequestSchema = z.looseObject({
  model: z.string().min(1),
  messages: z.array(messageSchema).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
  tools: z
    .array(z.looseObject({ type: z.string(), function: z.looseObject({ name: z.string() }).optional() }))
    .nullish(),
  user: z.string().nullish(),
})

/** A message as received. */
export interface WireMessage extends z.infer<typeof messageSchema> {}

/** The body of a Chat Completions request. Fields the rehearsal reads are typed; all others are passed through. */
export interface ChatRequest extends z.infer<typeof chatRequestSchema> {}

/** A request received by a rehearsal. */
export interface RecordedRequest {
  /** The request as Chat Completions, converted from other APIs. */
  body: ChatRequest
  api: 'chat' | 'responses' | 'messages' | 'gemini'
  /** The original body. */
  sent: unknown
  /** Header names in lower case. */
  headers: IncomingHttpHeaders
  at: number
  /** The conversation of the request. Empty for the default conversation. */
  conversation: string
  /** Key in `scenarios`, or empty for the default scenario. */
  scenario: string
  /** The index of the turn that answered the request, or null if it was rejected. */
  turn: number | null
  /** Why the rehearsal rejected the request, or null if it did not. */
  refused: string | null
  /** Whether the client closed the connection before the response ended. */
  aborted: boolean
}

const maxBodyBytes = 64 * 1024 * 1024

/** @throws Refusal */
export async function readBody(incoming: IncomingMessage): Promise<unknown> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of incoming as AsyncIterable<Buffer>) {
    length += piece.length
    if (length <= maxBodyBytes) pieces.push(piece)
  }
  if (length > maxBodyBytes) throw new Refusal(413, 'request_too_large', 'The body is longer than 64 MiB.')
  try {
    return JSON.parse(Buffer.concat(pieces).toString('utf8')) as unknown
  } catch {
    throw new Refusal(400, 'invalid_json', 'The request body is not JSON.')
  }
}

export function parseRequest<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const { data, error } = schema.safeParse(value)
  if (data !== undefined) return data
  const [issue] = error?.issues ?? []
  const path = z.core.toDotPath(issue?.path ?? [])
  const message = `Invalid request at ${path || 'its root'}: ${issue?.message}.`
  throw new Refusal(400, 'invalid_request', message, path)
}

function getMessageText({ content }: WireMessage): string {
  if (typeof content === 'string') return content
  return (content ?? []).map((part) => (typeof part.text === 'string' ? part.text : '')).join('')
}

/** Converts items of a user, among which are results of tools. In a chat, each result is a message of its own. */
export function separateResults<Item>(
  items: readonly Item[],
  isResult: (item: Item) => boolean,
  readResult: (item: Item, index: number) => { id: string; content: WireMessage['content'] },
  toContent: (rest: readonly Item[]) => WireMessage['content'],
): WireMessage[] {
  const rest = items.filter((item) => !isResult(item))
  const results = items.filter(isResult).map((item, i): WireMessage => {
    const { id, content } = readResult(item, i)
    return { role: 'tool', tool_call_id: id, content }
  })
  return rest.length === 0 ? results : [...results, { role: 'user', content: toContent(rest) }]
}

export function createAssistantMessage(
  texts: readonly string[],
  calls: readonly { id: string; name: string; input: unknown }[],
): WireMessage {
  return {
    role: 'assistant',
    content: texts.length > 0 ? texts.join('') : null,
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, name, input }) => ({
        id,
        type: 'function' as const,
        function: { name, arguments: JSON.stringify(input) ?? '' },
      })),
    }),
  }
}

/** Rejects a request with an HTTP status and an OpenAI error object. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly param: string | null = null,
  ) {
    super(message)
  }

  get body(): { error: { message: string; type: string; param: string | null; code: string } } {
    const { message, param, code } = this
    return { error: { message, type: 'invalid_request_error', param, code } }
  }
}

type Expectations = NonNullable<Turn['expect']>

/** The first expectation that the request does not meet, as a sentence. Null if it meets all of them. */
export function findUnmetExpectation(expect: Expectations, { messages, tools }: ChatRequest): string | null {
  const { lastUserIncludes, systemIncludes, toolResultsFor, toolResultsInclude } = expect
  const user = messages.findLast(({ role }) => role === 'user')
  if (lastUserIncludes !== undefined && !(user && getMessageText(user).includes(lastUserIncludes))) {
    return `expected the last user message to include ${quoteText(lastUserIncludes)}, got ${quoteText(user && getMessageText(user))}`
  }
  const system = messages.filter(({ role }) => role === 'system' || role === 'developer').map(getMessageText)
  if (systemIncludes !== undefined && !system.some((text) => text.includes(systemIncludes))) {
    return `expected the system message to include ${quoteText(systemIncludes)}, got ${quoteText(system.join('\n'))}`
  }
  const results = listTrailingResults(messages)
  if (toolResultsFor && !hasResults(results, toolResultsFor)) {
    const got = results.map(({ id, name }) => `${name} (${id})`)
    return `expected tool results for ${formatList(toolResultsFor)}, got ${formatList(got)}`
  }
  const missing = toolResultsInclude?.find((part) => !results.some(({ text }) => text.includes(part)))
  if (missing !== undefined) {
    return `expected a tool result to include ${quoteText(missing)}, got ${formatList(results.map(({ text }) => quoteText(text)))}`
  }
  const offered = (tools ?? []).map((tool) => tool.function?.name)
  const unoffered = expect.tools?.find((name) => !offered.includes(name))
  if (unoffered !== undefined)
    return `expected the tool ${unoffered} in the request, got ${formatList(offered)}`
  return null
}

interface Result {
  id: string
  name: string
  text: string
}

function listTrailingResults(messages: readonly WireMessage[]): Result[] {
  const start = messages.findLastIndex(({ role }) => role !== 'tool')
  const calls = messages[start]?.tool_calls ?? []
  return messages.slice(start + 1).map((message) => {
    const id = message.tool_call_id ?? ''
    const name = calls.find((call) => call.id === id)?.function.name ?? 'unknown'
    return { id, name, text: getMessageText(message) }
  })
}

function hasResults(results: readonly Result[], expected: readonly string[]): boolean {
  if (results.length !== expected.length) return false
  return results.every(({ id, name }, i) => expected[i] === id || expected[i] === name)
}

function quoteText(text: string | undefined): string {
  if (text === undefined) return 'none'
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text)
}

function formatList(items: readonly (string | undefined)[]): string {
  return items.length === 0 ? 'none' : items.join(', ')
}
