import { isActiveState, isFinalState } from '../../machines/agent/run-result.js'
import { getOrCreate } from '../core/base/values.js'
import type { UserMessage } from '../../machines/agent/messages.js'
import { unclearedInput } from '../../machines/agent/screening.js'
import { unrefTimer } from '../core/base/clock.js'
import { createId } from '../core/base/platform.js'
import { isQueueStopped } from '../core/sessions/inbox/queued-message.js'
import { messageChangedError } from '../core/sessions/session-errors.js'
import { hasSameWords } from '../core/sessions/user-input.js'
import type { AwaitedSession, ChatSession } from './chat-sessions.js'
import { findPastTurn, type IncomingMessage, toInputMessage, toTurn } from './chat-turn.js'
import { findClientId, isTurnOpening } from '../core/sessions/find-turn.js'
import {
  type Caller,
  createFinishedSubscription,
  type LiveRun,
  subscribeFromStart,
  type Subscription,
} from './subscription.js'

const pollMs = 1000

/** After this many polls without a lease owner, the process that received the next message is considered dead. */
const maxIdlePolls = 3

/** The answer once the message's turn starts, or null while the session waits for a person. */
export interface QueuedAnswer {
  answer: Promise<Subscription | null>
}

/** The result of a poll: the answer (null while waiting for a person), or a promise to wait for. */
type Poll = { answer: Subscription | null } | { until: Promise<unknown> }

/** Messages for busy sessions. Each starts a turn with its request's context, in the process that received it. */
export function createMessageQueue(session: ChatSession) {
  const { host, sessionId, caller, readQueue } = session
  const { agent, clock, senders, awaited } = host

  const isEmpty = async (): Promise<boolean> => (await readQueue()).length === 0

  function forgetSender(messageId: string): void {
    const known = senders.get(sessionId)
    known?.delete(messageId)
    if (known?.size === 0) senders.delete(sessionId)
  }

  const screen = <Content>(content: Content): Content | string =>
    host.inputShields ? unclearedInput : content

  /**
   * Adds a message to the inbox, for the next turn or for the active run. If the run ends first, the message waits for
   * the next turn. Resolves once the message is durable.
   * @throws {UsageError} `queue_full`, `interactive_run`, `message_changed`; `run_ended` and `not_waiting` if no run is active
   */
  async function send(
    when: 'next' | 'now',
    { clientId: messageId = createId(), content }: IncomingMessage,
  ): Promise<{ messageId: string; isResent: boolean }> {
    const input = [toInputMessage({ content, clientId: messageId })]
    const queued = (await readQueue()).find((message) => message.messageId === messageId)
    const [earlier] = queued?.messages ?? []
    if (earlier && !hasSameWords(content, earlier)) throw messageChangedError(messageId)
    if (!queued) getOrCreate(senders, sessionId, () => new Map<string, Caller>()).set(messageId, caller)
    try {
      await agent.send(sessionId, { type: 'message', when, input, messageId, by: caller.by })
    } catch (error) {
      if (!queued) forgetSender(messageId)
      throw error
    }
    return { messageId, isResent: queued !== undefined }
  }

  /** Uses the sender's context, or this request's context for a message from another process, if allowed. */
  async function startNext(
    mayTakeOver: (messageId: string) => boolean = () => caller.mayContinue,
    afterStop = false,
  ): Promise<LiveRun | null> {
    if (session.getLive()) return null
    let next: { messageId: string; sender: Caller } | undefined
    const stored = await host.openStored()
    const start = await stored.beginQueued(sessionId, {
      afterStop,
      findSender: (messageId) => {
        const sender = senders.get(sessionId)?.get(messageId) ?? (mayTakeOver(messageId) ? caller : undefined)
        if (sender) next = { messageId, sender }
        return sender
      },
    })
    if (!start || !next) return null
    const { sender, messageId } = next
    const live = session.follow(start(), null, { clientId: messageId, sender })
    forgetSender(messageId)
    await live.run.started
    return live
  }

  /**
   * The answer to a queued message. `isResent`: the message was already queued when this request sent it. `isWatched`: the
   * request only reads, so it starts nothing, unless it may continue other requests' runs.
   */
  function awaitAnswer(messageId: string, { isResent = false, isWatched = false }): QueuedAnswer {
    const mayStart = !isWatched || caller.mayContinue
    /** Number of polls without a lease owner while another request's message was next. */
    let idlePolls = 0
    const pollLater = (): Poll => ({
      // A queued message must not keep the process alive.
      until: new Promise<void>((resolve) => unrefTimer(clock.setTimeout(resolve, pollMs))),
    })

    async function poll(known: AwaitedSession, afterStop: boolean): Promise<Poll> {
      const live = session.getLive()
      if (live) return pollLive(live, messageId)
      const listed = await session.getListed()
      if (listed === null) return { answer: null }
      // The session is read again only if its log has changed.
      const log = `${listed.createdAt} ${listed.head}`
      if (known.log !== log) Object.assign(known, { stored: await session.readStored(), log })
      const { stored } = known
      if (stored === null) return { answer: null }
      const { context } = stored
      const openings = context.messages.filter(isTurnOpening)
      const at = openings.findLastIndex((message) => findClientId(message) === messageId)
      if (at >= 0) {
        forgetSender(messageId)
        if (at < openings.length - 1)
          return { answer: createFinishedSubscription(findPastTurn(context, messageId) ?? toTurn(context)) }
        if (!isActiveState(context.state)) return { answer: createFinishedSubscription(toTurn(context)) }
        return { answer: mayStart ? await session.resumeOrFollow() : session.followRemote(stored) }
      }
      if (listed.holder !== null) {
        idlePolls = 0
        return pollLater()
      }
      if (isActiveState(context.state)) {
        // The run's process died. A page that may continue the run resumes it, and the queue follows the run.
        if (!caller.mayContinue) return { answer: null }
        await session.resumeOrFollow()
        const resumed = session.getLive()
        return resumed ? pollLive(resumed, messageId) : pollLater()
      }
      if (!isFinalState(context.state) || (isQueueStopped(context) && !afterStop)) return { answer: null }
      idlePolls += 1
      const isAbandoned = idlePolls > maxIdlePolls
      const mayTakeOver = (next: string): boolean => {
        if (caller.mayContinue) return true
        // Without a context there are no rights to misuse, and a person who resends a message is its sender.
        return isAbandoned && (caller.context === undefined || (isResent && next === messageId))
      }
      const started = mayStart ? await startNext(mayTakeOver, afterStop) : null
      if (started) return pollLive(started, messageId)
      return isAbandoned ? { answer: null } : pollLater()
    }

    async function waitForAnswer(): Promise<Subscription | null> {
      const known = getOrCreate(awaited, sessionId, () => ({ requests: 0, log: null, stored: null }))
      known.requests += 1
      try {
        // A new message from the user restarts a queue that was stopped.
        for (let afterStop = !isWatched; ; afterStop = false) {
          const polled = await session.runTask(() => poll(known, afterStop))
          if ('answer' in polled) return polled.answer
          await polled.until
        }
      } finally {
        known.requests -= 1
        if (known.requests === 0) awaited.delete(sessionId)
      }
    }

    const answer = waitForAnswer()
    // The page may have disconnected.
    answer.catch(ignore)
    return { answer }
  }

  /**
   * A queued message keeps its sender, so that another request with the same id cannot change its rights.
   * @throws {UsageError} `queue_full`, `interactive_run`, `message_changed`
   */
  async function add(message: IncomingMessage): Promise<QueuedAnswer> {
    const { messageId, isResent } = await send('next', message)
    return awaitAnswer(messageId, { isResent })
  }

  /** Sends a message to the active run and returns the run's answer. @throws {UsageError} see `send` */
  async function steer(message: IncomingMessage): Promise<Subscription | QueuedAnswer> {
    await send('now', message)
    const live = session.getLive()
    if (live) return subscribeFromStart(live)
    const stored = await session.readStored()
    return stored
      ? session.followRemote(stored, { resumes: caller.mayContinue })
      : { answer: Promise.resolve(null) }
  }

  return {
    isEmpty,
    add,
    steer,
    send,
    startNext,
    watch: (messageId: string): QueuedAnswer => awaitAnswer(messageId, { isWatched: true }),
    has: async (messageId: string): Promise<boolean> =>
      (await readQueue()).some((queued) => queued.messageId === messageId),

    /** A steered run keeps its own context, so the sender must not gain rights by steering. */
    maySteer: (): boolean =>
      caller.mayContinue || (caller.context === undefined && session.getLive()?.caller.context === undefined),

    /** The queued messages as transcript messages. Text that input shields have not screened is masked. */
    list: async (): Promise<UserMessage[]> =>
      (await readQueue()).flatMap(({ messageId, at, messages }) =>
        messages.map(({ content, data }, i) => ({
          id: i === 0 ? messageId : `${messageId}.${i}`,
          role: 'user',
          createdAt: at,
          content: screen(content),
          ...(data && { data }),
        })),
      ),

    /** Steering that the run has received but that is not in a model request yet. */
    listSteering(texts: readonly string[]): UserMessage[] {
      const createdAt = clock.now()
      return texts.map((text, i) => ({ id: `steering.${i}`, role: 'user', createdAt, content: screen(text) }))
    },

    /** For the end of a run in this process. Never rejects. */
    async startNextAfterEnd(): Promise<void> {
      try {
        await session.runTask(async () => {
          if (await isEmpty()) senders.delete(sessionId)
          else await startNext()
        })
      } catch {
        // The request that waits for the answer will report the error.
      }
    },
  }
}

function pollLive(live: LiveRun, messageId: string): Poll {
  return live.clientIds.has(messageId)
    ? { answer: subscribeFromStart(live) }
    : { until: live.run.result.then(ignore, ignore) }
}

const ignore = (): void => undefined
