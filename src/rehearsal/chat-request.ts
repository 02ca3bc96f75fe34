import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import * as z from 'zod'
import { Refusal } from './refusal.js'

const role = z.enum(['system', 'developer', 'user', 'assistant', 'tool'])
const content = z.union(
  [z.string(), z.array(z.looseObject({ type: z.string() }))],
  'expected a string or an array of parts',
)
const toolCall = z.looseObject({
  id: z.string(),
  type: z.literal('function'),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
})
const message = z.looseObject({
  role,
  content: content.nullish(),
  tool_calls: z.array(toolCall).nullish(),
  tool_call_id: z.string().optional(),
})
const chatRequest = z.looseObject({
  model: z.string().min(1),
  messages: z.array(message).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
  tools: z
    .array(z.looseObject({ type: z.string(), function: z.looseObject({ name: z.string() }).optional() }))
    .nullish(),
  user: z.string().nullish(),
})

/** A message as it came over the wire. */
export interface WireMessage extends z.infer<typeof message> {}

/** The body of a Chat Completions request: what the rehearsal reads is typed, the rest is there as it came. */
export interface ChatRequest extends z.infer<typeof chatRequest> {}

/** A request that reached the model of the rehearsal. */
export interface RecordedRequest {
  /** What was sent; what came to another API than Chat Completions, in the words of that one. */
  body: ChatRequest
  /** The API that it came to: `chat`, OpenAI's `responses`, Anthropic's `messages`, or `gemini`. */
  api: 'chat' | 'responses' | 'messages' | 'gemini'
  /** The body as it came. */
  sent: unknown
  /** Names in lower case. */
  headers: IncomingHttpHeaders
  /** Milliseconds since the epoch, by the rehearsal's clock. */
  at: number
  /** The conversation that it belongs to; empty for the one that all requests share by default. */
  conversation: string
  /** The scenario that plays: its key in `scenarios`, or empty for the default one. */
  scenario: string
  /** Index of the turn that answered it; null when it was refused before. */
  turn: number | null
  /** Why it was answered with an error that no turn asked for; null when all is well. */
  refused: string | null
  /** Whether the client has closed the connection before the answer was at its end. */
  aborted: boolean
}

/** Longest request body that is read: 64 MiB. */
const maxBodyBytes = 64 * 1024 * 1024

/** Reads a request body. @throws Refusal */
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

/** Checks the body of a Chat Completions request. @throws Refusal */
export function readChatRequest(value: unknown): ChatRequest {
  return parseRequest(chatRequest, value)
}

/** @throws Refusal that names the place of the first mistake. */
export function parseRequest<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const { data, error } = schema.safeParse(value)
  if (data !== undefined) return data
  const [issue] = error?.issues ?? []
  const path = z.core.toDotPath(issue?.path ?? [])
  throw new Refusal(
    400,
    'invalid_request',
    `Invalid request at ${path || 'its root'}: ${issue?.message}.`,
    path,
  )
}

/** The text of a message, its text parts joined. */
export function getMessageText({ content }: WireMessage): string {
  if (typeof content === 'string') return content
  return (content ?? []).map((part) => (typeof part.text === 'string' ? part.text : '')).join('')
}
