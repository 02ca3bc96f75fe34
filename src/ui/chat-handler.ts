import { isWorkState } from '../../machines/agent/run-result.js'
import { ConfigError, UsageError } from '../core/base/errors.js'
import { toSessionId } from '../web/authorize.js'
import type { PageChatService } from '../web/page-chat-service.js'
import {
  type HandlerOptions,
  type PostRequest,
  createRequestHandler,
  expectRequest,
  readBranch,
} from '../web/request-handler.js'
import type { BranchRequest } from '../web/branched-runs.js'
import { toErrorResponse } from '../web/error-response.js'
import { isTurnOpening } from '../web/chat-turn.js'
import type { Protocol } from './ui-message-chunks.js'
import { createChatResponse, createQueuedResponse } from './ui-message-stream.js'
import { toUIMessages } from './ui-messages.js'
import type { InputPart } from '../core/models/media.js'
import { parseApprovalId } from '../web/approval-id.js'
import type { CallAnswer, PageAnswers } from '../web/call-answers.js'
import type { IncomingMessage } from '../web/incoming-message.js'
import type { QueuedAnswer } from '../web/message-queue.js'
import type { Subscription } from '../web/subscription.js'
import type { PageFiles } from '../web/page-files.js'

export interface ChatHandlerOptions<Context = unknown> extends HandlerOptions<Context> {
  /** The client's protocol when its page sends no header `x-ai-sdk: 6` or `7`. Default: `'v7'`. */
  protocol?: Protocol
  /** The path at which the handler is mounted. Default: `/api/chat`, which `useChat` asks. */
  path?: string
}

/**
 * The server's side of `useChat`, for any runtime that has `fetch`:
 *
 * - `POST path`: the last message starts a run, answers pending calls, or continues a run; streamed. `regenerate()` and an edit
 *   of an earlier message begin a branch: the former answer stays in the log
 * - `GET path/:id`: the chat as messages, for `useChat({ messages })`; `?branch=2`: as that branch has it
 * - `GET path/:id/stream`: the answer that is under way, from its beginning; 204 when there is none. With `?of=ID`, the answer to
 *   that user message, also when it is complete or has not begun
 * - `POST path/:id/stop`: cancels it
 *
 * The log decides: only the last message of a page is read, and a message that is sent again does not start a second run.
 * A failed request is answered with `{ error: { code, message } }` and a status.
 *
 * @example
 * const agent = createAgent({ model, store: memoryStore() })
 * const handler = chatHandler({ agent, authorize: (request) => request.headers.get('x-user') })
 * const response = await handler(new Request('http://localhost/api/chat/new', { headers: { 'x-user': 'ann' } }))
 * console.log(await response.json()) // → []
 * @throws {ConfigError} `invalid_config` for an agent without a store, and without `authorize`
 */
export function chatHandler<Context = unknown>(
  options: ChatHandlerOptions<Context>,
): (request: Request) => Promise<Response>
export function chatHandler(options: ChatHandlerOptions): (request: Request) => Promise<Response> {
  const { protocol = 'v7' } = options ?? {}
  if (protocol !== 'v7' && protocol !== 'v6')
    throw new ConfigError('invalid_config', "protocol must be 'v7' or 'v6'.", 'protocol')
  const handlers = { v7: createProtocolHandler(options, 'v7'), v6: createProtocolHandler(options, 'v6') }
  return async (request) => {
    expectRequest(request)
    const version = request.headers.get('x-ai-sdk')
    const spoken = version === null ? protocol : toProtocol(version)
    return spoken ? handlers[spoken](request) : refuseVersion(version ?? '')
  }
}

/** Only the header `x-ai-sdk` tells the two clients apart: `6`, `7`, or a version such as `7.0.1`. */
function toProtocol(version: string): Protocol | undefined {
  const [major] = version.split('.')
  return major === '6' ? 'v6' : major === '7' ? 'v7' : undefined
}

function refuseVersion(version: string): Response {
  const shown = JSON.stringify(version.slice(0, 20))
  const error = new UsageError(
    'unknown_client',
    `This server answers the clients of ai 6 and ai 7; the header x-ai-sdk of this page says ${shown}. Update the server's package statewright, or use ai 7 in the page.`,
    'x-ai-sdk',
  )
  return toErrorResponse(error, { prefix: '', session: null, expose: {}, onError: undefined })
}

function createProtocolHandler(
  options: ChatHandlerOptions,
  protocol: Protocol,
): (request: Request) => Promise<Response> {
  return createRequestHandler(options, {
    name: 'chatHandler',
    path: '/api/chat',
    options: ['protocol'],
    handlePost: (chats, sent) => handlePost(chats, sent, protocol),
    readChat: (chats, sessionId, branch) => readChat(chats, { sessionId, branch }, protocol),
    streamChat: async (chats, { sessionId, of }) => {
      const found = await (of === undefined ? chats.subscribe(sessionId) : chats.subscribeTo(sessionId, of))
      return found && toResponse(found, protocol)
    },
  })
}

async function handlePost(
  chats: PageChatService,
  { grant, body, getFiles }: PostRequest,
  protocol: Protocol,
): Promise<Response> {
  const input = readRequest(body, getFiles(body['id']))
  const sessionId = toSessionId(grant, input.chatId)
  if ('branching' in input)
    return createChatResponse(await chats.branch(sessionId, input.branching), { protocol })
  const sent =
    'message' in input
      ? await chats.sendMessage(sessionId, input.message)
      : await chats.answerCalls(sessionId, input)
  return toResponse(sent, protocol)
}

function toResponse(sent: Subscription | QueuedAnswer, protocol: Protocol): Response {
  return 'answer' in sent ? createQueuedResponse(sent, { protocol }) : createChatResponse(sent, { protocol })
}

const noStore = { headers: { 'cache-control': 'no-store' } }

/** An answer that is under way is left out: the stream has it, from its beginning. */
async function readChat(
  chats: PageChatService,
  { sessionId, branch }: { sessionId: string; branch: number | undefined },
  protocol: Protocol,
): Promise<Response> {
  const session = await chats.readSession(sessionId, branch)
  if (session === null) return Response.json([], noStore)
  const { messages, queued, pending, approved, state, points, ends } = session
  const shown = isWorkState(state) ? messages.slice(0, messages.findLastIndex(isTurnOpening) + 1) : messages
  const waiting = toUIMessages(queued).map((message) => ({ ...message, metadata: { queued: true } }))
  const answered = toUIMessages(shown, pending, { protocol, approved, points, ends })
  return Response.json([...answered, ...waiting], noStore)
}

/** A page's request: a new message, answers to pending calls, or another answer to an earlier message. */
type ChatRequest = { chatId: unknown } & (
  | { message: IncomingMessage }
  | PageAnswers
  | { branching: BranchRequest }
)

type Fields = Record<string, unknown>

/**
 * Reads a request of `useChat`. Only the last message is read: earlier messages are in the log.
 *
 * @throws {UsageError} `invalid_input`, naming the place
 */
function readRequest(
  { id: chatId, messages, trigger, messageId, branch: given }: Fields,
  files: PageFiles,
): ChatRequest {
  const isAgain = trigger === 'regenerate-message'
  if (trigger !== undefined && trigger !== 'submit-message' && !isAgain)
    throw invalidInputError(
      `trigger is ${JSON.stringify(trigger)}, which is not supported: it is 'submit-message' or 'regenerate-message'.`,
      'trigger',
    )
  if (messageId !== undefined && !isShortText(messageId))
    throw invalidInputError('messageId must be a text of 1 to 200 characters.', 'messageId')
  if (!Array.isArray(messages) || messages.length === 0)
    throw invalidInputError('messages must be a list that ends with the new message.', 'messages')
  const branch = readBranch(given)
  const at = `messages[${messages.length - 1}]`
  const { role, parts, id } = expectFields(messages.at(-1), at)
  if (isAgain) return { chatId, branching: readAgain({ role, id, messageId, branch, at }) }
  if (!Array.isArray(parts)) throw invalidInputError(`${at}.parts must be a list.`, `${at}.parts`)
  const read = parts.map((part, i) => expectFields(part, `${at}.parts[${i}]`))
  if (role === 'user') {
    const message = readMessage(read, { id, at, files })
    if (messageId === undefined)
      return { chatId, message: { ...message, ...(branch !== undefined && { branch }) } }
    return { chatId, branching: { from: messageId, edit: message, key: undefined, branch } }
  }
  if (role !== 'assistant') throw invalidInputError(`${at}.role must be user or assistant.`, `${at}.role`)
  const answers = readAnswers(read, at)
  if (answers.length > 0) return { chatId, answers, ...(typeof id === 'string' && { messageId: id }) }
  throw invalidInputError(
    `${at} is the assistant's and answers no call: send a user message, or approve or reject a call.`,
    at,
  )
}

/** The last message is the user's that is answered anew; `messageId` may name the answer that the page has removed. */
function readAgain({
  role,
  id,
  messageId,
  branch,
  at,
}: Record<'role' | 'id', unknown> & {
  messageId: string | undefined
  branch: number | undefined
  at: string
}): BranchRequest {
  if (role !== 'user' || !isShortText(id))
    throw invalidInputError(`${at} must be the user message that is answered anew, with its id.`, at)
  const key = messageId === undefined || messageId === id ? undefined : `answer:${messageId}`
  return { from: id, edit: null, key, branch }
}

function isShortText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= 200
}

function readMessage(
  parts: readonly Fields[],
  { id, at, files }: { id: unknown; at: string; files: PageFiles },
): IncomingMessage {
  if (id !== undefined && (typeof id !== 'string' || id === '' || id.length > 200))
    throw invalidInputError(`${at}.id must be a text of 1 to 200 characters.`, `${at}.id`)
  const content = parts.flatMap((part, i) => readPart(part, `${at}.parts[${i}]`, files))
  const [first, ...more] = content
  if (first === undefined) throw invalidInputError(`${at} is empty: it needs a text or a file.`, at)
  // A single text stays a plain text.
  const isText = more.length === 0 && first.type === 'text'
  return { content: isText ? first.text : content, clientId: id }
}

function readPart(part: Fields, at: string, files: PageFiles): InputPart[] {
  const { type, text, mediaType, filename } = part
  if (type === 'text') {
    if (typeof text === 'string') return text.trim() === '' ? [] : [{ type, text }]
    throw invalidInputError(`${at}.text must be a text.`, `${at}.text`)
  }
  if (type !== 'file') return []
  if (typeof part['url'] !== 'string')
    throw invalidInputError(`${at}.url must be the address of the file.`, `${at}.url`)
  const url = files.readAddress(part['url'], `${at}.url`)
  if (typeof mediaType !== 'string')
    throw invalidInputError(`${at}.mediaType must be a text.`, `${at}.mediaType`)
  if (/^image(\/|$)/.test(mediaType)) return [{ type: 'image_url', image_url: { url } }]
  const named = typeof filename === 'string' ? { filename } : {}
  return [{ type: 'file', data: url, mediaType, ...named }]
}

/** The answers since the last step began. */
function readAnswers(parts: readonly Fields[], at: string): CallAnswer[] {
  const from = parts.findLastIndex(({ type }) => type === 'step-start') + 1
  return parts.slice(from).flatMap((part, i): CallAnswer[] => {
    const { type, state, toolCallId, approval, output, errorText } = part
    if (typeof type !== 'string' || !/^(tool-.|dynamic-tool$)/.test(type)) return []
    const place = `${at}.parts[${from + i}]`
    if (state === 'approval-responded') {
      const { id, approved, reason } = expectFields(approval, `${place}.approval`)
      if (typeof id !== 'string' || typeof approved !== 'boolean')
        throw invalidInputError(`${place}.approval must have an id, and approved.`, `${place}.approval`)
      const call = parseApprovalId(id)
      if (approved) return [{ type: 'approve', ...call }]
      return [{ type: 'reject', ...call, ...(typeof reason === 'string' && { why: reason }) }]
    }
    if (state !== 'output-available' && state !== 'output-error') return []
    if (typeof toolCallId !== 'string')
      throw invalidInputError(`${place}.toolCallId must be a text.`, `${place}.toolCallId`)
    const isError = state === 'output-error'
    return [{ type: 'toolOutput', callId: toolCallId, value: isError ? errorText : output, isError }]
  })
}

function expectFields(value: unknown, at: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw invalidInputError(`${at} must be an object.`, at)
}

function invalidInputError(message: string, at: string): UsageError {
  return new UsageError('invalid_input', message, at)
}
