import { runInTurn } from '../base/maybe-promise.js'
import { memoize } from '../base/values.js'
import type { NewMessage, ControlEvent } from '../../../machines/agent/context.js'
import type { Principal } from '../../../machines/agent/principal.js'
import { isRestState, isWorkState } from '../../../machines/agent/run-result.js'
import { inputError, UsageError } from '../base/errors.js'
import { putMessage } from '../sessions/inbox/inbox-owners.js'
import {
  checkMessage,
  toPublicEvent,
  isAnswer,
  type Receipt,
  type SessionMessage,
  parseInboxMessage,
} from '../sessions/inbox/session-message.js'
import { readSender } from '../sessions/principal.js'
import { outlivesRun, withToolDigest } from '../sessions/grant-input.js'
import { changeGrants } from '../../../machines/agent/grants.js'
import { copyAsJson, hasSameWords, toMessages } from '../sessions/user-input.js'
import { type FoldedRun, foldRecords, type FoldedSession, takeEvent } from '../sessions/fold-session.js'
import { getInnerStore } from '../sessions/store/checked-store.js'
import type { SessionInbox } from '../sessions/store/inbox.js'
import type { SessionStore } from '../sessions/store/store.js'
import { readRunTime, type StoreParts } from '../sessions/open-session.js'
import { refuseSubAgentSession, messageChangedError } from '../sessions/session-errors.js'
import { unknownSessionError } from '../sessions/store/store-error.js'
import { checkSessionId } from '../sessions/store/session-id.js'
import { type ToolSet, createToolSet } from '../tools/tool-set.js'
import { getSpeakerTools } from '../live/agent-parts.js'
import { checkMessageFits, checkNotEnded, createAnswerEvent, notWaitingError } from './answer-events.js'
import { cancelStoredRun, postponeStoredRun } from './stored-run.js'
import { setAlarm } from '../sessions/alarm.js'
import type { UserMessage } from '../../../machines/agent/messages.js'
import { createId } from '../base/platform.js'
import {
  checkQueueRoom,
  formatQueuedMessage,
  isDelivered,
  joinTexts,
  listMessageIds,
  sortQueue,
  withMessageId,
} from '../sessions/inbox/queued-message.js'

/** The effect of an inbox on a run, after the log record `head` with the checksum `check`. */
interface InboxForecast {
  run: FoldedRun
  message: number
  /** The idempotency keys of the messages that were read, with the numbers of the messages. */
  keys: Map<string, number>
  head: number
  check: string
}

const mostKept = 200

const openForecasts = memoize((_store: SessionStore) => new Map<string, InboxForecast>())

/** The run after its inbox, up to `until`. Each message is applied once, even if many wait for the next process. */
async function forecastInbox(
  store: SessionStore,
  sessionId: string,
  { run, head, check, inbox }: FoldedSession & { run: FoldedRun },
  now: number,
  until = Infinity,
): Promise<InboxForecast> {
  const all = openForecasts(store)
  const forecast = all.get(sessionId)
  const isPart = forecast?.head === head && forecast.check === check && forecast.message < until
  let foreseen: InboxForecast = isPart ? forecast : { run, message: inbox, keys: new Map(), head, check }
  const { message: from } = foreseen
  for (const found of (await store.inbox?.read(sessionId, from)) ?? []) {
    const { message } = found
    // Custom stores may ignore the start position.
    if (message <= from || message >= until) continue
    const event = parseInboxMessage(found)
    if (event?.key !== undefined) foreseen.keys.set(event.key, message)
    foreseen = { ...foreseen, run: forecastMessage(foreseen.run, event, sessionId, now), message }
  }
  all.delete(sessionId)
  all.set(sessionId, foreseen)
  const [oldest = sessionId] = all.keys()
  if (all.size > mostKept) all.delete(oldest)
  return foreseen
}

function forecastMessage(run: FoldedRun, event: ControlEvent | null, id: string, now: number): FoldedRun {
  try {
    if (event === null) return run
    checkMessageFits(event, run, id, now)
    // The next run reads the message.
    if (run.status !== 'active' && outlivesRun(event)) {
      const grants = changeGrants(run.context, { now, ...event })
      return { ...run, context: { ...run.context, grants } }
    }
    return takeEvent(run, { now, ...event })[0]
  } catch {
    // The message will have no effect.
    return run
  }
}

export interface SendParts extends StoreParts {
  /** Tools for validating edited arguments. Without them, the process that runs the call validates the arguments. */
  tools?: ToolSet
}

export interface SendOptions {
  /** Idempotency key. A message with a known key is not sent again. */
  key?: string | undefined
  /** The last log record that the sender has seen. An answer is rejected if there is a newer record. */
  at?: number | undefined
  /** Whether the sender is the parent of a sub-agent's session. Only the parent may answer there. */
  isParent?: boolean
  /** The text to store in the inbox, if it differs from the event. */
  queued?: string
}

/** For the process that holds or resumes the session. Without a lease owner, a `cancel` applies immediately. */
export async function sendToStoredSession(
  parts: SendParts,
  sessionId: string,
  sessionMessage: SessionMessage,
  options: SendOptions = {},
): Promise<Receipt> {
  const { store } = parts
  const message = checkMessage(sessionMessage)
  const id = checkSessionId(sessionId)
  const { inbox } = store
  if (!inbox) {
    throw new UsageError(
      'no_inbox',
      'This store has no inbox, so its sessions cannot receive messages from other processes. Use memoryStore(), fileStore() ' +
        'or postgresStore(), or implement `inbox` in a custom store.',
      'store',
    )
  }
  return sendInOrder(store, id, () => {
    if (message.type !== 'message') return sendNow(parts, inbox, id, message, options)
    const { when, input, messageId: key = options.key } = message
    const { by } = readSender(message, 'message')
    const userMessages = toMessages(input)
    if (when === 'next') return queueMessage(store, inbox, id, userMessages, key, by)
    const text = joinTexts(userMessages)
    if (text === null)
      throw inputError(
        "A message with when: 'now' can only contain text. Send pictures and files with when: 'next'.",
        'input',
      )
    const messageId = key ?? createId()
    const queued = formatQueuedMessage(messageId, withMessageId(userMessages, messageId), 'now', by)
    return sendNow(parts, inbox, id, { type: 'steer', text, by }, { ...options, key, queued })
  })
}

const openSends = memoize((_store: SessionStore) => new Map<string, Promise<unknown>>())

/** Sends to a session after all earlier sends from this process. */
export function sendInOrder<Value>(
  store: SessionStore,
  id: string,
  work: () => Promise<Value>,
): Promise<Value> {
  return runInTurn(openSends(getInnerStore(store)), id, work)
}

type EventMessage = Exclude<SessionMessage, { type: 'message' }>

async function sendNow(
  parts: SendParts,
  inbox: SessionInbox,
  id: string,
  message: EventMessage,
  options: SendOptions,
): Promise<Receipt> {
  const { store } = parts
  const listed = await store.get(id)
  if (listed === null) throw unknownSessionError(id)
  const approves = isAnswer(message) || message.type === 'grant' || message.type === 'revoke'
  if (approves && !options.isParent) refuseSubAgentSession(id, listed.summary?.parent)
  const isHeld = listed.holder !== null
  const isForAnyWork = message.type === 'cancel' || message.type === 'pause' || message.type === 'steer'
  const isReadAtOnce = isHeld && isForAnyWork && options.at === undefined && options.key === undefined
  const fit: FittingEvent | Receipt = isReadAtOnce
    ? { event: toPublicEvent(message), last: null }
    : await checkSend(parts, { id, message, isHeld, ...options })
  if ('status' in fit) return fit
  const event = options.key === undefined ? fit.event : { ...fit.event, key: options.key }
  const text = options.queued ?? JSON.stringify(copyAsJson(event, message.type))
  const { message: number, holder } = await putMessage(store, id, text)
  if (event.type === 'CANCEL' && (holder === null || isRestState(listed.summary?.state)))
    return { message: number, status: await cancelStoredRun(parts, id, number) }
  if (holder !== null) return { message: number, status: 'sent' }
  const { wakeAt, agent: name, version } = listed.summary ?? {}
  // A message wakes a sleeping session if a process watches for alarms.
  if (wakeAt !== undefined && (event.type === 'STEER' || (event.type === 'RESUME' && event.at === undefined)))
    await setAlarm(store, id, 0, { name, version })
  // A user message that no run has read waits for the next turn.
  if (options.queued !== undefined) return { message: number, status: 'waiting' }
  try {
    // The lease owner may have released the session, or other messages may have arrived.
    if (isHeld || number - 1 !== fit.last) {
      const { messageId } = fit.event as { messageId?: string }
      const bound = isAnswer(message) && messageId !== undefined ? { ...message, messageId } : message
      await checkSend(parts, { id, message: bound, isHeld: false, before: number })
    }
  } catch (error) {
    await inbox.remove(id, [number])
    throw error
  }
  if (event.type === 'RESUME' && event.at !== undefined)
    return { message: number, status: await postponeStoredRun(parts, id, number) }
  return { message: number, status: 'waiting' }
}

interface SendRequest extends SendOptions {
  id: string
  message: EventMessage
  isHeld: boolean
  before?: number
}

interface FittingEvent {
  event: ControlEvent
  last: number | null
}

/** The event, checked against the run after all pending messages, or the receipt if the message was sent before. */
async function checkSend(
  { store, clock, tools }: SendParts,
  { id, message, isHeld, before, key, at }: SendRequest,
): Promise<FittingEvent | Receipt> {
  const folded = foldRecords(await store.read(id, { from: 'snapshot' }), id)
  if (key !== undefined && folded.keys.includes(key)) return { message: folded.inbox, status: 'applied' }
  const { run: left } = folded
  if (left === null) throw notWaitingError(id, 'has no run')
  const now = await readRunTime(store, folded, clock)
  const forecast = await forecastInbox(store, id, { ...folded, run: left }, now, before)
  const { keys, message: last } = forecast
  const earlier = key === undefined ? undefined : keys.get(key)
  if (earlier !== undefined) return { message: earlier, status: isHeld ? 'sent' : 'waiting' }
  // The process that received an earlier cancel may have died before it read the message.
  const run = message.type === 'cancel' && !isHeld ? left : forecast.run
  const isGrant = message.type === 'grant' || (message.type === 'revoke' && 'grant' in message)
  if (!isGrant) checkNotEnded(run, id)
  if (at !== undefined && at !== folded.head && message.type !== 'cancel') {
    const text =
      `Session '${id}' has new records since record ${at}, to which the answer refers. Its last record is ${folded.head}. Read its pending ` +
      `calls again, and answer those.`
    throw new UsageError('stale_answer', text, 'at')
  }
  if (isAnswer(message)) {
    const known = getSpeakerTools(tools ?? createToolSet([]), run.context.speaker)
    const scene = { now, tools: known, where: 'send()', isBound: true }
    const { event, problem } = createAnswerEvent(message, run.context, scene)
    const refusal = await problem
    if (refusal) throw refusal
    return { event, last }
  }
  let event = toPublicEvent(message, now)
  if (event.type === 'GRANT' && tools) {
    const tool = getSpeakerTools(tools, run.context.speaker).get(event.tool)
    event = { ...event, grant: withToolDigest(event.grant, tool) }
  }
  checkMessageFits(event, run, id, now)
  if (!isHeld && !isGrant && message.type !== 'cancel') {
    const state = getState(left)
    if (isWorkState(state))
      throw notWaitingError(id, `was interrupted: it is ${state}, but no process is running it`)
    if (message.type === 'pause' && !isWorkState(getState(run)))
      throw notWaitingError(id, `is ${getState(run)}, so there is no work to pause`)
  }
  return { event, last }
}

const getState = ({ context }: FoldedRun) => context.state ?? 'RUNNING'

/**
 * Adds a user message to the inbox of a session, for its next turn. A message with a known id is not queued twice.
 * @throws {UsageError} `queue_full`, `invalid_input`, `interactive_run`, `sub_agent_session`, `message_changed`
 */
async function queueMessage(
  store: SessionStore,
  inbox: SessionInbox,
  id: string,
  userMessages: NewMessage[],
  givenId: string | undefined,
  by: Principal | undefined,
): Promise<Receipt> {
  const own = userMessages[0]?.data?.['clientId']
  const messageId = givenId ?? (typeof own === 'string' ? own : createId())
  const text = formatQueuedMessage(messageId, withMessageId(userMessages, messageId), 'next', by)
  const listed = await store.get(id)
  if (listed === null) throw unknownSessionError(id)
  refuseSubAgentSession(id, listed.summary?.parent)
  const { run, queued, state, keys, ...folded } = foldRecords(await store.read(id, { from: 'snapshot' }), id)
  const { messages } = run?.context ?? state
  if (run?.status === 'active' && run.context.config.interactive) {
    const what = `Session '${id}' has an interactive run, which has no queue. Send { type: 'reply', input } while it waits for a message.`
    throw new UsageError('interactive_run', what, id)
  }
  if (by === undefined && run?.context.approvers?.some(({ notRequester }) => notRequester))
    throw inputError(
      "The agent's approvers need the author of each message. Send it with { by: 'ann' }.",
      'by',
    )
  const found = await inbox.read(id)
  const known = sortQueue(found, { queued, messages, keys }).waiting.find((one) =>
    listMessageIds(one).includes(messageId),
  )
  const earlier =
    known?.messageId === messageId
      ? known.messages[0]
      : messages.find((one): one is UserMessage => isDelivered([one], messageId))
  if (userMessages[0] && earlier && !hasSameWords(userMessages[0].content, earlier))
    throw messageChangedError(messageId)
  if (known) return { message: known.message, status: listed.holder === null ? 'waiting' : 'sent' }
  if (isDelivered(messages, messageId)) return { message: queued, status: 'applied' }
  // The message was sent with `when: 'now'`.
  if (keys.includes(messageId)) return { message: folded.inbox, status: 'applied' }
  checkQueueRoom(found, text, id)
  const { message, holder } = await putMessage(store, id, text)
  return { message, status: holder === null ? 'waiting' : 'sent' }
}
