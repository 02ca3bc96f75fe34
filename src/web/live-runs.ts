import type { AgentContext } from '../../machines/agent/context.js'
import { type AgentState, isRestState, isWorkState } from '../../machines/agent/run-result.js'
import type { Run } from '../core/run/run.js'
import type { BranchPoint } from '../core/sessions/branch-tree.js'
import type { SessionTags } from '../core/sessions/store/session-tags.js'
import { EventFailures, type EventFailure } from './event-failures.js'
import { ReplayBuffer } from './replay-buffer.js'
import type { RunHooks } from './run-hooks.js'
import { type Turn, toTurn } from './chat-turn.js'

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

/** The request that makes a run work. */
export interface Caller {
  /** What tools get. */
  context: unknown
  /** Of the session, when the request begins a run. */
  tags: SessionTags | undefined
  /** Called for each failure of the run up to its next rest. Never throws. */
  report(failure: EventFailure, run: { id: string | null; sessionId: string }): void
  hooks: RunHooks
  /** Whether it may continue what another request has begun. */
  mayContinue: boolean
}

/** A run at work in this process. */
export interface LiveRun {
  run: AnyRun
  /** Its events since this process started or resumed it. */
  buffer: ReplayBuffer
  /** The turn before those events; null for a run that began here. */
  turn: Turn | null
  /** The page's ids of the messages that the run got here. */
  clientIds: Set<string>
  caller: Caller
  /** Whether it has worked since this process started or resumed it. */
  hasWorked: boolean
  /** Where its answer parts from other branches. */
  point?: BranchPoint | undefined
  /** Settles when the hooks of its rest have. */
  closing: Promise<void> | undefined
}

/** The runs at work in this process, by session. A run is removed at its next rest. */
export class LiveRuns {
  readonly #runs = new Map<string, LiveRun>()
  #onEnd: (live: LiveRun) => void = ignore

  /** Told of each run that has ended here. */
  onEnd(listener: (live: LiveRun) => void): void {
    this.#onEnd = listener
  }

  get(sessionId: string): LiveRun | undefined {
    return this.#runs.get(sessionId)
  }

  /** Starts to buffer the events of a run. The caller then makes the run work and calls `removeAtRest`. */
  follow(run: AnyRun, turn: Turn | null, caller: Caller, clientId?: string): LiveRun {
    const buffer = new ReplayBuffer()
    const failures = new EventFailures()
    const clientIds = new Set(clientId === undefined ? [] : [clientId])
    const { hooks } = caller
    const live: LiveRun = { run, buffer, turn, clientIds, caller, hasWorked: false, closing: undefined }
    this.#runs.set(run.sessionId, live)
    let hasBegun = turn !== null
    run.events$.subscribe({
      next: (event) => {
        hasBegun ||= event.type === 'state_changed'
        if (event.type === 'state_changed' && isWorkState(event.to) && !live.hasWorked) {
          live.hasWorked = true
          run.started.then(() => hooks.start(run), ignore)
        }
        const failure = failures.findFailure(event)
        // A run that is refused before it begins rejects the request that started it.
        if (failure && hasBegun && !buffer.isOver) caller.report(failure, run)
        buffer.push(event)
      },
      // The call that started the run rejects with the reason.
      error: () => {
        buffer.end()
      },
    })
    return live
  }

  /** Removes the run when it rests, and calls its hooks; none for a run that has only kept an answer and still waits. */
  removeAtRest(live: LiveRun): LiveRun {
    const { run, buffer } = live
    const { hooks } = live.caller
    const end = (): void => {
      buffer.end()
      if (this.#runs.get(run.sessionId) === live) this.#runs.delete(run.sessionId)
    }
    const rest = ({ resumable }: { resumable: boolean }): void => {
      end()
      if (!resumable) this.#onEnd(live)
    }
    run.result.then(rest, end)
    // Its end was told by the process that came to it.
    if (live.turn !== null && hasEnded(live.turn.state)) return live
    live.closing = run.result.then((result) => {
      if (live.hasWorked || !result.resumable) return hooks.rest(run, result)
      return undefined
    }, ignore)
    return live
  }
}

const ignore = (): void => undefined

export const hasEnded = (state: AgentState): boolean => !isWorkState(state) && !isRestState(state)

export function findContext(run: Pick<AnyRun, 'snapshot'>): AgentContext | undefined {
  return (run.snapshot() as { context?: AgentContext } | undefined)?.context
}

export function findTurn(run: AnyRun): Turn | null {
  const context = findContext(run)
  return context ? toTurn(context) : null
}
