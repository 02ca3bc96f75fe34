import type { Run } from '../core/run/run.js'
import { EventFailures, type EventFailure } from './event-failures.js'
import { ReplayBuffer } from './replay-buffer.js'
import type { Turn } from './chat-turn.js'

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
  report(failure: EventFailure, run: Pick<AnyRun, 'id' | 'sessionId'>): void
}

/** A run at work in this process. */
export interface LiveRun {
  run: AnyRun
  /** What it has told since this process took it up. */
  buffer: ReplayBuffer
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
    const buffer = new ReplayBuffer()
    const failures = new EventFailures()
    const live: LiveRun = { run, buffer, turn, clientIds: new Set(clientId === undefined ? [] : [clientId]) }
    this.#runs.set(run.sessionId, live)
    let hasBegun = false
    run.events$.subscribe({
      next: (event) => {
        hasBegun ||= event.type === 'state_changed'
        const failure = failures.findFailure(event)
        // One that was refused before it began is told to whoever has asked for it.
        if (failure && hasBegun && !buffer.isOver) caller.report(failure, run)
        buffer.push(event)
      },
      // Whoever started the run is told why it was refused.
      error: () => {
        buffer.end()
      },
    })
    return live
  }

  /** Lets go of a run when it rests. */
  removeAtRest(live: LiveRun): void {
    const { run, buffer } = live
    const end = (): void => {
      buffer.end()
      if (this.#runs.get(run.sessionId) === live) this.#runs.delete(run.sessionId)
    }
    run.result.then(end, end)
  }
}
