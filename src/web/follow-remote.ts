import type { SessionBranches } from '../core/sessions/replay-session.js'
import { isWorkState } from '../../machines/agent/run-result.js'
import type { AgentContext } from '../../machines/agent/context.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { WatchedEvent, WatchOptions } from '../core/run/watch-session.js'
import type { Clock } from '../core/base/clock.js'
import type { Subscription } from './subscription.js'
import { ReplayBuffer } from './replay-buffer.js'
import { toTurn } from './chat-turn.js'

/** How often the store is asked whether a process still holds the session, in milliseconds. */
const pollMs = 5000

/** The context of a session after a record of its log. */
export interface StoredContext {
  /** Absent: the session has one branch. */
  branches?: SessionBranches | undefined
  seq: number
  context: AgentContext
}

export interface RemoteRunOptions {
  watch: (options: WatchOptions) => AsyncIterable<WatchedEvent>
  clock: Clock
  /** Whether the page must be sent the turn as it was stored, too. */
  showsTurn: boolean
  /** Whether the run rests but has unread answers. Following continues over this rest. */
  isAnswered?: boolean
  /**
   * Resumes the run here when no process holds it any more; called again and again while a page is subscribed. Absent: the
   * run waits for a request with `mayContinue`, `runSession` or a host.
   */
  resumeHere?: () => Promise<void>
}

/**
 * Subscribes to a run of another process or another agent: what its log has so far, then its events up to the next rest.
 * With `resumeHere`, a run whose process has died goes on in this process.
 */
export function followRemoteRun(
  { seq, context }: StoredContext,
  { watch, clock, showsTurn, isAnswered = false, resumeHere }: RemoteRunOptions,
): Subscription {
  const buffer = new ReplayBuffer()
  const abort = new AbortController()
  let timer: unknown
  const scheduleResume = (): void => {
    if (!resumeHere) return
    timer = clock.setTimeout(() => {
      // A failed attempt is repeated; the next request that must resume the run reports the error.
      void resumeHere()
        .catch(() => undefined)
        .finally(() => {
          if (!abort.signal.aborted) scheduleResume()
        })
    }, pollMs)
  }
  const unsubscribe = (): void => {
    abort.abort()
    clock.clearTimeout(timer as never)
  }
  scheduleResume()
  const options = { after: seq, signal: abort.signal }
  const events = isAnswered ? watchFromNextRecord(watch, options) : watch(options)
  void copyEvents(events, buffer).finally(unsubscribe)
  const turn = toTurn(context)
  return {
    before: turn.before,
    ends: turn.ends,
    turn,
    showsTurn,
    answeredQuestions: new Set(),
    reader: buffer.createReader(),
    unsubscribe,
  }
}

/** As `watch`, from the moment at which the log grows. */
async function* watchFromNextRecord(
  watch: RemoteRunOptions['watch'],
  options: WatchOptions,
): AsyncGenerator<WatchedEvent> {
  for await (const _ of watch({ ...options, until: 'never' })) break
  yield* watch(options)
}

async function copyEvents(events: AsyncIterable<WatchedEvent>, buffer: ReplayBuffer): Promise<void> {
  let restRecord: number | null = null
  try {
    for await (const event of events) {
      // A rest and the events that follow it may arrive together.
      if (restRecord !== null && event.record > restRecord) break
      buffer.push(event as AgentEvent)
      if (event.type === 'state_changed') restRecord = isWorkState(event.to) ? null : event.record
    }
    buffer.end()
  } catch (error) {
    buffer.fail(error)
  }
}
