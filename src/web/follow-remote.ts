import { isWorkState } from '../../machines/agent/run-result.js'
import type { AgentContext } from '../../machines/agent/context.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { WatchedEvent, WatchOptions } from '../core/run/watch-session.js'
import type { Clock } from '../core/base/clock.js'
import type { Subscription } from './subscription.js'
import { ReplayBuffer } from './replay-buffer.js'
import { toTurn } from './chat-turn.js'

/** How often it is asked whether anybody still has the session, in milliseconds. */
const pollMs = 5000

/** A session after a record of its log. */
export interface StoredContext {
  seq: number
  context: AgentContext
}

export interface RemoteRunOptions {
  watch: (options: WatchOptions) => AsyncIterable<WatchedEvent>
  clock: Clock
  /**
   * Continues a run here that no process holds any more; called again and again while it is looked at. Absent: the run
   * waits until a request that may continue it, `runSession` or a host does.
   */
  resumeHere?: () => Promise<void>
}

/**
 * An answer that another process gives, or another agent: what its log says so far, and what it comes to say up to the next
 * rest. Where `takeUp` is given, a run whose process has died goes on before the same page.
 */
export function followRemoteRun(
  { seq, context }: StoredContext,
  { watch, clock, resumeHere }: RemoteRunOptions,
): Subscription {
  const buffer = new ReplayBuffer()
  const abort = new AbortController()
  let timer: unknown
  const scheduleResume = (): void => {
    if (!resumeHere) return
    timer = clock.setTimeout(() => {
      // What has failed is tried again, and what keeps failing is told by whoever asks for more than to look.
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
  void copyEvents(watch({ after: seq, signal: abort.signal }), buffer).finally(unsubscribe)
  const turn = toTurn(context)
  return {
    before: turn.before,
    turn,
    showsTurn: true,
    answeredQuestions: new Set(),
    reader: buffer.createReader(),
    unsubscribe,
  }
}

async function copyEvents(events: AsyncIterable<WatchedEvent>, buffer: ReplayBuffer): Promise<void> {
  let restRecord: number | null = null
  try {
    for await (const event of events) {
      // A run that goes on at once may have been read together with its rest.
      if (restRecord !== null && event.record > restRecord) break
      buffer.push(event as AgentEvent)
      if (event.type === 'state_changed') restRecord = isWorkState(event.to) ? null : event.record
    }
    buffer.end()
  } catch (error) {
    buffer.fail(error)
  }
}
