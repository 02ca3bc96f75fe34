import { newId } from '../core/base/new-id.js'
import { ConfigError, UsageError } from '../core/base/errors.js'
import { type Authorize, granted, type Granted, sessionIdOf } from '../web/authorize.js'
import { type ChatAgent, type Chats, chatsOf } from '../web/chats.js'
import type { Joined } from '../web/joined.js'
import { readJson } from '../web/read-json.js'
import { type OnError, refused } from '../web/refused.js'
import { routed } from '../web/routed.js'
import { readAnswers } from './answers.js'
import { interruptsOf } from './interrupts.js'
import { toAGUIMessages } from './messages.js'
import { type ReadInput, readInput } from './read-input.js'
import { aguiResponse } from './stream.js'

/**
 * @example
 * const options: AGUIHandlerOptions = { agent, authorize: 'none', path: '/agent' }
 */
export interface AGUIHandlerOptions {
  /** Who answers. It has a store: what a page is shown comes from the log. */
  agent: ChatAgent
  /** Whose sessions a request may see. There is no default: `'none'` says that everybody may see all. */
  authorize: Authorize
  /** Where it is mounted, as the address of a request says it. Default: `/api/agui`. */
  path?: string
  /** The longest body of a request, in bytes. Default: 10,000,000. */
  maxBodyBytes?: number
  /** Told what fails on the server's side. Default: a warning of the process. */
  onError?: OnError
}

/**
 * The server's side of AG-UI, for any runtime that has `fetch`; `new HttpAgent({ url })` is its other side.
 *
 * - `POST path`: a `RunAgentInput`. Its last message starts a run, `resume` answers what waits; streamed
 * - `GET path/:threadId`: `{ messages, interrupts }`, the thread as it stands, for a page that begins with it
 * - `GET path/:threadId/stream`: the thread, and the answer that is under way, as events; 204 where there is none
 * - `POST path/:threadId/stop`: cancels it
 *
 * The log is the truth: what a page sends of the past is not read, and it is told the past anew where it shows another. A
 * message that is sent again is not said again. What is refused is answered with `{ error: { code, message } }` and a status.
 *
 * @example
 * const agent = createAgent({ model, store: memoryStore() })
 * const handler = aguiHandler({ agent, authorize: (request) => request.headers.get('x-user') })
 * const response = await handler(new Request('http://localhost/api/agui/new', { headers: { 'x-user': 'ann' } }))
 * console.log(await response.json()) // → { messages: [], interrupts: [] }
 * @throws {ConfigError} `invalid_config` for an agent without a store, and without `authorize`
 */
export function aguiHandler(options: AGUIHandlerOptions): (request: Request) => Promise<Response> {
  const { agent, authorize, path = '/api/agui', maxBodyBytes, onError } = checked(options)
  const chats = chatsOf(agent)

  async function answer(request: Request): Promise<Response> {
    const route = routed(request, path)
    const grant = await granted(authorize, request)
    if (route.to === 'say') return take(chats, grant, readInput(await readJson(request, maxBodyBytes)))
    const sessionId = sessionIdOf(grant, route.chatId)
    switch (route.to) {
      case 'read':
        return read(chats, sessionId)
      case 'stream':
        return attach(chats, grant, route.chatId)
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

async function take(chats: Chats, grant: Granted, input: ReadInput): Promise<Response> {
  const { threadId, runId, shown, state } = input
  const sessionId = sessionIdOf(grant, threadId)
  const joined = await joinedBy(chats, sessionId, input, grant.context)
  return aguiResponse(joined, { threadId, runId, shown, state }, () => chats.read(sessionId))
}

async function joinedBy(
  chats: Chats,
  sessionId: string,
  input: ReadInput,
  context: unknown,
): Promise<Joined> {
  const { said, resume, outputs } = input
  if (said && resume.length === 0) return chats.say(sessionId, said, context)
  const stood = await chats.read(sessionId)
  if (!stood)
    throw new UsageError('unknown_session', 'There is no such thread: say something first.', 'threadId')
  if (
    said &&
    !stood.messages.some(({ id, data }) => id === said.clientId || data?.['clientId'] === said.clientId)
  ) {
    throw new UsageError(
      'waiting_for_answers',
      'A request answers what waits, or says something new: send the answers first.',
      'messages',
    )
  }
  const answered = readAnswers(stood, { ...input, outputs })
  if (answered.type === 'goOn') return chats.goOn(sessionId, answered, context)
  const joined = await chats.answer(sessionId, answered.answers, context)
  // From its beginning: what a page has of it, and what not, is seen by its messages.
  return (await chats.attach(sessionId, context)) ?? joined
}

async function attach(chats: Chats, grant: Granted, threadId: string): Promise<Response> {
  const sessionId = sessionIdOf(grant, threadId)
  const joined = (await chats.attach(sessionId, grant.context)) ?? (await chats.standing(sessionId))
  if (!joined) return new Response(null, { status: 204 })
  return aguiResponse(joined, { threadId, runId: newId(), shown: null, state: undefined }, () =>
    chats.read(sessionId),
  )
}

async function read(chats: Chats, sessionId: string): Promise<Response> {
  const stood = await chats.read(sessionId)
  const body = stood
    ? { messages: toAGUIMessages(stood.messages), interrupts: interruptsOf(stood) }
    : { messages: [], interrupts: [] }
  return Response.json(body, { headers: { 'cache-control': 'no-store' } })
}

function checked(options: AGUIHandlerOptions): AGUIHandlerOptions {
  const { authorize, path = '/', maxBodyBytes = 1 } = options ?? {}
  const wrong = (message: string, key: string): ConfigError => new ConfigError('invalid_config', message, key)
  if (authorize !== 'none' && typeof authorize !== 'function') {
    throw wrong(
      "authorize must say whose sessions a request may see: (request) => 'ann', or 'none' where everybody may see all.",
      'authorize',
    )
  }
  if (typeof path !== 'string' || !path.startsWith('/'))
    throw wrong("path must be where the handler is mounted, such as '/api/agui'.", 'path')
  if (!Number.isSafeInteger(maxBodyBytes) || maxBodyBytes < 1)
    throw wrong('maxBodyBytes must be a whole number from 1.', 'maxBodyBytes')
  return options
}
