import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AgentContext } from '../../machines/agent/context.js'
import { isWorkState, isActiveState, isFinalState } from '../../machines/agent/run-result.js'
import type { WatchedEvent, WatchOptions } from '../core/run/watch-session.js'
import type { ChatSession, StoredContext } from './chat-sessions.js'
import { type Turn, toTurn } from './chat-turn.js'
import { hasCode } from './error-response.js'
import { createFailureFinder } from './exposure.js'
import {
  type AnyRun,
  type Caller,
  createFinishedSubscription,
  findTurn,
  type LiveRun,
  subscribeFromStart,
  subscribeToNew,
  subscribeToTurn,
  type Subscription,
} from './subscription.js'
import { createReplayBuffer, type ReplayBuffer } from './replay-buffer.js'

/** How often a watching page checks whether a process still holds the session, in milliseconds. */
const pollMs = 5000

interface FollowOptions {
  clientId?: string | undefined
  sender?: Caller
  apply?: (run: AnyRun) => void
}

export type LiveRuns = ReturnType<typeof createLiveRuns>

/** The run of a session, for one request. `onEnd` is called with each run that has ended here. */
export function createLiveRuns(session: ChatSession, onEnd: (live: LiveRun) => void) {
  const { host, sessionId, caller } = session
  const { agent, clock, runs } = host

  /**
   * Buffers the events of a run, before `apply` lets the run work. Removes the run at its next rest, and calls its hooks
   * unless the run only recorded an answer and is still waiting.
   */
  function follow(
    run: AnyRun,
    turn: Turn | null,
    { clientId, sender = caller, apply = ignore }: FollowOptions = {},
  ): LiveRun {
    const buffer = createReplayBuffer()
    const findFailure = createFailureFinder()
    const clientIds = new Set(clientId === undefined ? [] : [clientId])
    const live: LiveRun = { run, buffer, turn, clientIds, caller: sender, hasWorked: false }
    runs.set(sessionId, live)
    let hasStarted = turn !== null
    run.events$.subscribe({
      next: (event) => {
        hasStarted ||= event.type === 'state_changed'
        if (event.type === 'state_changed' && isWorkState(event.to) && !live.hasWorked) {
          live.hasWorked = true
          run.started.then(() => sender.hooks.start(run), ignore)
        }
        const failure = findFailure(event)
        // If a run is refused before it starts, the request that started it is rejected.
        if (failure && hasStarted && !buffer.isOver) sender.report(failure, run)
        buffer.push(event)
      },
      // The call that started the run rejects with this error.
      error: () => buffer.end(),
    })
    const end = (): void => {
      buffer.end()
      if (runs.get(sessionId) === live) runs.delete(sessionId)
    }
    const rest = ({ resumable }: { resumable: boolean }): void => {
      end()
      if (!resumable) onEnd(live)
    }
    try {
      apply(run)
    } finally {
      run.result.then(rest, end)
      // The process that ended an earlier run has already called its hooks.
      if (turn === null || !isFinalState(turn.state))
        live.closing = run.result.then(
          (result) => (live.hasWorked || !result.resumable ? sender.hooks.settle(run, result) : undefined),
          ignore,
        )
    }
    return live
  }

  /** Reads the log. `resumes`: this request resumes the run once no process holds it; `isAnswered`: answers are unread. */
  function followRemote(
    { seq, context }: StoredContext,
    { resumes = false, showsTurn = true, isAnswered = false } = {},
  ): Subscription {
    const buffer = createReplayBuffer()
    const abort = new AbortController()
    let timer: unknown
    const scheduleResume = (): void => {
      timer = clock.setTimeout(() => {
        // A failed attempt is repeated. The next request that must resume the run will report the error.
        void resumeAbandoned()
          .catch(ignore)
          .finally(() => {
            if (!abort.signal.aborted) scheduleResume()
          })
      }, pollMs)
    }
    const unsubscribe = (): void => {
      abort.abort()
      clock.clearTimeout(timer as never)
    }
    if (resumes) scheduleResume()
    const watch = (options: WatchOptions) => agent.watch(sessionId, options)
    const options = { after: seq, signal: abort.signal }
    const events = isAnswered ? watchFromNextRecord(watch, options) : watch(options)
    void copyEvents(events, buffer).finally(unsubscribe)
    return { ...subscribeToTurn(toTurn(context), buffer, showsTurn), unsubscribe }
  }

  const resumeAbandoned = (): Promise<void> =>
    session.runTask(async () => {
      if (runs.has(sessionId) || (await session.isHeld())) return
      const context = await session.readContext()
      if (context === null) return
      if (isActiveState(context.state) || (await session.hasUnreadAnswer(context))) await resumeInterrupted()
    })

  /** Resumes a run whose process died while it was active, or whose answers no process has read. */
  async function resumeInterrupted(): Promise<Subscription> {
    const context = await session.readContext()
    const isAnswered = context !== null && (await session.hasUnreadAnswer(context))
    const run = await session.resumeWhenReleased()
    const turn = findTurn(run)
    if (turn && !isActiveState(turn.state) && !isAnswered) return createFinishedSubscription(turn)
    return subscribeFromStart(follow(run, turn, { clientId: turn?.clientId }))
  }

  const getLive = (): LiveRun | undefined => runs.get(sessionId)

  /** Resumes an interrupted run. Follows the run if another process holds it or another agent started it. */
  async function resumeOrFollow(): Promise<Subscription> {
    try {
      return await resumeInterrupted()
    } catch (error) {
      const isStranded = hasCode(error, 'stranded')
      const isTaken = isStranded || hasCode(error, 'session_busy')
      const stored = isTaken ? await session.readStored() : null
      if (stored === null) throw error
      const isAnswered = !isStranded && (await session.hasUnreadAnswer(stored.context))
      return isActiveState(stored.context.state) || isAnswered
        ? followRemote(stored, { resumes: !isStranded, isAnswered })
        : createFinishedSubscription(toTurn(stored.context))
    }
  }

  return {
    follow,
    followRemote,
    getLive,
    resumeOrFollow,

    /** The answer of the session's latest turn. Continues a run that has been interrupted. */
    async showAnswer(context: AgentContext): Promise<Subscription> {
      const live = getLive()
      if (live) return subscribeFromStart(live)
      return isActiveState(context.state) ? resumeOrFollow() : createFinishedSubscription(toTurn(context))
    },

    /** Resumes a resting run here, and applies a message or answers. `isNewTurn` means that they start a turn. */
    async resumeWith(
      apply: (run: AnyRun) => void,
      { clientId, isNewTurn = false }: { clientId?: string | undefined; isNewTurn?: boolean } = {},
    ): Promise<Subscription> {
      const run = await session.resumeWhenReleased()
      const live = follow(run, isNewTurn ? null : findTurn(run), { clientId, apply })
      return subscribeToNew(live)
    },
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
