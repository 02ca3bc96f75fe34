import { createId } from '../core/base/platform.js'
import { UsageError } from '../core/base/errors.js'
import { staleBranchError } from '../web/call-answers.js'
import type { Chat, SessionView } from '../web/chat-service.js'
import type { QueuedAnswer } from '../web/message-queue.js'
import { createRequestHandler, type HandlerOptions, type PostRequest } from '../web/request-handler.js'
import { createAnswerResponse } from '../web/sse.js'
import type { Subscription } from '../web/subscription.js'
import { toAGUIEnds, toAGUIMessages } from './agui-messages.js'
import { createAGUIProtocol } from './agui-stream.js'
import { listInterrupts } from './approval-interrupts.js'
import { type AgentInput, readAnswers, readInput } from './read-input.js'

export interface AGUIHandlerOptions<Context = unknown> extends HandlerOptions<Context> {
  /** The mount path of the handler. Defaults to `/api/agui`. */
  path?: string
}

/**
 * The server side of AG-UI, for any runtime with `fetch`. The client side is `new HttpAgent({ url })`.
 *
 * - `POST path`: `RunAgentInput`. Its last message starts a run, `resume` answers open interrupts, and
 *   `forwardedProps.regenerateFrom` answers an earlier message again on a new branch; the response streams the answer
 * - `GET path/:threadId`: the thread as `{ messages, queued, interrupts }`, plus `ends` for runs that did not answer in
 *   full and `branches` if there are several; `?branch=2` selects a branch
 * - `GET path/:threadId/stream`: the thread and the answer in progress as events; 204 if there is none
 * - `POST path/:threadId/stop`: cancels the run
 *
 * The log is authoritative. Earlier messages in a request are not read, and a page whose messages differ from the log
 * receives a snapshot. A message that is sent twice starts one run. A failed request returns `{ error: { code, message
 * } }` and a status.
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
  const protocol = { answerPost, readChat, streamChat }
  return createRequestHandler(options, { name: 'aguiHandler', path: '/api/agui' }, () => protocol)
}

async function answerPost({ body, openChat, getFiles }: PostRequest): Promise<Response> {
  const input = await readInput(body, getFiles(body['threadId']))
  const chat = openChat(input.threadId)
  const sent = await handleInput(chat, input)
  const protocol = createAGUIProtocol(input, chat)
  if (!('answer' in sent)) return createAnswerResponse(sent, protocol)
  // While a queued message waits for a person, the page shows the question to that person.
  const answer = sent.answer.then(async (found) => {
    const shown = found ?? (await chat.subscribeAtRest())
    if (shown) return shown
    throw new UsageError('unknown_session', 'This thread no longer exists.', 'threadId')
  })
  return createAnswerResponse({ answer }, protocol)
}

async function handleInput(chat: Chat, input: AgentInput): Promise<Subscription | QueuedAnswer> {
  const { message, resume, regenerateFrom: from, branch, runId } = input
  if (from !== undefined && resume.length === 0)
    return chat.branch({ from, edit: message, isAgain: true, key: `run:${runId}`, branch })
  if (message && resume.length === 0) return chat.sendMessage({ ...message, branch })
  const session = await chat.readSession()
  if (!session)
    throw new UsageError('unknown_session', 'This thread does not exist. Send a message first.', 'threadId')
  const clientId = message?.clientId
  const isKnown = session.messages.some(({ id, data }) => id === clientId || data?.['clientId'] === clientId)
  if (message && !isKnown) {
    const problem =
      'A request can either answer open interrupts or send a new message. Send the answers first.'
    throw new UsageError('waiting_for_answers', problem, 'messages')
  }
  if (isOfOtherBranch(session, input)) throw staleBranchError('messages')
  const pageAnswers = readAnswers(session, input)
  if (pageAnswers.type === 'resume') return chat.resumePaused(pageAnswers)
  const subscription = await chat.answerCalls(pageAnswers)
  // The page compares its messages with a stream from the start of the answer.
  const whole = await chat.subscribe({ hasAnswered: true })
  if (whole === null) return subscription
  subscription.unsubscribe?.()
  return whole
}

/** Whether the page shows answers from another branch, whose calls may have the same ids. */
function isOfOtherBranch({ messages, points }: SessionView, { shown }: AgentInput): boolean {
  if (points.length === 0) return false
  const known = new Set(messages.map(({ id }) => id))
  return shown.some(
    ({ id, role, subagentRunId }) =>
      role === 'assistant' && subagentRunId === undefined && /^m\d+$/.test(id) && !known.has(id),
  )
}

async function streamChat(chat: Chat, { chatId }: { chatId: string }): Promise<Response | null> {
  const subscription = (await chat.subscribe()) ?? (await chat.subscribeAtRest())
  const page = { threadId: chatId, runId: createId(), shown: null, state: undefined }
  return subscription && createAnswerResponse(subscription, createAGUIProtocol(page, chat))
}

async function readChat(chat: Chat, branch: number | undefined) {
  const session = await chat.readSession(branch)
  const { messages = [], queued = [], ends = [], points = [] } = session ?? {}
  return {
    messages: toAGUIMessages(messages),
    queued: toAGUIMessages(queued),
    interrupts: session ? listInterrupts(session) : [],
    ...(ends.length > 0 && { ends: toAGUIEnds(ends, messages) }),
    ...(session && points.length > 0 && { branches: listBranches(session) }),
  }
}

/** Lists the branch points by the first message that differs, or by the last message if no message differs yet. */
function listBranches({ messages, points }: SessionView) {
  return points.map(({ at, position, count, branches }) => {
    const [shown = toAGUIMessages(messages).at(-1)] = toAGUIMessages(messages.slice(at))
    return { messageId: shown?.id ?? '', position, count, branches }
  })
}
