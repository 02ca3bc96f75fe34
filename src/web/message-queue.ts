import { createId } from '../core/base/create-id.js'
import { isQueueStopped } from '../core/sessions/inbox/queued-message.js'
import { unclearedInput } from '../../machines/agent/screening.js'
import type { UserMessage } from '../../machines/agent/messages.js'
import type { ChatAgent } from './chat-agent.js'
import { type ChatInternals, type ChatSessions, isWorking } from './chat-sessions.js'
import { findPastTurn, findClientId, isTurnOpening, toTurn } from './chat-turn.js'
import type { ContinuedRuns } from './continued-runs.js'
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
}

/** What a look at a queued message finds: its answer, that it waits for people (null), or what to wait for. */
type Look = { answer: Subscription | null } | { until: Promise<unknown> }

/**
 * The messages that were sent while their sessions were at work. Each begins a turn with the context of the request that sent
 * it. The process that got the request begins the turn, as soon as the session is free and the message is the next.
 */
export class MessageQueue {
  readonly #parts: MessageQueueParts
  /** Who sent the messages that wait, by session and message id. */
  readonly #senders = new Map<string, Map<string, Caller>>()

  constructor(parts: MessageQueueParts) {
    this.#parts = parts
    parts.liveRuns.onEnd(({ run, caller }) => void this.#beginNextLater(run.sessionId, caller))
  }

  /**
   * Queues a message. Resolves once it is durable; its answer follows when its turn has begun: null when it waits for people.
   *
   * @throws {UsageError} `queue_full`, `interactive_run`
   */
  async add(sessionId: string, message: IncomingMessage, caller: Caller): Promise<QueuedAnswer> {
    const { clientId: messageId = createId(), content } = message
    const input = [toInputMessage({ content, clientId: messageId })]
    const senders = this.#senders.get(sessionId) ?? new Map<string, Caller>()
    this.#senders.set(sessionId, senders.set(messageId, caller))
    try {
      await this.#parts.agent.tell(sessionId, { type: 'message', when: 'next', input, messageId })
    } catch (error) {
      this.#forgetSender(sessionId, messageId)
      throw error
    }
    const answer = this.#waitForAnswer({ sessionId, messageId, caller, idleLooks: 0 })
    // A page that has left hears of no error.
    answer.catch(() => undefined)
    return { answer }
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
    { mayTakeOver = by.mayContinue, afterStop = false } = {},
  ): Promise<LiveRun | null> {
    const { liveRuns, beginQueuedRun } = this.#parts
    if (liveRuns.get(sessionId)) return null
    let said: { messageId: string; caller: Caller } | undefined
    const start = await beginQueuedRun(sessionId, {
      afterStop,
      findSender: (messageId) => {
        const sender = this.#senders.get(sessionId)?.get(messageId) ?? (mayTakeOver ? by : undefined)
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
    const { tasks } = this.#parts
    // The person writes: after a stop, the queue goes on.
    for (let afterStop = true; ; afterStop = false) {
      // oxlint-disable-next-line no-await-in-loop -- one look after the other
      const look = await tasks.run(awaited.sessionId, () => this.#look(awaited, afterStop))
      if ('answer' in look) return look.answer
      // oxlint-disable-next-line no-await-in-loop -- as above
      await look.until
    }
  }

  async #look(awaited: AwaitedMessage, afterStop: boolean): Promise<Look> {
    const { sessionId, messageId, caller } = awaited
    const { liveRuns, sessions, continued } = this.#parts
    const live = liveRuns.get(sessionId)
    if (live) return lookAtLive(live, messageId)
    const stored = await sessions.readStored(sessionId)
    if (stored === null) return { answer: null }
    const { context } = stored
    const openings = context.messages.filter(isTurnOpening)
    const at = openings.findLastIndex((message) => findClientId(message) === messageId)
    if (at >= 0) {
      this.#forgetSender(sessionId, messageId)
      if (at < openings.length - 1)
        return { answer: createFinishedSubscription(findPastTurn(context, messageId) ?? toTurn(context)) }
      return {
        answer: isWorking(context.state)
          ? await continued.resumeOrFollow(sessionId, caller)
          : createFinishedSubscription(toTurn(context)),
      }
    }
    if (await sessions.isHeld(sessionId)) {
      awaited.idleLooks = 0
      return { until: this.#waitForPoll() }
    }
    if (isWorking(context.state)) return this.#lookAtInterrupted(awaited)
    if (context.state === null || !hasEnded(context.state)) return { answer: null }
    if (isQueueStopped(context) && !afterStop) return { answer: null }
    awaited.idleLooks += 1
    const isAbandoned = awaited.idleLooks > maxIdleLooks
    // Without an object of the app, no rights are lent.
    const mayTakeOver = caller.mayContinue || (isAbandoned && caller.context === undefined)
    const begun = await this.beginNext(sessionId, caller, { mayTakeOver, afterStop })
    if (begun) return lookAtLive(begun, messageId)
    return isAbandoned ? { answer: null } : { until: this.#waitForPoll() }
  }

  /** Its process has died: whoever may continue it does so, and says what was queued after it. */
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
      ;(timer as { unref?: () => void } | undefined)?.unref?.()
    })
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
