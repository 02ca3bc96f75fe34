/**
 * SIGTERM: the process is to end. Whoever has work that can go on elsewhere heeds it, and leaves it there; where nobody does, it
 * interrupts as Ctrl-C does.
 */
export class Ending {
  #leave: (() => void) | undefined
  #hasBegun = false

  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** Returns what gives it back. */
  heed(leave: () => void): () => void {
    this.#leave = leave
    return () => {
      if (this.#leave === leave) this.#leave = undefined
    }
  }

  /** False: nobody heeds it. */
  begin(): boolean {
    if (this.#leave === undefined) return false
    this.#hasBegun = true
    this.#leave()
    return true
  }
}
