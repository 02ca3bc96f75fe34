import { newId } from '../core/base/new-id.js'
import { UsageError } from '../core/base/errors.js'
import { sessionIdOf } from '../web/authorize.js'
import type { PageChats } from '../web/page-chats.js'
import type { Joined } from '../web/joined.js'
import { type Chat, type HandlerOptions, type SentRequest, served } from '../web/served.js'
import { readAnswers } from './answers.js'
import { interruptsOf } from './interrupts.js'
import { toAGUIMessages } from './messages.js'
import { type ReadInput, readInput } from './read-input.js'
import { aguiResponse } from './stream.js'

export interface AGUIHandlerOptions extends HandlerOptions {
  /** Where it is mounted, as the address of a request says it. Default: `/api/agui`. */
  path?: string
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
  return served(options, { path: '/api/agui', say, read, stream })
}

async function say(chats: PageChats, { grant, body, filesOf }: SentRequest): Promise<Response> {
  const input = await readInput(body, filesOf(body['threadId']))
  const { threadId, runId, shown, state } = input
  const sessionId = sessionIdOf(grant, threadId)
  const joined = await joinedBy(chats, sessionId, input)
  return aguiResponse(joined, { threadId, runId, shown, state }, () => chats.read(sessionId))
}

async function joinedBy(chats: PageChats, sessionId: string, input: ReadInput): Promise<Joined> {
  const { said, resume, outputs } = input
  if (said && resume.length === 0) return chats.say(sessionId, said)
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
  if (answered.type === 'goOn') return chats.goOn(sessionId, answered)
  const joined = await chats.answer(sessionId, answered.answers)
  // From its beginning: what a page has of it, and what not, is seen by its messages.
  return (await chats.attach(sessionId, { hasAnswered: true })) ?? joined
}

async function stream(chats: PageChats, { chatId, sessionId }: Chat): Promise<Response | null> {
  const joined = (await chats.attach(sessionId)) ?? (await chats.standing(sessionId))
  const page = { threadId: chatId, runId: newId(), shown: null, state: undefined }
  return joined && aguiResponse(joined, page, () => chats.read(sessionId))
}

async function read(chats: PageChats, sessionId: string): Promise<Response> {
  const stood = await chats.read(sessionId)
  const body = stood
    ? { messages: toAGUIMessages(stood.messages), interrupts: interruptsOf(stood) }
    : { messages: [], interrupts: [] }
  return Response.json(body, { headers: { 'cache-control': 'no-store' } })
}
