/**
 * SIGTERM: the process is to end. Whoever has work that can go on elsewhere heeds it, and leaves it there; where nobody does, it
 * interrupts as Ctrl-C does.
 */
export class SigtermHandler {
  #listener: (() => void) | undefined
  #hasBegun = false

  get hasArrived(): boolean {
    return this.#hasBegun
  }

  /** Returns what gives it back. */
  setListener(listener: () => void): () => void {
    this.#listener = listener
    return () => {
      if (this.#listener === listener) this.#listener = undefined
    }
  }

  /** False: nobody heeds it. */
  raise(): boolean {
    if (this.#listener === undefined) return false
    this.#hasBegun = true
    this.#listener()
    return true
  }
}
