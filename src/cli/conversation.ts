import { setImmediate as nextTurn } from 'node:timers/promises'
import { firstValueFrom } from 'rxjs/internal/firstValueFrom'
import { filter } from 'rxjs/internal/operators/filter'
import type { AgentContext } from '../../machines/agent/context.js'
import { isRestState, type RunResult } from '../../machines/agent/outcome.js'
import { resultOf, standingOf } from '../../machines/agent/result-of.js'
import type { Run } from '../core/run/run.js'

/** Something that a person says to a run that rests. */
export type Answer = (run: Run) => void

/** How often it is looked at whether somebody else has answered, in milliseconds. */
const lookMs = 50

/** A run, from rest to rest. The result of an interactive one comes only at its end; its states tell of the rests before. */
export class Conversation {
  readonly run: Run
  readonly #isInteractive: boolean
  readonly #left: Promise<never>

  /** `left` rejects when the run is left to another process: then there is no next rest here. */
  constructor(run: Run, isInteractive: boolean, left: Promise<never> = new Promise<never>(() => undefined)) {
    this.run = run
    this.#isInteractive = isInteractive
    this.#left = left
  }

  /** The rest that comes next, or at which the run is. */
  rest(): Promise<RunResult> {
    const rests = this.#isInteractive ? [this.run.result, this.#waiting()] : [this.run.result]
    return Promise.race([...rests, this.#left])
  }

  /**
   * Resolves when somebody else has said something to it: at a rest it changes for nothing else. `hasMoved` tells at once,
   * `stop` ends the wait.
   */
  moved(): { moved: Promise<true>; hasMoved: () => boolean; stop: () => void } {
    const before = this.#standing()
    const hasMoved = (): boolean => this.#standing() !== before
    let timer: ReturnType<typeof setInterval> | undefined
    const moved = new Promise<true>((resolve) => {
      // No event tells of an answer to one call of several.
      timer = setInterval(() => {
        if (!hasMoved()) return
        clearInterval(timer)
        resolve(true)
      }, lookMs)
    })
    return {
      moved,
      hasMoved,
      stop: () => {
        clearInterval(timer)
      },
    }
  }

  async say(answer: Answer): Promise<RunResult> {
    const before = this.#isInteractive ? this.#standing() : ''
    answer(this.run)
    if (this.#isInteractive) {
      // An answer may have to wait until the session is ours again; no event tells that it was taken.
      // oxlint-disable-next-line no-await-in-loop -- one turn of the event loop after the other
      while (this.#standing() === before) await Promise.race([nextTurn(), this.#left])
    }
    return this.rest()
  }

  async #waiting(): Promise<RunResult> {
    await firstValueFrom(this.run.state$.pipe(filter(isRestState)), { defaultValue: null })
    // The state is told in the middle of a transition.
    await nextTurn()
    return isRestState(this.run.state) ? resultOf(this.#context()) : this.run.result
  }

  #standing(): string {
    const context = this.#context()
    const { state, pending = [] } = standingOf(context)
    return [
      state,
      context.messages.length,
      context.steering.length,
      ...pending.map(({ callId }) => callId),
    ].join(' ')
  }

  #context(): AgentContext {
    return (this.run.snapshot() as { context: AgentContext }).context
  }
}
