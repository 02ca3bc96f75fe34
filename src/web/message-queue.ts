import { isActiveState, isFinalState } from '../../machines/agent/run-result.js'
import { getOrCreate } from '../core/base/values.js'
import type { UserMessage } from '../../machines/agent/messages.js'
import { unclearedInput } from '../../machines/agent/screening.js'
import { unrefTimer } from '../core/base/clock.js'
import { createId } from '../core/base/platform.js'
import { isQueueStopped } from '../core/sessions/inbox/queued-message.js'
import { messageChangedError } from '../core/sessions/session-errors.js'
import { hasSameWords } from '../core/sessions/user-input.js'
import type { ChatSessions, StoredContext } from './chat-sessions.js'
import { findPastTurn, type IncomingMessage, toInputMessage, toTurn } from './chat-turn.js'
import { findClientId, isTurnOpening } from '../core/sessions/find-turn.js'
import {
  type Caller,
  createFinishedSubscription,
  type LiveRun,
  subscribeFromStart,
  type Subscription,
} from './subscription.js'
import type { LiveRuns } from './live-runs.js'

const pollMs = 1000

/** After this many polls without a lease owner, the process that received the next message is considered dead. */
const maxIdlePolls = 3

/** The answer once the message's turn starts, or null while the session waits for a person. */
export interface QueuedAnswer {
  answer: Promise<Subscription | null>
}

interface AwaitedMessage {
  sessionId: string
  messageId: string
  caller: Caller
  /** Number of polls without a lease owner while another request's message was next. */
  idlePolls: number
  /** Whether the message was already queued when this request sent it. */
  isResent: boolean
  /** Whether the request only reads. Such a request starts nothing, unless it may continue other requests' runs. */
  isWatched: boolean
}

interface TakeOver {
  /** Whether a message from another process may run with this request's context. */
  mayTakeOver?: (messageId: string) => boolean
  afterStop?: boolean
}

interface AwaitedSession {
  requests: number
  log: string | null
  stored: StoredContext | null
}

/** The result of a poll: the answer (null while waiting for a person), or a promise to wait for. */
type Poll = { answer: Subscription | null } | { until: Promise<unknown> }

/** Messages for busy sessions. Each starts a turn with its request's context, in the process that received it. */
export class MessageQueue {
  readonly #sessions: ChatSessions
  readonly #runs: LiveRuns
  readonly #awaited = new Map<string, AwaitedSession>()
  readonly #senders = new Map<string, Map<string, Caller>>()

  constructor(sessions: ChatSessions, runs: LiveRuns) {
    this.#sessions = sessions
    this.#runs = runs
    runs.onEnd(({ run, caller }) => void this.#startNextAfterEnd(run.sessionId, caller))
  }

  /**
   * Queues a message. Resolves once the message is durable. If the message is already queued, its original sender is
   * kept, so that another request with the same id cannot change the rights of the message.
   * @throws {UsageError} `queue_full`, `interactive_run`, `message_changed`
   */
  async add(sessionId: string, message: IncomingMessage, caller: Caller): Promise<QueuedAnswer> {
    const queued = await this.send(sessionId, 'next', message, caller)
    return this.#awaitAnswer({ sessionId, ...queued, caller, idlePolls: 0, isWatched: false })
  }

  /** The answer to a queued message, for a request that only reads. */
  watch(sessionId: string, messageId: string, caller: Caller): QueuedAnswer {
    const awaited = { sessionId, messageId, caller, idlePolls: 0, isResent: false, isWatched: true }
    return this.#awaitAnswer(awaited)
  }

  async has(sessionId: string, messageId: string): Promise<boolean> {
    return (await this.#sessions.readQueue(sessionId)).some((queued) => queued.messageId === messageId)
  }

  /** A steered run keeps its own context, so the sender must not gain rights by steering. */
  maySteer(sessionId: string, caller: Caller): boolean {
    const initiator = this.#runs.get(sessionId)?.caller
    return caller.mayContinue || (caller.context === undefined && initiator?.context === undefined)
  }

  /** Sends a message to the active run and returns the run's answer. @throws {UsageError} see `send` */
  async steer(
    sessionId: string,
    message: IncomingMessage,
    caller: Caller,
  ): Promise<Subscription | QueuedAnswer> {
    await this.send(sessionId, 'now', message, caller)
    const live = this.#runs.get(sessionId)
    if (live) return subscribeFromStart(live)
    const stored = await this.#sessions.readStored(sessionId)
    const resumer = caller.mayContinue ? caller : null
    return stored ? this.#runs.followRemote(sessionId, stored, resumer) : { answer: Promise.resolve(null) }
  }

  /**
   * Adds a message to the inbox, for the next turn or for the active run. If the run ends first, the message waits for
   * the next turn. Resolves once the message is durable.
   * @throws {UsageError} see `add`; `run_ended` and `not_waiting` if no run is active
   */
  async send(
    sessionId: string,
    when: 'next' | 'now',
    { clientId: messageId = createId(), content }: IncomingMessage,
    caller: Caller,
  ): Promise<Pick<AwaitedMessage, 'messageId' | 'isResent'>> {
    const input = [toInputMessage({ content, clientId: messageId })]
    const waiting = await this.#sessions.readQueue(sessionId)
    const queued = waiting.find((message) => message.messageId === messageId)
    const [earlier] = queued?.messages ?? []
    if (earlier && !hasSameWords(content, earlier)) throw messageChangedError(messageId)
    if (!queued) this.#rememberSender(sessionId, messageId, caller)
    try {
      const message = { type: 'message', when, input, messageId, by: caller.by } as const
      await this.#sessions.agent.send(sessionId, message)
    } catch (error) {
      if (!queued) this.#forgetSender(sessionId, messageId)
      throw error
    }
    return { messageId, isResent: queued !== undefined }
  }

  /** The queued messages as transcript messages. Text that input shields have not screened is masked. */
  async list(sessionId: string): Promise<UserMessage[]> {
    return (await this.#sessions.readQueue(sessionId)).flatMap(({ messageId, at, messages }) =>
      messages.map(
        ({ content, data }, i): UserMessage => ({
          id: i === 0 ? messageId : `${messageId}.${i}`,
          role: 'user',
          createdAt: at,
          content: this.#screen(content),
          ...(data && { data }),
        }),
      ),
    )
  }

  /** Steering that the run has received but that is not in a model request yet. */
  listSteering(texts: readonly string[]): UserMessage[] {
    const createdAt = this.#sessions.internals.clock.now()
    return texts.map((text, i) => ({
      id: `steering.${i}`,
      role: 'user',
      createdAt,
      content: this.#screen(text),
    }))
  }

  #screen<Content>(content: Content): Content | string {
    return this.#sessions.internals.inputShields ? unclearedInput : content
  }

  async isEmpty(sessionId: string): Promise<boolean> {
    return (await this.#sessions.readQueue(sessionId)).length === 0
  }

  /** Uses the sender's context, or the context of `fallback` for a message from another process, if allowed. */
  async startNext(
    sessionId: string,
    fallback: Caller,
    { mayTakeOver = () => fallback.mayContinue, afterStop = false }: TakeOver = {},
  ): Promise<LiveRun | null> {
    if (this.#runs.get(sessionId)) return null
    let next: { messageId: string; caller: Caller } | undefined
    const stored = await this.#sessions.internals.openStored()
    const start = await stored.beginQueued(sessionId, {
      afterStop,
      findSender: (messageId) => {
        const sender =
          this.#senders.get(sessionId)?.get(messageId) ?? (mayTakeOver(messageId) ? fallback : undefined)
        if (sender) next = { messageId, caller: sender }
        return sender
      },
    })
    if (!start || !next) return null
    const { caller, messageId } = next
    const live = this.#runs.start(start(), caller, messageId)
    this.#forgetSender(sessionId, messageId)
    await live.run.started
    return live
  }

  async #startNextAfterEnd(sessionId: string, caller: Caller): Promise<void> {
    try {
      await this.#sessions.runTask(sessionId, async () => {
        if (await this.isEmpty(sessionId)) this.#senders.delete(sessionId)
        else await this.startNext(sessionId, caller)
      })
    } catch {
      // The request that waits for the answer will report the error.
    }
  }

  #awaitAnswer(awaited: AwaitedMessage): QueuedAnswer {
    const answer = this.#waitForAnswer(awaited)
    // The page may have disconnected.
    answer.catch(ignore)
    return { answer }
  }

  async #waitForAnswer(awaited: AwaitedMessage): Promise<Subscription | null> {
    const { sessionId } = awaited
    const session = this.#awaited.get(sessionId) ?? { requests: 0, log: null, stored: null }
    this.#awaited.set(sessionId, session)
    session.requests += 1
    try {
      // A new message from the user restarts a queue that was stopped.
      for (let afterStop = !awaited.isWatched; ; afterStop = false) {
        // oxlint-disable-next-line no-await-in-loop -- polls run one at a time
        const poll = await this.#sessions.runTask(sessionId, () => this.#poll(awaited, afterStop))
        if ('answer' in poll) return poll.answer
        // oxlint-disable-next-line no-await-in-loop -- as above
        await poll.until
      }
    } finally {
      session.requests -= 1
      if (session.requests === 0) this.#awaited.delete(sessionId)
    }
  }

  async #poll(awaited: AwaitedMessage, afterStop: boolean): Promise<Poll> {
    const { sessionId, messageId, caller, isWatched } = awaited
    const live = this.#runs.get(sessionId)
    if (live) return pollLive(live, messageId)
    const { stored, isHeld } = await this.#readAwaited(sessionId)
    if (stored === null) return { answer: null }
    const { context } = stored
    const openings = context.messages.filter(isTurnOpening)
    const at = openings.findLastIndex((message) => findClientId(message) === messageId)
    const mayStart = !isWatched || caller.mayContinue
    if (at >= 0) {
      this.#forgetSender(sessionId, messageId)
      if (at < openings.length - 1)
        return { answer: createFinishedSubscription(findPastTurn(context, messageId) ?? toTurn(context)) }
      if (!isActiveState(context.state)) return { answer: createFinishedSubscription(toTurn(context)) }
      return mayStart
        ? { answer: await this.#runs.resumeOrFollow(sessionId, caller) }
        : { answer: this.#runs.followRemote(sessionId, stored, null) }
    }
    if (isHeld) {
      awaited.idlePolls = 0
      return { until: this.#waitForPoll() }
    }
    if (isActiveState(context.state)) return this.#pollInterrupted(awaited)
    if (!isFinalState(context.state)) return { answer: null }
    if (isQueueStopped(context) && !afterStop) return { answer: null }
    awaited.idlePolls += 1
    const isAbandoned = awaited.idlePolls > maxIdlePolls
    const retry = (): Poll => (isAbandoned ? { answer: null } : { until: this.#waitForPoll() })
    if (!mayStart) return retry()
    const mayTakeOver = (next: string): boolean => {
      if (caller.mayContinue) return true
      // Without a context there are no rights to misuse, and a person who resends a message is its sender.
      return isAbandoned && (caller.context === undefined || (awaited.isResent && next === messageId))
    }
    const started = await this.startNext(sessionId, caller, { mayTakeOver, afterStop })
    if (started) return pollLive(started, messageId)
    return retry()
  }

  async #readAwaited(sessionId: string): Promise<{ stored: StoredContext | null; isHeld: boolean }> {
    const listed = await this.#sessions.getListed(sessionId)
    if (listed === null) return { stored: null, isHeld: false }
    const awaited = this.#awaited.get(sessionId)
    const isHeld = listed.holder !== null
    const log = `${listed.createdAt} ${listed.head}`
    if (awaited?.log === log) return { stored: awaited.stored, isHeld }
    const stored = await this.#sessions.readStored(sessionId)
    if (awaited) Object.assign(awaited, { log, stored })
    return { stored, isHeld }
  }

  /** Handles a run whose process died. A page that may continue the run resumes it, and the queue follows the run. */
  async #pollInterrupted({ sessionId, messageId, caller }: AwaitedMessage): Promise<Poll> {
    if (!caller.mayContinue) return { answer: null }
    await this.#runs.resumeOrFollow(sessionId, caller)
    const live = this.#runs.get(sessionId)
    return live ? pollLive(live, messageId) : { until: this.#waitForPoll() }
  }

  #waitForPoll(): Promise<void> {
    const { clock } = this.#sessions.internals
    // A queued message must not keep the process alive.
    return new Promise((resolve) => unrefTimer(clock.setTimeout(resolve, pollMs)))
  }

  #rememberSender(sessionId: string, messageId: string, caller: Caller): void {
    getOrCreate(this.#senders, sessionId, () => new Map<string, Caller>()).set(messageId, caller)
  }

  #forgetSender(sessionId: string, messageId: string): void {
    const senders = this.#senders.get(sessionId)
    senders?.delete(messageId)
    if (senders?.size === 0) this.#senders.delete(sessionId)
  }
}

function pollLive(live: LiveRun, messageId: string): Poll {
  return live.clientIds.has(messageId)
    ? { answer: subscribeFromStart(live) }
    : { until: live.run.result.then(ignore, ignore) }
}

const ignore = (): void => undefined
