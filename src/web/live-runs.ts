import type { Run } from '../core/run/run.js'
import { EventFailures, type Failure } from './failures.js'
import { RunFeed } from './run-feed.js'
import type { Turn } from './turn.js'

/** A run of any output and tools. */
export type AnyRun = Pick<
  Run,
  | 'id'
  | 'sessionId'
  | 'state'
  | 'events$'
  | 'started'
  | 'result'
  | 'approve'
  | 'reject'
  | 'addToolOutput'
  | 'reply'
  | 'resume'
  | 'steer'
  | 'cancel'
  | 'snapshot'
>

/** Who makes a run work. */
export interface Caller {
  /** What tools get. */
  context: unknown
  /** Told each failure of the run up to its next rest. Never throws. */
  report(failure: Failure, run: Pick<AnyRun, 'id' | 'sessionId'>): void
}

/** A run at work in this process. */
export interface LiveRun {
  run: AnyRun
  /** What it has told since this process took it up. */
  feed: RunFeed
  /** What there was before; null for a run that began here. */
  turn: Turn | null
  /** What the page calls the messages that it was given here. */
  clientIds: Set<string>
}

/** The runs at work in this process, by their sessions: whoever comes joins them. At its next rest a run is none of them. */
export class LiveRuns {
  readonly #runs = new Map<string, LiveRun>()

  get(sessionId: string): LiveRun | undefined {
    return this.#runs.get(sessionId)
  }

  /** Listens to a run that goes on. Whoever makes it go on calls `untilRest` then. */
  follow(run: AnyRun, turn: Turn | null, caller: Caller, clientId?: string): LiveRun {
    const feed = new RunFeed()
    const failures = new EventFailures()
    const live: LiveRun = { run, feed, turn, clientIds: new Set(clientId === undefined ? [] : [clientId]) }
    this.#runs.set(run.sessionId, live)
    let hasBegun = false
    run.events$.subscribe({
      next: (event) => {
        hasBegun ||= event.type === 'state_changed'
        const failure = failures.hear(event)
        // One that was refused before it began is told to whoever has asked for it.
        if (failure && hasBegun && !feed.isOver) caller.report(failure, run)
        feed.push(event)
      },
      // Whoever started the run is told why it was refused.
      error: () => {
        feed.end()
      },
    })
    return live
  }

  /** Lets go of a run when it rests. */
  untilRest(live: LiveRun): void {
    const { run, feed } = live
    const end = (): void => {
      feed.end()
      if (this.#runs.get(run.sessionId) === live) this.#runs.delete(run.sessionId)
    }
    run.result.then(end, end)
  }
}
