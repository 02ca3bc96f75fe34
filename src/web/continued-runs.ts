import type { ChatAgent } from './chat-agent.js'
import { type ChatInternals, type ChatSessions, isWorking } from './chat-sessions.js'
import { followRemoteRun, type StoredContext } from './follow-remote.js'
import type { IncomingMessage } from './incoming-message.js'
import type { SessionQueue } from './session-queue.js'
import {
  createFinishedSubscription,
  type Subscription,
  subscribeFromNow,
  subscribeFromStart,
} from './subscription.js'
import { hasCode } from './chat-errors.js'
import { type AnyRun, type Caller, findTurn, type LiveRuns } from './live-runs.js'
import { toTurn } from './chat-turn.js'

export interface ContinuedRunsParts {
  agent: ChatAgent
  clock: ChatInternals['clock']
  sessions: ChatSessions
  liveRuns: LiveRuns
  tasks: SessionQueue
}

/** The runs of sessions that go on: resumed here, or followed where another process has them. */
export class ContinuedRuns {
  readonly #agent: ChatAgent
  readonly #clock: ChatInternals['clock']
  readonly #sessions: ChatSessions
  readonly #liveRuns: LiveRuns
  readonly #tasks: SessionQueue

  constructor({ agent, clock, sessions, liveRuns, tasks }: ContinuedRunsParts) {
    this.#agent = agent
    this.#clock = clock
    this.#sessions = sessions
    this.#liveRuns = liveRuns
    this.#tasks = tasks
  }

  /** Whether a run rests, and has answers that no process has read. */
  async isAnswered(sessionId: string, { context }: StoredContext): Promise<boolean> {
    return !isWorking(context.state) && this.#sessions.hasUnreadAnswer(sessionId, context)
  }

  async resumeWith(
    sessionId: string,
    caller: Caller,
    { clientId }: Pick<IncomingMessage, 'clientId'>,
    apply: (run: AnyRun) => void,
  ): Promise<Subscription> {
    const run = await this.#sessions.resumeWhenReleased(sessionId, caller)
    const turn = run.state === 'WAITING_FOR_INPUT' ? null : findTurn(run)
    apply(run)
    const live = this.#liveRuns.follow(run, turn, caller, clientId)
    this.#liveRuns.removeAtRest(live)
    return turn === null ? subscribeFromStart(live) : subscribeFromNow(live, { isContinued: true })
  }

  /** Resumes a run that was at work; follows it when another process holds it or another agent started it. */
  async resumeOrFollow(sessionId: string, caller: Caller): Promise<Subscription> {
    try {
      return await this.#resumeInterrupted(sessionId, caller)
    } catch (error) {
      const isStranded = hasCode(error, 'stranded')
      const stored =
        isStranded || hasCode(error, 'session_busy') ? await this.#sessions.readStored(sessionId) : null
      if (stored === null) throw error
      const isAnswered = !isStranded && (await this.isAnswered(sessionId, stored))
      return isWorking(stored.context.state) || isAnswered
        ? this.followRemote(sessionId, stored, isStranded ? null : caller, { isAnswered })
        : createFinishedSubscription(toTurn(stored.context))
    }
  }

  /** `caller`: resumes the run when no process holds it any more; null: the run is only watched. */
  followRemote(
    sessionId: string,
    stored: StoredContext,
    caller: Caller | null,
    { showsTurn = true, isAnswered = false } = {},
  ): Subscription {
    const resumeHere = (by: Caller): Promise<void> =>
      this.#tasks.run(sessionId, async () => {
        if (this.#liveRuns.get(sessionId) || (await this.#sessions.isHeld(sessionId))) return
        const stored = await this.#sessions.readStored(sessionId)
        if (stored && (isWorking(stored.context.state) || (await this.isAnswered(sessionId, stored))))
          await this.#resumeInterrupted(sessionId, by)
      })
    return followRemoteRun(stored, {
      showsTurn,
      isAnswered,
      clock: this.#clock,
      watch: (options) => this.#agent.watch(sessionId, options),
      ...(caller && { resumeHere: () => resumeHere(caller) }),
    })
  }

  /** Resumes a run that was at work when its process ended, or whose answers no process has read. */
  async #resumeInterrupted(sessionId: string, caller: Caller): Promise<Subscription> {
    const stored = await this.#sessions.readStored(sessionId)
    const isAnswered = stored !== null && (await this.isAnswered(sessionId, stored))
    const run = await this.#sessions.resumeWhenReleased(sessionId, caller)
    const turn = findTurn(run)
    if (turn && !isWorking(turn.state) && !isAnswered) return createFinishedSubscription(turn)
    const live = this.#liveRuns.follow(run, turn, caller, turn?.clientId)
    this.#liveRuns.removeAtRest(live)
    return subscribeFromStart(live)
  }
}
