/**
 * Handles SIGTERM. A run whose session is stored sets a listener and drains; without a listener, SIGTERM interrupts like
 * Ctrl-C.
 */
export class SigtermHandler {
  #listener: (() => void) | undefined
  #hasBegun = false

  get hasArrived(): boolean {
    return this.#hasBegun
  }

  /** Returns a function that removes the listener. */
  setListener(listener: () => void): () => void {
    this.#listener = listener
    return () => {
      if (this.#listener === listener) this.#listener = undefined
    }
  }

  /** False: there is no listener. */
  raise(): boolean {
    if (this.#listener === undefined) return false
    this.#hasBegun = true
    this.#listener()
    return true
  }
}
