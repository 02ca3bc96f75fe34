import { whenAborted } from '../core/base/abort.js'

/**
 * Ctrl-C for a run that a page shows, too: it cancels the run while it works. At a rest it ends the command, and leaves
 * the session as it is, to be gone on with.
 */
export class RunInterrupts {
  readonly #abort = new AbortController()
  readonly #interrupt: AbortSignal
  #unfollow: () => void = () => undefined

  constructor(interrupt: AbortSignal) {
    this.#interrupt = interrupt
    this.enable()
  }

  /** For the run. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** The run works. */
  enable(): void {
    this.#unfollow()
    this.#unfollow = whenAborted(this.#interrupt, (why) => {
      this.#abort.abort(new Error(why))
    })
  }

  /** The run rests. */
  disable(): void {
    this.#unfollow()
  }
}
