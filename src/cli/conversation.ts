import type { AgentContext } from '../../machines/agent/context.js'
import type { RunResult } from '../../machines/agent/run-result.js'
import { toCurrentResult } from '../../machines/agent/to-result.js'
import type { Run } from '../core/run/run.js'

/** Something that a person says to a run that rests. */
export type Answer = (run: Run) => void

/** How often it is looked at whether somebody else has answered, in milliseconds. */
const pollMs = 50

/** A run, from rest to rest. */
export class Conversation {
  readonly run: Run
  readonly #released: Promise<never>

  /** `left` rejects when the run is left to another process: then there is no next rest here. */
  constructor(run: Run, released: Promise<never> = new Promise<never>(() => undefined)) {
    this.run = run
    this.#released = released
  }

  /** The rest that comes next, or at which the run is. */
  waitForRest(): Promise<RunResult> {
    return Promise.race([this.run.result, this.#released])
  }

  /**
   * Resolves when somebody else has said something to it: at a rest it changes for nothing else. `hasMoved` tells at once,
   * `stop` ends the wait.
   */
  watchForChange(): { moved: Promise<true>; hasMoved: () => boolean; stop: () => void } {
    const before = this.#describeState()
    const hasMoved = (): boolean => this.#describeState() !== before
    let timer: ReturnType<typeof setInterval> | undefined
    const moved = new Promise<true>((resolve) => {
      // No event tells of an answer to one call of several.
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
