import { unrefTimer } from '../core/base/clock.js'
import { createId } from '../core/base/platform.js'
import { isQueueStopped } from '../core/sessions/inbox/queued-message.js'
import { unclearedInput } from '../../machines/agent/screening.js'
import type { UserMessage } from '../../machines/agent/messages.js'
import { messageChangedError } from '../core/sessions/session-errors.js'
import { hasSameWords } from '../core/sessions/user-input.js'
import type { ChatAgent } from './chat-agent.js'
import { type ChatInternals, type ChatSessions, isWorking } from './chat-sessions.js'
import { findPastTurn, findClientId, isTurnOpening, toTurn } from './chat-turn.js'
import type { ContinuedRuns } from './continued-runs.js'
import type { StoredContext } from './follow-remote.js'
import { type IncomingMessage, toInputMessage } from './incoming-message.js'
import { type Caller, hasEnded, type LiveRun, type LiveRuns } from './live-runs.js'
import type { SessionQueue } from './session-queue.js'
import { createFinishedSubscription, type Subscription, subscribeFromStart } from './subscription.js'

/** How often a session of another process is looked at, in milliseconds. */
const pollMs = 1000

/** After so many looks at a session that no process has, the process that got its next message is taken to be gone. */
const maxIdleLooks = 3

export interface MessageQueueParts {
  agent: ChatAgent
  clock: ChatInternals['clock']
  sessions: ChatSessions
  liveRuns: LiveRuns
  tasks: SessionQueue
  continued: ContinuedRuns
  beginQueuedRun: ChatInternals['beginQueuedRun']
}

/** What becomes of a message of a page while its session works; see `HandlerOptions`. */
export type WhenBusy = 'queue' | 'steer' | 'refuse'

/** A message was queued. Its answer follows when its turn has begun: null when it waits until people have decided something. */
export interface QueuedAnswer {
  answer: Promise<Subscription | null>
}

/** A queued message that is waited for. */
interface AwaitedMessage {
  sessionId: string
  messageId: string
  caller: Caller
  /** How often no process had the session, and its next message was another request's. */
  idleLooks: number
  /** Whether it was queued already when this request sent it. */
  isResent: boolean
  /** Whether the request only reads: it starts nothing unless it may continue what others have begun. */
  isWatched?: boolean
}

interface TakeOver {
  /** Whether a message without a sender here gets the context of this request. */
  mayTakeOver?: (messageId: string) => boolean
  afterStop?: boolean
}

/** Many messages that wait for one session look at one context. */
interface AwaitedSession {
  messages: number
  /** The log when the context was read. */
  log: string | null
  stored: StoredContext | null
}

/** What a look at a queued message finds: its answer, that it waits for people (null), or what to wait for. */
type Look = { answer: Subscription | null } | { until: Promise<unknown> }

/**
 * The messages that were sent while their sessions were at work. Each begins a turn with the context of the request that sent
 * it. The process that got the request begins the turn, as soon as the session is free and the message is the next.
 */
export class MessageQueue {
  readonly #parts: MessageQueueParts
  /** The sessions whose messages are waited for. */
  readonly #awaited = new Map<string, AwaitedSession>()
  /** Who sent the messages that wait, by session and message id. */
  readonly #senders = new Map<string, Map<string, Caller>>()

  constructor(parts: MessageQueueParts) {
    this.#parts = parts
    parts.liveRuns.onEnd(({ run, caller }) => void this.#beginNextLater(run.sessionId, caller))
  }

  /**
   * Queues a message. Resolves once it is durable; its answer follows when its turn has begun: null when it waits for people.
   * A message that waits already keeps its sender: another request that has its id must not give it other rights.
   *
   * @throws {UsageError} `queue_full`, `interactive_run`, `message_changed`
   */
  async add(sessionId: string, message: IncomingMessage, caller: Caller): Promise<QueuedAnswer> {
    const told = await this.send(sessionId, 'next', message, caller)
    const answer = this.#waitForAnswer({ sessionId, ...told, caller, idleLooks: 0 })
    // A page that has left hears of no error.
    answer.catch(() => undefined)
    return { answer }
  }

  /** The answer to a message that waits, for a request that reads: see `add`. */
  watch(sessionId: string, messageId: string, caller: Caller): QueuedAnswer {
    const isWatched = true
    const answer = this.#waitForAnswer({
      sessionId,
      messageId,
      caller,
      idleLooks: 0,
      isResent: false,
      isWatched,
    })
    answer.catch(() => undefined)
    return { answer }
  }

  async has(sessionId: string, messageId: string): Promise<boolean> {
    return (await this.#parts.sessions.readQueue(sessionId)).some((one) => one.messageId === messageId)
  }

  /** What the model makes of steering has the rights of the run: without an object of the app, none are lent. */
  maySteer(sessionId: string, caller: Caller): boolean {
    const initiator = this.#parts.liveRuns.get(sessionId)?.caller
    return caller.mayContinue || (caller.context === undefined && initiator?.context === undefined)
  }

  /** Tells a message to the run at work, and returns its answer. @throws {UsageError} as `send` */
  async steer(
    sessionId: string,
    message: IncomingMessage,
    caller: Caller,
  ): Promise<Subscription | QueuedAnswer> {
    const { liveRuns, sessions, continued } = this.#parts
    await this.send(sessionId, 'now', message, caller)
    const live = liveRuns.get(sessionId)
    if (live) return subscribeFromStart(live)
    const stored = await sessions.readStored(sessionId)
    const by = caller.mayContinue ? caller : null
    return stored ? continued.followRemote(sessionId, stored, by) : { answer: Promise.resolve(null) }
  }

  /**
   * Leaves a message in the inbox: for the next turn, or for the run at work, after which it waits for the next turn. Resolves
   * once it is durable.
   *
   * @throws {UsageError} as `add`; `run_ended` and `not_waiting` where no run is at work
   */
  async send(
    sessionId: string,
    when: 'next' | 'now',
    { clientId: messageId = createId(), content }: IncomingMessage,
    caller: Caller,
  ): Promise<Pick<AwaitedMessage, 'messageId' | 'isResent'>> {
    const input = [toInputMessage({ content, clientId: messageId })]
    const waiting = await this.#parts.sessions.readQueue(sessionId)
    const queued = waiting.find((one) => one.messageId === messageId)
    const [earlier] = queued?.said ?? []
    if (earlier && !hasSameWords(content, earlier)) throw messageChangedError(messageId)
    if (!queued) this.#rememberSender(sessionId, messageId, caller)
    try {
      await this.#parts.agent.send(sessionId, { type: 'message', when, input, messageId })
    } catch (error) {
      if (!queued) this.#forgetSender(sessionId, messageId)
      throw error
    }
    return { messageId, isResent: queued !== undefined }
  }

  /** The messages that wait, as messages of a transcript. What input shields have not seen yet is masked. */
  async list(sessionId: string): Promise<UserMessage[]> {
    const { inputShields } = this.#parts.sessions
    return (await this.#parts.sessions.readQueue(sessionId)).flatMap(({ messageId, at, said }) =>
      said.map(
        ({ content, data }, i): UserMessage => ({
          id: i === 0 ? messageId : `${messageId}.${i}`,
          role: 'user',
          createdAt: at,
          content: inputShields ? unclearedInput : content,
          ...(data && { data }),
        }),
      ),
    )
  }

  /** Steering that the run has read, and the model has not: it is in no message yet. */
  listSteering(texts: readonly string[]): UserMessage[] {
    const { inputShields } = this.#parts.sessions
    return texts.map((text, i) => ({
      id: `steering.${i}`,
      role: 'user',
      createdAt: this.#parts.clock.now(),
      content: inputShields ? unclearedInput : text,
    }))
  }

  async isEmpty(sessionId: string): Promise<boolean> {
    return (await this.#parts.sessions.readQueue(sessionId)).length === 0
  }

  /**
   * Begins the next turn of a session that is free, with its first queued message. It works with the context of its sender;
   * of a sender of another process, with that of `by`, where that may be.
   */
  async beginNext(
    sessionId: string,
    by: Caller,
    { mayTakeOver = () => by.mayContinue, afterStop = false }: TakeOver = {},
  ): Promise<LiveRun | null> {
    const { liveRuns, beginQueuedRun } = this.#parts
    if (liveRuns.get(sessionId)) return null
    let said: { messageId: string; caller: Caller } | undefined
    const start = await beginQueuedRun(sessionId, {
      afterStop,
      findSender: (messageId) => {
        const sender =
          this.#senders.get(sessionId)?.get(messageId) ?? (mayTakeOver(messageId) ? by : undefined)
        if (sender) said = { messageId, caller: sender }
        return sender
      },
    })
    if (!start || !said) return null
    const { caller, messageId } = said
    const live = liveRuns.removeAtRest(liveRuns.follow(start(), null, caller, messageId))
    this.#forgetSender(sessionId, messageId)
    await live.run.started
    return live
  }

  /** A run has ended here: the next one begins, unless it was stopped. */
  async #beginNextLater(sessionId: string, by: Caller): Promise<void> {
    try {
      await this.#parts.tasks.run(sessionId, async () => {
        if (await this.isEmpty(sessionId)) this.#senders.delete(sessionId)
        else await this.beginNext(sessionId, by)
      })
    } catch {
      // The request that waits for the answer reports why it cannot begin.
    }
  }

  async #waitForAnswer(awaited: AwaitedMessage): Promise<Subscription | null> {
    const { sessionId } = awaited
    const session = this.#awaited.get(sessionId) ?? { messages: 0, log: null, stored: null }
    this.#awaited.set(sessionId, session)
    session.messages += 1
    try {
      return await this.#lookForAnswer(awaited)
    } finally {
      session.messages -= 1
      if (session.messages === 0) this.#awaited.delete(sessionId)
    }
  }

  async #lookForAnswer(awaited: AwaitedMessage): Promise<Subscription | null> {
    const { tasks } = this.#parts
    // The person writes: after a stop, the queue goes on.
    for (let afterStop = !awaited.isWatched; ; afterStop = false) {
      // oxlint-disable-next-line no-await-in-loop -- one look after the other
      const look = await tasks.run(awaited.sessionId, () => this.#look(awaited, afterStop))
      if ('answer' in look) return look.answer
      // oxlint-disable-next-line no-await-in-loop -- as above
      await look.until
    }
  }

  async #look(awaited: AwaitedMessage, afterStop: boolean): Promise<Look> {
    const { sessionId, messageId, caller, isWatched = false } = awaited
    const { liveRuns, continued } = this.#parts
    const live = liveRuns.get(sessionId)
    if (live) return lookAtLive(live, messageId)
    const { stored, isHeld } = await this.#readAwaited(sessionId)
    if (stored === null) return { answer: null }
    const { context } = stored
    const openings = context.messages.filter(isTurnOpening)
    const at = openings.findLastIndex((message) => findClientId(message) === messageId)
    if (at >= 0) {
      this.#forgetSender(sessionId, messageId)
      if (at < openings.length - 1)
        return { answer: createFinishedSubscription(findPastTurn(context, messageId) ?? toTurn(context)) }
      if (!isWorking(context.state)) return { answer: createFinishedSubscription(toTurn(context)) }
      return {
        answer:
          isWatched && !caller.mayContinue
            ? continued.followRemote(sessionId, stored, null)
            : await continued.resumeOrFollow(sessionId, caller),
      }
    }
    if (isHeld) {
      awaited.idleLooks = 0
      return { until: this.#waitForPoll() }
    }
    if (isWorking(context.state)) return this.#lookAtInterrupted(awaited)
    if (context.state === null || !hasEnded(context.state)) return { answer: null }
    if (isQueueStopped(context) && !afterStop) return { answer: null }
    awaited.idleLooks += 1
    const isAbandoned = awaited.idleLooks > maxIdleLooks
    if (isWatched && !caller.mayContinue)
      return isAbandoned ? { answer: null } : { until: this.#waitForPoll() }
    const mayTakeOver = (next: string): boolean => {
      if (caller.mayContinue) return true
      // Without an object of the app, no rights are lent; and who sends a message again says it.
      return isAbandoned && (caller.context === undefined || (awaited.isResent && next === messageId))
    }
    const begun = await this.beginNext(sessionId, caller, { mayTakeOver, afterStop })
    if (begun) return lookAtLive(begun, messageId)
    return isAbandoned ? { answer: null } : { until: this.#waitForPoll() }
  }

  /** The context is read again when the log has grown. */
  async #readAwaited(sessionId: string): Promise<{ stored: StoredContext | null; isHeld: boolean }> {
    const { sessions } = this.#parts
    const listed = await sessions.getListed(sessionId)
    if (listed === null) return { stored: null, isHeld: false }
    const awaited = this.#awaited.get(sessionId)
    const isHeld = listed.holder !== null
    const log = `${listed.createdAt} ${listed.head}`
    if (awaited?.log === log) return { stored: awaited.stored, isHeld }
    const stored = await sessions.readStored(sessionId)
    if (awaited) Object.assign(awaited, { log, stored })
    return { stored, isHeld }
  }

  /** Its process has died: a page that may continue the run does so, and then says what was queued. */
  async #lookAtInterrupted({ sessionId, messageId, caller }: AwaitedMessage): Promise<Look> {
    if (!caller.mayContinue) return { answer: null }
    const { continued, liveRuns } = this.#parts
    await continued.resumeOrFollow(sessionId, caller)
    const live = liveRuns.get(sessionId)
    return live ? lookAtLive(live, messageId) : { until: this.#waitForPoll() }
  }

  #waitForPoll(): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#parts.clock.setTimeout(resolve, pollMs)
      // A message that waits is no reason for a process to stay.
      unrefTimer(timer)
    })
  }

  #rememberSender(sessionId: string, messageId: string, caller: Caller): void {
    const senders = this.#senders.get(sessionId) ?? new Map<string, Caller>()
    this.#senders.set(sessionId, senders.set(messageId, caller))
  }

  #forgetSender(sessionId: string, messageId: string): void {
    const senders = this.#senders.get(sessionId)
    senders?.delete(messageId)
    if (senders?.size === 0) this.#senders.delete(sessionId)
  }
}

function lookAtLive(live: LiveRun, messageId: string): Look {
  return live.clientIds.has(messageId)
    ? { answer: subscribeFromStart(live) }
    : { until: live.run.result.then(ignore, ignore) }
}

const ignore = (): void => undefined
