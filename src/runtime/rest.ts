/** The promise of the next rest: renewed whenever the run goes on. */
export class Rest<Result> {
  #settle = (_result: Result): void => undefined
  #reject = (_error: unknown): void => undefined
  #reached = false
  #turn = 0
  #promise = this.#renew()
  #listeners: (() => void)[] = []

  get promise(): Promise<Result> {
    return this.#promise
  }

  get isReached(): boolean {
    return this.#reached
  }

  /** A result takes its time: it may be told while `isLatest` says that the run has neither gone on nor rested anew. */
  approach(): { isLatest: () => boolean } {
    const turn = (this.#turn += 1)
    return { isLatest: () => turn === this.#turn }
  }

  reach(result: Result): void {
    // A rest can be reached again without being left: one of several approvals was answered.
    if (this.#reached) this.#promise = Promise.resolve(result)
    this.#reached = true
    this.#settle(result)
    for (const listener of this.#listeners) listener()
  }

  leave(): void {
    this.#turn += 1
    if (!this.#reached) return
    this.#reached = false
    this.#promise = this.#renew()
  }

  refuse(error: unknown): void {
    this.#reached = true
    this.#reject(error)
  }

  /** Calls back whenever a rest is reached. */
  onReach(listener: () => void): () => void {
    this.#listeners.push(listener)
    return () => {
      this.#listeners = this.#listeners.filter((one) => one !== listener)
    }
  }

  #renew(): Promise<Result> {
    const promise = new Promise<Result>((resolve, reject) => {
      this.#settle = resolve
      this.#reject = reject
    })
    // A refusal reaches whoever awaits the result; nobody has to.
    promise.catch(() => undefined)
    return promise
  }
}
