/**
 * What ends one call, or one request, early. Its AbortSignal is made when somebody first asks for it: most never do, and making one
 * costs more than the rest of a call. Each has its own, so that many calls at once do not pile their listeners on
 * one signal (Node warns of more than ten).
 */
export class CallAbort {
  #controller: AbortController | undefined
  #aborted: { reason: unknown } | undefined
  /** Told before the signal's listeners. */
  onAbort: (() => void) | undefined

  get aborted(): boolean {
    return this.#aborted !== undefined
  }

  get reason(): unknown {
    return this.#aborted?.reason
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted) this.#controller.abort(this.#aborted.reason)
    }
    return this.#controller.signal
  }

  /** The first reason stays. */
  abort(reason: unknown): void {
    if (this.#aborted) return
    this.#aborted = { reason }
    this.onAbort?.()
    this.#controller?.abort(reason)
  }
}
