import type { Run } from '../core/run/run.js'
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
  | 'toolOutput'
  | 'reply'
  | 'resume'
  | 'steer'
  | 'cancel'
  | 'snapshot'
>

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
  follow(run: AnyRun, turn: Turn | null, clientId?: string): LiveRun {
    const feed = new RunFeed()
    const live: LiveRun = { run, feed, turn, clientIds: new Set(clientId === undefined ? [] : [clientId]) }
    this.#runs.set(run.sessionId, live)
    run.events$.subscribe({
      next: (event) => {
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
