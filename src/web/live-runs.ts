import type { AgentEvent } from '../../machines/agent/announcements.js'
import { isWorkState, isActiveState, isFinalState } from '../../machines/agent/run-result.js'
import type { WatchedEvent, WatchOptions } from '../core/run/watch-session.js'
import type { ChatSessions, StoredContext } from './chat-sessions.js'
import { type Turn, toTurn } from './chat-turn.js'
import { hasCode } from './error-response.js'
import { EventFailures } from './exposure.js'
import {
  type AnyRun,
  type Caller,
  createFinishedSubscription,
  findTurn,
  type LiveRun,
  subscribeFromNow,
  subscribeFromStart,
  subscribeToTurn,
  type Subscription,
} from './subscription.js'
import { ReplayBuffer } from './replay-buffer.js'

/** How often a watching page checks whether a process still holds the session, in milliseconds. */
const pollMs = 5000

/** The active runs in this process, by session. Runs in other processes are followed through the log. */
export class LiveRuns {
  readonly #sessions: ChatSessions
  readonly #runs = new Map<string, LiveRun>()
  #onEnd: (live: LiveRun) => void = ignore

  constructor(sessions: ChatSessions) {
    this.#sessions = sessions
  }

  onEnd(listener: (live: LiveRun) => void): void {
    this.#onEnd = listener
  }

  get(sessionId: string): LiveRun | undefined {
    return this.#runs.get(sessionId)
  }

  /** Starts buffering the events of a new run. Must be called before the run starts working. */
  start(run: AnyRun, caller: Caller, clientId: string | undefined): LiveRun {
    return this.removeAtRest(this.follow(run, null, caller, clientId))
  }

  /** Starts buffering the events of a run. The caller then lets the run work and calls `removeAtRest`. */
  follow(run: AnyRun, turn: Turn | null, caller: Caller, clientId?: string): LiveRun {
    const buffer = new ReplayBuffer()
    const failures = new EventFailures()
    const clientIds = new Set(clientId === undefined ? [] : [clientId])
    const live: LiveRun = { run, buffer, turn, clientIds, caller, hasWorked: false, closing: undefined }
    this.#runs.set(run.sessionId, live)
    let hasStarted = turn !== null
    run.events$.subscribe({
      next: (event) => {
        hasStarted ||= event.type === 'state_changed'
        if (event.type === 'state_changed' && isWorkState(event.to) && !live.hasWorked) {
          live.hasWorked = true
          run.started.then(() => caller.hooks.start(run), ignore)
        }
        const failure = failures.findFailure(event)
        // If a run is refused before it starts, the request that started it is rejected.
        if (failure && hasStarted && !buffer.isOver) caller.report(failure, run)
        buffer.push(event)
      },
      // The call that started the run rejects with this error.
      error: () => buffer.end(),
    })
    return live
  }

  /** Removes the run at its next rest. Calls its hooks unless the run only recorded an answer and is still waiting. */
  removeAtRest(live: LiveRun): LiveRun {
    const { run, buffer } = live
    const end = (): void => {
      buffer.end()
      if (this.#runs.get(run.sessionId) === live) this.#runs.delete(run.sessionId)
    }
    const rest = ({ resumable }: { resumable: boolean }): void => {
      end()
      if (!resumable) this.#onEnd(live)
    }
    run.result.then(rest, end)
    // The process that ended the run has already called its hooks.
    if (live.turn !== null && isFinalState(live.turn.state)) return live
    live.closing = run.result.then(
      (result) => (live.hasWorked || !result.resumable ? live.caller.hooks.settle(run, result) : undefined),
      ignore,
    )
    return live
  }

  /** Resumes a resting run here, and applies a message or answers. `isNewTurn` means that they start a turn. */
  async resumeWith(
    sessionId: string,
    caller: Caller,
    apply: (run: AnyRun) => void,
    { clientId, isNewTurn = false }: { clientId?: string | undefined; isNewTurn?: boolean } = {},
  ): Promise<Subscription> {
    const run = await this.#sessions.resumeWhenReleased(sessionId, caller)
    const live = this.follow(run, isNewTurn ? null : findTurn(run), caller, clientId)
    try {
      apply(run)
    } finally {
      this.removeAtRest(live)
    }
    return isNewTurn ? subscribeFromStart(live) : subscribeFromNow(live, { isContinued: true })
  }

  /** Resumes an interrupted run. Follows the run if another process holds it or another agent started it. */
  async resumeOrFollow(sessionId: string, caller: Caller): Promise<Subscription> {
    try {
      return await this.#resumeInterrupted(sessionId, caller)
    } catch (error) {
      const isStranded = hasCode(error, 'stranded')
      const isTaken = isStranded || hasCode(error, 'session_busy')
      const stored = isTaken ? await this.#sessions.readStored(sessionId) : null
      if (stored === null) throw error
      const isAnswered = !isStranded && (await this.#sessions.hasUnreadAnswer(sessionId, stored.context))
      return isActiveState(stored.context.state) || isAnswered
        ? this.followRemote(sessionId, stored, isStranded ? null : caller, { isAnswered })
        : createFinishedSubscription(toTurn(stored.context))
    }
  }

  /** Reads the log. `caller` resumes the run once no process holds it; `isAnswered`: answers are unread. */
  followRemote(
    sessionId: string,
    { seq, context }: StoredContext,
    caller: Caller | null,
    { showsTurn = true, isAnswered = false } = {},
  ): Subscription {
    const { agent, internals } = this.#sessions
    const { clock } = internals
    const buffer = new ReplayBuffer()
    const abort = new AbortController()
    let timer: unknown
    const scheduleResume = (resumer: Caller): void => {
      timer = clock.setTimeout(() => {
        // A failed attempt is repeated. The next request that must resume the run will report the error.
        void this.#resumeAbandoned(sessionId, resumer)
          .catch(ignore)
          .finally(() => {
            if (!abort.signal.aborted) scheduleResume(resumer)
          })
      }, pollMs)
    }
    const unsubscribe = (): void => {
      abort.abort()
      clock.clearTimeout(timer as never)
    }
    if (caller) scheduleResume(caller)
    const watch = (options: WatchOptions) => agent.watch(sessionId, options)
    const options = { after: seq, signal: abort.signal }
    const events = isAnswered ? watchFromNextRecord(watch, options) : watch(options)
    void copyEvents(events, buffer).finally(unsubscribe)
    return { ...subscribeToTurn(toTurn(context), buffer, showsTurn), unsubscribe }
  }

  #resumeAbandoned(sessionId: string, caller: Caller): Promise<void> {
    return this.#sessions.runTask(sessionId, async () => {
      if (this.get(sessionId) || (await this.#sessions.isHeld(sessionId))) return
      const context = await this.#sessions.readContext(sessionId)
      if (context === null) return
      if (isActiveState(context.state) || (await this.#sessions.hasUnreadAnswer(sessionId, context)))
        await this.#resumeInterrupted(sessionId, caller)
    })
  }

  /** Resumes a run whose process died while it was active, or whose answers no process has read. */
  async #resumeInterrupted(sessionId: string, caller: Caller): Promise<Subscription> {
    const context = await this.#sessions.readContext(sessionId)
    const isAnswered = context !== null && (await this.#sessions.hasUnreadAnswer(sessionId, context))
    const run = await this.#sessions.resumeWhenReleased(sessionId, caller)
    const turn = findTurn(run)
    if (turn && !isActiveState(turn.state) && !isAnswered) return createFinishedSubscription(turn)
    return subscribeFromStart(this.removeAtRest(this.follow(run, turn, caller, turn?.clientId)))
  }
}

/** Like `watch`, but starts when the log grows. */
async function* watchFromNextRecord(
  watch: (options: WatchOptions) => AsyncIterable<WatchedEvent>,
  options: WatchOptions,
): AsyncGenerator<WatchedEvent> {
  for await (const _ of watch({ ...options, until: 'never' })) break
  yield* watch(options)
}

async function copyEvents(events: AsyncIterable<WatchedEvent>, buffer: ReplayBuffer): Promise<void> {
  let restRecord: number | null = null
  try {
    for await (const event of events) {
      // Events that were recorded after a rest may arrive together with the rest.
      if (restRecord !== null && event.record > restRecord) break
      buffer.push(event as AgentEvent)
      if (event.type === 'state_changed') restRecord = isWorkState(event.to) ? null : event.record
    }
    buffer.end()
  } catch (error) {
    buffer.fail(error)
  }
}

const ignore = (): void => undefined
