import { isWorkState } from '../../machines/agent/run-result.js'
import type { AgentContext } from '../../machines/agent/context.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { WatchedEvent, WatchOptions } from '../core/run/watch-session.js'
import type { Clock } from '../core/base/clock.js'
import type { Joined } from './joined.js'
import { RunFeed } from './run-feed.js'
import { turnOf } from './turn.js'

/** How often it is asked whether anybody still has the session, in milliseconds. */
const askMs = 5000

/** A session after a record of its log. */
export interface Stood {
  seq: number
  context: AgentContext
}

export interface Elsewhere {
  watch: (options: WatchOptions) => AsyncIterable<WatchedEvent>
  clock: Clock
  /**
   * Continues a run here that no process holds any more; called again and again while it is looked at. Absent: the run
   * waits until a request that may continue it, a driver or a host does.
   */
  takeUp?: () => Promise<void>
}

/**
 * An answer that another process gives, or another agent: what its log says so far, and what it comes to say up to the next
 * rest. Where `takeUp` is given, a run whose process has died goes on before the same page.
 */
export function joinedElsewhere({ seq, context }: Stood, { watch, clock, takeUp }: Elsewhere): Joined {
  const feed = new RunFeed()
  const left = new AbortController()
  let timer: unknown
  const ask = (): void => {
    if (!takeUp) return
    timer = clock.setTimeout(() => {
      // What has failed is tried again, and what keeps failing is told by whoever asks for more than to look.
      void takeUp()
        .catch(() => undefined)
        .finally(() => {
          if (!left.signal.aborted) ask()
        })
    }, askMs)
  }
  const leave = (): void => {
    left.abort()
    clock.clearTimeout(timer as never)
  }
  ask()
  void hear(watch({ after: seq, signal: left.signal }), feed).finally(leave)
  const turn = turnOf(context)
  return { before: turn.before, turn, showsTurn: true, answered: new Set(), reader: feed.read(), leave }
}

async function hear(events: AsyncIterable<WatchedEvent>, feed: RunFeed): Promise<void> {
  let rest: number | null = null
  try {
    for await (const event of events) {
      // A run that goes on at once may have been read together with its rest.
      if (rest !== null && event.record > rest) break
      feed.push(event as AgentEvent)
      if (event.type === 'state_changed') rest = isWorkState(event.to) ? null : event.record
    }
    feed.end()
  } catch (error) {
    feed.fail(error)
  }
}
