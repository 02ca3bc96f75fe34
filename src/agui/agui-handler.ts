import { systemClock } from '../core/base/clock.js'
import { createId } from '../core/base/platform.js'
import { UsageError } from '../core/base/errors.js'
import { toSessionId } from '../web/authorize.js'
import type { PageChatService } from '../web/page-chat-service.js'
import type { Subscription } from '../web/subscription.js'
import {
  type Chat,
  type HandlerOptions,
  type PostRequest,
  createRequestHandler,
} from '../web/request-handler.js'
import { staleBranchError } from '../web/call-answers.js'
import { readAnswers } from './read-answers.js'
import { listInterrupts } from './approval-interrupts.js'
import { toAGUIEnds, toAGUIMessages } from './agui-messages.js'
import { type AgentInput, readInput } from './read-input.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { Message } from '../../machines/agent/messages.js'
import type { SessionView } from '../web/chat-service.js'
import type { QueuedAnswer } from '../web/message-queue.js'
import { createSseResponse, type FrameSource } from '../web/sse.js'
import { toFrames, toLaterFrames, type EncodedStream, encodeEvents } from '../web/encode-stream.js'
import { AGUIEventFold, type RunStatus } from './agui-fold.js'
import type { AGUIEvent } from './protocol.js'

export interface AGUIHandlerOptions<Context = unknown> extends HandlerOptions<Context> {
  /** The path at which the handler is mounted. Default: `/api/agui`. */
  path?: string
}

/**
 * The server side of AG-UI, for any runtime that has `fetch`; the client side is `new HttpAgent({ url })`.
 *
 * - `POST path`: a `RunAgentInput`. Its last message starts a run, `resume` answers open interrupts,
 *   `forwardedProps.regenerateFrom` answers an earlier message anew, on a branch; streamed
 * - `GET path/:threadId`: `{ messages, queued, interrupts }`, the current thread, for a page that loads it; with `ends` where a
 *   run did not answer in full, with `branches` where it has several, and as one of them with `?branch=2`
 * - `GET path/:threadId/stream`: the thread, and the answer that is under way, as events; 204 when there is none
 * - `POST path/:threadId/stop`: cancels it
 *
 * The log decides: earlier messages of a page are not read, and a page that shows other messages than the log gets a
 * snapshot. A message that is sent again does not start a second run. A failed request is answered with
 * `{ error: { code, message } }` and a status.
 *
 * @example
 * const agent = createAgent({ model, store: memoryStore() })
 * const handler = aguiHandler({ agent, authorize: (request) => request.headers.get('x-user') })
 * const response = await handler(new Request('http://localhost/api/agui/new', { headers: { 'x-user': 'ann' } }))
 * console.log(await response.json()) // → { messages: [], queued: [], interrupts: [] }
 * @throws {ConfigError} `invalid_config` for an agent without a store, and without `authorize`
 */
export function aguiHandler<Context = unknown>(
  options: AGUIHandlerOptions<Context>,
): (request: Request) => Promise<Response>
export function aguiHandler(options: AGUIHandlerOptions): (request: Request) => Promise<Response> {
  return createRequestHandler(options, {
    name: 'aguiHandler',
    path: '/api/agui',
    handlePost,
    readChat,
    streamChat,
  })
}

async function handlePost(chats: PageChatService, { grant, body, getFiles }: PostRequest): Promise<Response> {
  const input = await readInput(body, getFiles(body['threadId']))
  const { threadId, runId, shown, state } = input
  const sessionId = toSessionId(grant, threadId)
  const page = { threadId, runId, shown, state }
  const read = (): Promise<SessionView | null> => chats.readSession(sessionId)
  const sent = await handleInput(chats, sessionId, input)
  if (!('answer' in sent)) return createAguiResponse(sent, page, read)
  // While the message waits for people, the page is shown what they are asked.
  const answer = sent.answer.then(async (found) => found ?? (await chats.subscribeAtRest(sessionId)))
  const encode = (found: Subscription | null): FrameSource => {
    if (found) return encodeFrames(found, page, read)
    throw new UsageError('unknown_session', 'There is no such thread any more.', 'threadId')
  }
  return createSseResponse(toLaterFrames(answer, encode, toErrorEvent))
}

const toErrorEvent = (message: string): AGUIEvent => ({
  type: 'RUN_ERROR',
  message,
  code: 'internal',
  timestamp: systemClock.now(),
})

async function handleInput(
  chats: PageChatService,
  sessionId: string,
  input: AgentInput,
): Promise<Subscription | QueuedAnswer> {
  const { message, resume, outputs, regenerateFrom: from, branch, runId } = input
  if (from !== undefined && resume.length === 0)
    return chats.branch(sessionId, { from, edit: message, isAgain: true, key: `run:${runId}`, branch })
  if (message && resume.length === 0) return chats.sendMessage(sessionId, { ...message, branch })
  const session = await chats.readSession(sessionId)
  if (!session)
    throw new UsageError('unknown_session', 'There is no such thread: send a message first.', 'threadId')
  if (
    message &&
    !session.messages.some(
      ({ id, data }) => id === message.clientId || data?.['clientId'] === message.clientId,
    )
  ) {
    throw new UsageError(
      'waiting_for_answers',
      'A request either answers open interrupts or sends a new message: send the answers first.',
      'messages',
    )
  }
  if (isOfOtherBranch(session, input)) throw staleBranchError('messages')
  const pageAnswers = readAnswers(session, { ...input, outputs })
  if (pageAnswers.type === 'goOn') return chats.resumePaused(sessionId, pageAnswers)
  const subscription = await chats.answerCalls(sessionId, pageAnswers)
  // From its beginning: the page's messages show what the page already has.
  const whole = await chats.subscribe(sessionId, { hasAnswered: true })
  if (whole === null) return subscription
  subscription.unsubscribe?.()
  return whole
}

/** Whether the page shows answers that the session's branch does not have: its calls may have the same names. */
function isOfOtherBranch({ messages, points }: SessionView, { shown }: AgentInput): boolean {
  if (points.length === 0) return false
  const known = new Set(messages.map(({ id }) => id))
  return shown.some(
    ({ id, role, subagentRunId }) =>
      role === 'assistant' && subagentRunId === undefined && /^m\d+$/.test(id) && !known.has(id),
  )
}

async function streamChat(chats: PageChatService, { chatId, sessionId }: Chat): Promise<Response | null> {
  const subscription = (await chats.subscribe(sessionId)) ?? (await chats.subscribeAtRest(sessionId))
  const page = { threadId: chatId, runId: createId(), shown: null, state: undefined }
  return subscription && createAguiResponse(subscription, page, () => chats.readSession(sessionId))
}

async function readChat(
  chats: PageChatService,
  sessionId: string,
  branch: number | undefined,
): Promise<Response> {
  const session = await chats.readSession(sessionId, branch)
  const body = session
    ? {
        messages: toAGUIMessages(session.messages),
        queued: toAGUIMessages(session.queued),
        interrupts: listInterrupts(session),
        ...(session.ends.length > 0 && { ends: toAGUIEnds(session.ends, session.messages) }),
        ...(session.points.length > 0 && { branches: listBranches(session) }),
      }
    : { messages: [], queued: [], interrupts: [] }
  return Response.json(body, { headers: { 'cache-control': 'no-store' } })
}

/** Where branches part, by the messages that differ; by the last one where this branch has none yet. */
function listBranches({ messages, points }: SessionView) {
  return points.map(({ at, position, count, branches }) => {
    const [shown = toAGUIMessages(messages).at(-1)] = toAGUIMessages(messages.slice(at))
    return { messageId: shown?.id ?? '', position, count, branches }
  })
}

/** The page that reads an answer, and its ids. */
interface PageRequest {
  threadId: string
  runId: string
  /** The messages that the page shows; null when it shows none. */
  shown: readonly { id: string; role: string; subagentRunId?: string }[] | null
  state: unknown
}

/**
 * Streams a subscription as one AG-UI run. A page whose messages differ from the log gets a snapshot. `read` returns the
 * session at the rest.
 */
function createAguiResponse(
  subscription: Subscription,
  page: PageRequest,
  read: () => Promise<SessionView | null>,
): Response {
  return createSseResponse(encodeFrames(subscription, page, read))
}

function encodeFrames(
  subscription: Subscription,
  page: PageRequest,
  read: () => Promise<SessionView | null>,
): FrameSource {
  const leave = (): void => subscription.unsubscribe?.()
  return toFrames(encodeAguiEvents(subscription, page, read), { leave, closing: subscription.closing })
}

function encodeAguiEvents(
  { before, ends, turn, reader }: Subscription,
  { threadId, runId, shown, state }: PageRequest,
  read: () => Promise<SessionView | null>,
): EncodedStream<AGUIEvent> {
  const history: readonly Message[] = [...before, ...(turn?.messages ?? [])]
  const fold = new AGUIEventFold({
    threadId,
    runId,
    history,
    ends,
    ...(shown === null ? { restate: true } : { shown }),
    ...(turn && { status: turn }),
    state: isObjectOrAbsent(state),
  })
  const encode = (event: AgentEvent): AGUIEvent[] => fold.handleEvent(event)
  const finish = async (): Promise<AGUIEvent[]> => fold.end(await readStatusAtRest(fold, read))
  return encodeEvents(reader, { encode, finish }, fold.begin())
}

/** Reads the open interrupts from the log: events do not say what was answered before the page subscribed. */
async function readStatusAtRest(
  fold: AGUIEventFold,
  read: () => Promise<SessionView | null>,
): Promise<RunStatus> {
  const { status } = fold
  const session = await read().catch(() => null)
  if (session?.state !== status.state) return status
  return { ...status, pending: [...session.pending], messages: session.messages }
}

function isObjectOrAbsent(state: unknown): boolean {
  return state === undefined || (typeof state === 'object' && state !== null && !Array.isArray(state))
}
