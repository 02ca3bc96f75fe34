import { isWorkState } from '../../machines/agent/run-result.js'
import { ConfigError } from '../core/base/errors.js'
import { toSessionId } from '../web/authorize.js'
import type { PageChatService } from '../web/page-chat-service.js'
import { type HandlerOptions, type PostRequest, createRequestHandler } from '../web/request-handler.js'
import { isTurnOpening } from '../web/chat-turn.js'
import type { Protocol } from './ui-message-chunks.js'
import { readRequest } from './read-request.js'
import { createChatResponse } from './ui-message-stream.js'
import { toUIMessages } from './ui-messages.js'

export interface ChatHandlerOptions extends HandlerOptions {
  /** The client's protocol when its page sends no header `x-ai-sdk: 6` or `7`. Default: `'v7'`. */
  protocol?: Protocol
  /** The path at which the handler is mounted. Default: `/api/chat`, which `useChat` asks. */
  path?: string
}

/**
 * The server's side of `useChat`, for any runtime that has `fetch`:
 *
 * - `POST path`: the last message starts a run, answers pending calls, or continues a run; streamed
 * - `GET path/:id`: the chat as messages, for `useChat({ messages })`
 * - `GET path/:id/stream`: the answer that is under way, from its beginning; 204 when there is none
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
export function chatHandler(options: ChatHandlerOptions): (request: Request) => Promise<Response> {
  const { protocol = 'v7' } = options ?? {}
  if (protocol !== 'v7' && protocol !== 'v6')
    throw new ConfigError('invalid_config', "protocol must be 'v7' or 'v6'.", 'protocol')
  const handlers = { v7: createProtocolHandler(options, 'v7'), v6: createProtocolHandler(options, 'v6') }
  return (request) => handlers[readProtocolHeader(request) ?? protocol](request)
}

/** Only this header tells the two clients apart. */
function readProtocolHeader({ headers }: Request): Protocol | undefined {
  const [version] = headers.get('x-ai-sdk')?.split('.') ?? []
  return version === '6' ? 'v6' : version === '7' ? 'v7' : undefined
}

function createProtocolHandler(
  options: ChatHandlerOptions,
  protocol: Protocol,
): (request: Request) => Promise<Response> {
  return createRequestHandler(options, {
    path: '/api/chat',
    handlePost: (chats, sent) => handlePost(chats, sent, protocol),
    readChat: (chats, sessionId) => readChat(chats, sessionId, protocol),
    streamChat: async (chats, { sessionId }) => {
      const subscription = await chats.subscribe(sessionId)
      return subscription && createChatResponse(subscription, { protocol })
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
  const subscription =
    'message' in input
      ? await chats.sendMessage(sessionId, input.message)
      : await chats.answerCalls(sessionId, input.answers)
  return createChatResponse(subscription, { protocol })
}

const noStore = { headers: { 'cache-control': 'no-store' } }

/** An answer that is under way is left out: the stream has it, from its beginning. */
async function readChat(chats: PageChatService, sessionId: string, protocol: Protocol): Promise<Response> {
  const session = await chats.readSession(sessionId)
  if (session === null) return Response.json([], noStore)
  const { messages, pending, approved, state } = session
  const shown = isWorkState(state) ? messages.slice(0, messages.findLastIndex(isTurnOpening) + 1) : messages
  return Response.json(toUIMessages(shown, pending, { protocol, approved }), noStore)
}
