import type { AgentContext } from '../../machines/agent/context.js'
import type { RunResult } from '../../machines/agent/run-result.js'
import { toCurrentResult } from '../../machines/agent/to-result.js'
import type { Run } from '../core/run/run.js'

/** An answer of a user to a run at rest. */
export type Answer = (run: Run) => void

/** How often the run is checked for answers from elsewhere, in milliseconds. */
const pollMs = 50

/** Drives a run from rest to rest. */
export class Conversation {
  readonly run: Run
  readonly #released: Promise<never>

  /** `released` rejects when the run is released to another process: then there is no next rest here. */
  constructor(run: Run, released: Promise<never> = new Promise<never>(() => undefined)) {
    this.run = run
    this.#released = released
  }

  /** Waits for the next rest, or returns the current one. */
  waitForRest(): Promise<RunResult> {
    return Promise.race([this.run.result, this.#released])
  }

  /**
   * Resolves when the run got an answer from elsewhere: nothing else changes a run at rest. `hasMoved` checks at once, `stop`
   * ends the wait.
   */
  watchForChange(): { moved: Promise<true>; hasMoved: () => boolean; stop: () => void } {
    const before = this.#describeState()
    const hasMoved = (): boolean => this.#describeState() !== before
    let timer: ReturnType<typeof setInterval> | undefined
    const moved = new Promise<true>((resolve) => {
      // An answer to one of several calls emits no event.
      timer = setInterval(() => {
        if (!hasMoved()) return
        clearInterval(timer)
        resolve(true)
      }, pollMs)
    })
    return {
      moved,
      hasMoved,
      stop: () => {
        clearInterval(timer)
      },
    }
  }

  sendAnswer(answer: Answer): Promise<RunResult> {
    answer(this.run)
    return this.waitForRest()
  }

  #describeState(): string {
    const context = this.#getContext()
    const { state, pending = [] } = toCurrentResult(context)
    return [
      state,
      context.messages.length,
      context.steering.length,
      ...pending.map(({ callId }) => callId),
    ].join(' ')
  }

  #getContext(): AgentContext {
    return (this.run.snapshot() as { context: AgentContext }).context
  }
}
