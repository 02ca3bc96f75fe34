import { onceAborted } from '../core/base/abort.js'

/**
 * Ctrl-C for a run that a page shows, too: it cancels the run while it works. At a rest it ends the command, and leaves
 * the session as it is, to be gone on with.
 */
export class Interrupts {
  readonly #left = new AbortController()
  readonly #pressed: AbortSignal
  #unfollow: () => void = () => undefined

  constructor(pressed: AbortSignal) {
    this.#pressed = pressed
    this.heed()
  }

  /** For the run. */
  get signal(): AbortSignal {
    return this.#left.signal
  }

  /** The run works. */
  heed(): void {
    this.#unfollow()
    this.#unfollow = onceAborted(this.#pressed, (why) => {
      this.#left.abort(new Error(why))
    })
  }

  /** The run rests. */
  ignore(): void {
    this.#unfollow()
  }
}
