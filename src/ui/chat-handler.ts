import { isWorkState } from '../../machines/agent/run-result.js'
import { configError, UsageError } from '../core/base/errors.js'
import type { InputPart } from '../core/models/media.js'
import { parseApprovalId } from '../web/approval-id.js'
import type { AnswerMessage } from '../core/sessions/inbox/session-message.js'
import type { Chat } from '../web/chat-service.js'
import type { IncomingMessage } from '../web/chat-turn.js'
import { isTurnOpening } from '../core/sessions/find-turn.js'
import { invalidInputError } from '../web/error-response.js'
import type { PageFiles } from '../web/page-files.js'
import {
  anything,
  branchNumber,
  fields,
  flag,
  lenientText,
  list,
  object,
  oneOf,
  optional,
  refuseGrant,
  refuseSender,
  shortText,
  text,
} from '../web/request-fields.js'
import {
  type ChatProtocol,
  createRequestHandler,
  type HandlerOptions,
  type PostRequest,
} from '../web/request-handler.js'
import { createAnswerResponse } from '../web/sse.js'
import type { QueuedAnswer } from '../web/message-queue.js'
import type { Subscription } from '../web/subscription.js'
import { createUIProtocol } from './answer-fold.js'
import type { Protocol } from './ui-message-types.js'
import { toUIMessages } from './ui-messages.js'

export interface ChatHandlerOptions<Context = unknown> extends HandlerOptions<Context> {
  /** The client's protocol for requests without a header `x-ai-sdk: 6` or `7`. Defaults to `'v7'`. */
  protocol?: Protocol
  /** The mount path of the handler. Defaults to `/api/chat`, as in `useChat`. */
  path?: string
}

/**
 * The server side of `useChat`, for any runtime with `fetch`:
 *
 * - `POST path`: the last message starts a run, answers pending calls, or continues a run; the response streams the
 *   answer. `regenerate()`
 *   and an edit of an earlier message start a branch, and the previous answer stays in the log
 * - `GET path/:id`: the messages of the chat, for `useChat({ messages })`; `?branch=2` selects a branch
 * - `GET path/:id/stream`: the answer in progress, from its start; 204 if there is none. With `?of=ID`, the answer to that user
 *   message, even if it is complete or queued
 * - `POST path/:id/stop`: cancels the run
 *
 * The log is authoritative. Only the last message in a request is read, and a message that is sent twice starts one run.
 * A failed request returns `{ error: { code, message } }` and a status.
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
  if (protocol !== 'v7' && protocol !== 'v6') throw configError("protocol must be 'v7' or 'v6'.", 'protocol')
  const protocols = { v7: createChatProtocol('v7'), v6: createChatProtocol('v6') }
  const about = { name: 'chatHandler', path: '/api/chat', options: ['protocol'] }
  return createRequestHandler(options, about, (request) => protocols[findClient(request) ?? protocol])
}

/** The header is all that distinguishes the two clients: `6`, `7`, or a version such as `7.0.1`. */
function findClient({ headers }: Request): Protocol | undefined {
  const version = headers.get('x-ai-sdk')
  if (version === null) return undefined
  const [major] = version.split('.')
  if (major === '6' || major === '7') return `v${major}`
  throw new UsageError(
    'unknown_client',
    `This server supports the clients of ai 6 and ai 7, but the header x-ai-sdk is ${JSON.stringify(version.slice(0, 20))}. Update statewright on the server, or use ai 7 in the page.`,
    'x-ai-sdk',
  )
}

function createChatProtocol(protocol: Protocol): ChatProtocol {
  const uiProtocol = createUIProtocol(protocol)
  return {
    answerPost: async (request) => createAnswerResponse(await passToChat(request), uiProtocol),
    readChat: (chat, branch) => readChat(chat, branch, protocol),
    streamChat: async (chat, { of }) => {
      const found = await chat.subscribe({ of })
      return found && createAnswerResponse(found, uiProtocol)
    },
  }
}

/** Leaves out an answer in progress, because the stream sends it from its start. */
async function readChat(chat: Chat, branch: number | undefined, protocol: Protocol) {
  const session = await chat.readSession(branch)
  if (session === null) return []
  const { messages, queued, pending, approved, state, points, ends } = session
  const shown = isWorkState(state) ? messages.slice(0, messages.findLastIndex(isTurnOpening) + 1) : messages
  const waiting = toUIMessages(queued).map((message) => ({ ...message, metadata: { queued: true } }))
  const answered = toUIMessages(shown, pending, { protocol, approved, points, ends })
  return [...answered, ...waiting]
}

type Fields = Record<string, unknown>

const requestBody = fields({
  id: anything,
  trigger: optional(oneOf('submit-message', 'regenerate-message')),
  messageId: optional(shortText),
  messages: list(anything),
  branch: optional(branchNumber),
})
const lastMessage = fields({ role: anything, id: anything, parts: anything })
const messageParts = list(object)
const filePart = fields({ url: text, mediaType: text, filename: lenientText })
const approvalAnswer = fields({ id: text, approved: flag, reason: lenientText })

/** Reads the last message in a request from `useChat`, and passes it to its chat. @throws {UsageError} `invalid_input` */
function passToChat({ body, openChat, getFiles }: PostRequest): Promise<Subscription | QueuedAnswer> {
  refuseSender(body, '')
  const { id: chatId, messages, trigger, messageId, branch } = requestBody(body, '')
  if (messages.length === 0)
    throw invalidInputError('messages must be a list that ends with the new message.', 'messages')
  const at = `messages[${messages.length - 1}]`
  const { role, parts, id } = lastMessage(messages.at(-1), at)
  if (trigger === 'regenerate-message') {
    if (role !== 'user') throw invalidInputError(`${at} must be the user message to answer again.`, at)
    const from = shortText(id, `${at}.id`)
    // `messageId` may be the id of the answer that the page has removed.
    const key = messageId === undefined || messageId === from ? undefined : `answer:${messageId}`
    return openChat(chatId).branch({ from, edit: null, key, branch })
  }
  const read = messageParts(parts, `${at}.parts`)
  if (role === 'user') {
    const message = readMessage(read, { id, at, files: getFiles(chatId) })
    const chat = openChat(chatId)
    return messageId === undefined
      ? chat.sendMessage({ ...message, branch })
      : chat.branch({ from: messageId, edit: message, key: undefined, branch })
  }
  if (role !== 'assistant') throw invalidInputError(`${at}.role must be user or assistant.`, `${at}.role`)
  const answers = readAnswers(read, at)
  if (answers.length > 0)
    return openChat(chatId).answerCalls({ answers, messageId: typeof id === 'string' ? id : undefined })
  throw invalidInputError(
    `${at} is an assistant message without answers. Send a user message, or approve or reject a call.`,
    at,
  )
}

function readMessage(
  parts: readonly Fields[],
  { id, at, files }: { id: unknown; at: string; files: PageFiles },
): IncomingMessage {
  const clientId = optional(shortText)(id, `${at}.id`)
  const content = parts.flatMap((part, i) => readPart(part, `${at}.parts[${i}]`, files))
  const [first, ...more] = content
  if (first === undefined) throw invalidInputError(`${at} is empty. Add text or a file.`, at)
  return { content: more.length === 0 && first.type === 'text' ? first.text : content, clientId }
}

function readPart(part: Fields, at: string, files: PageFiles): InputPart[] {
  if (part['type'] === 'text') {
    const words = text(part['text'], `${at}.text`)
    return words.trim() === '' ? [] : [{ type: 'text', text: words }]
  }
  if (part['type'] !== 'file') return []
  const { url: address, mediaType, filename } = filePart(part, at)
  const url = files.readAddress(address, `${at}.url`)
  if (/^image(\/|$)/.test(mediaType)) return [{ type: 'image_url', image_url: { url } }]
  return [{ type: 'file', data: url, mediaType, ...(filename !== undefined && { filename }) }]
}

function readAnswers(parts: readonly Fields[], at: string): AnswerMessage[] {
  const from = parts.findLastIndex(({ type }) => type === 'step-start') + 1
  return parts.slice(from).flatMap((part, i): AnswerMessage[] => {
    const { type, state, toolCallId, approval, output, errorText } = part
    if (typeof type !== 'string' || !/^(tool-.|dynamic-tool$)/.test(type)) return []
    const place = `${at}.parts[${from + i}]`
    if (state === 'approval-responded') {
      const { id, approved, reason } = approvalAnswer(approval, `${place}.approval`)
      refuseSender(approval, `${place}.approval`)
      refuseGrant(approval, `${place}.approval`)
      const call = parseApprovalId(id)
      return [{ type: approved ? 'approve' : 'reject', ...call, why: reason }]
    }
    if (state !== 'output-available' && state !== 'output-error') return []
    const callId = text(toolCallId, `${place}.toolCallId`)
    const isError = state === 'output-error'
    return [{ type: 'toolOutput', callId, value: isError ? errorText : output, isError }]
  })
}
