import { isWorkState } from '../../machines/agent/outcome.js'
import { ConfigError } from '../core/base/errors.js'
import { type Authorize, granted, type Granted, sessionIdOf } from '../web/authorize.js'
import { type ChatAgent, type Chats, chatsOf } from '../web/chats.js'
import { readJson } from '../web/read-json.js'
import { type OnError, refused } from '../web/refused.js'
import { routed } from '../web/routed.js'
import { opensTurn } from '../web/turn.js'
import type { Protocol } from './chunks.js'
import { readRequest } from './read-request.js'
import { chatResponse } from './stream.js'
import { toUIMessages } from './ui-messages.js'

/**
 * @example
 * const options: ChatHandlerOptions = { agent, authorize: 'none', path: '/chat' }
 */
export interface ChatHandlerOptions {
  /** Who answers. It has a store: what a page is shown comes from the log. */
  agent: ChatAgent
  /** Whose sessions a request may see. There is no default: `'none'` says that everybody may see all. */
  authorize: Authorize
  /** Which client reads. Default: `'v7'`. */
  protocol?: Protocol
  /** Where it is mounted, as the address of a request says it. Default: `/api/chat`, which `useChat` asks. */
  path?: string
  /** The longest body of a request. Default: 10,000,000. */
  maxBodyBytes?: number
  /** Told what fails on the server's side. Default: a warning of the process. */
  onError?: OnError
}

/**
 * The server's side of `useChat`, for any runtime that has `fetch`:
 *
 * - `POST path`: the last message starts a run, answers calls that wait, or goes on; streamed
 * - `GET path/:id`: the chat as messages, for `useChat({ messages })`
 * - `GET path/:id/stream`: the answer that is under way, from its beginning; 204 where none is
 * - `POST path/:id/stop`: cancels it
 *
 * The log is the truth: of what a page sends only its last message is read, and a message that is sent again is not said
 * again. What is refused is answered with `{ error: { code, message } }` and a status.
 *
 * @example
 * const agent = createAgent({ model, store: memoryStore() })
 * const handler = chatHandler({ agent, authorize: (request) => request.headers.get('x-user') })
 * const response = await handler(new Request('http://localhost/api/chat/new', { headers: { 'x-user': 'ann' } }))
 * console.log(await response.json()) // → []
 * @throws {ConfigError} `invalid_config` for an agent without a store, and without `authorize`
 */
export function chatHandler(options: ChatHandlerOptions): (request: Request) => Promise<Response> {
  const { agent, authorize, protocol = 'v7', path = '/api/chat', maxBodyBytes, onError } = checked(options)
  const chats = chatsOf(agent)

  async function answer(request: Request): Promise<Response> {
    const route = routed(request, path)
    const grant = await granted(authorize, request)
    if (route.to === 'say') return say(chats, grant, await readJson(request, maxBodyBytes), protocol)
    const sessionId = sessionIdOf(grant, route.chatId)
    switch (route.to) {
      case 'read':
        return read(chats, sessionId, protocol)
      case 'stream': {
        const joined = await chats.attach(sessionId, grant.context)
        return joined ? chatResponse(joined, { protocol }) : new Response(null, { status: 204 })
      }
      default:
        await chats.stop(sessionId, grant.context)
        return new Response(null, { status: 204 })
    }
  }

  return async (request) => {
    try {
      return await answer(request)
    } catch (error) {
      return refused(error, onError)
    }
  }
}

async function say(
  chats: Chats,
  grant: Granted,
  body: Record<string, unknown>,
  protocol: Protocol,
): Promise<Response> {
  const asked = readRequest(body)
  const sessionId = sessionIdOf(grant, asked.chatId)
  const { context } = grant
  const joined =
    'said' in asked
      ? await chats.say(sessionId, asked.said, context)
      : await chats.answer(sessionId, asked.answers, context)
  return chatResponse(joined, { protocol })
}

const noStore = { headers: { 'cache-control': 'no-store' } }

/** Of an answer that is under way the stream tells, from its beginning. */
async function read(chats: Chats, sessionId: string, protocol: Protocol): Promise<Response> {
  const stood = await chats.read(sessionId)
  if (stood === null) return Response.json([], noStore)
  const { messages, pending, approved, state } = stood
  const shown = isWorkState(state) ? messages.slice(0, messages.findLastIndex(opensTurn) + 1) : messages
  return Response.json(toUIMessages(shown, pending, { protocol, approved }), noStore)
}

function checked(options: ChatHandlerOptions): ChatHandlerOptions {
  const { authorize, protocol = 'v7', path = '/', maxBodyBytes = 1 } = options ?? {}
  const wrong = (message: string, key: string): ConfigError => new ConfigError('invalid_config', message, key)
  if (authorize !== 'none' && typeof authorize !== 'function') {
    throw wrong(
      "authorize must say whose sessions a request may see: (request) => 'ann', or 'none' where everybody may see all.",
      'authorize',
    )
  }
  if (protocol !== 'v7' && protocol !== 'v6') throw wrong("protocol must be 'v7' or 'v6'.", 'protocol')
  if (typeof path !== 'string' || !path.startsWith('/'))
    throw wrong("path must be where the handler is mounted, such as '/api/chat'.", 'path')
  if (!Number.isSafeInteger(maxBodyBytes) || maxBodyBytes < 1)
    throw wrong('maxBodyBytes must be a whole number from 1.', 'maxBodyBytes')
  return options
}
