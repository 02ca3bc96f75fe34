import { whenAborted } from '../core/base/abort.js'

/**
 * Ctrl-C for a run with `--studio`. For all others, and for the second Ctrl-C, see main.ts. While the run works, it cancels the run. At a rest it ends the command, and
 * the session can be resumed.
 */
export class RunInterrupts {
  readonly #abort = new AbortController()
  readonly #interrupt: AbortSignal
  #unfollow: () => void = () => undefined

  constructor(interrupt: AbortSignal) {
    this.#interrupt = interrupt
    this.enable()
  }

  /** The run's signal. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** The run works: Ctrl-C cancels it. */
  enable(): void {
    this.#unfollow()
    this.#unfollow = whenAborted(this.#interrupt, (why) => {
      this.#abort.abort(new Error(why))
    })
  }

  /** The run rests: Ctrl-C does not cancel it. */
  disable(): void {
    this.#unfollow()
  }
}
