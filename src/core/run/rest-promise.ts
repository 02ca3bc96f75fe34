import { isRestState, type RunResult } from '../../../machines/agent/run-result.js'
import { createStoreFailedEvent } from '../sessions/journal.js'

const noListeners: readonly (() => void)[] = []

/**
 * The promise of the next rest: renewed whenever the run continues. A result is made when it is read: a run that is
 * answered a thousand times in a row makes no thousand results.
 */
export class RestPromise<Result> {
  /** Settles the promise that was handed out. */
  #open: { resolve: (result: Result) => void; reject: (error: unknown) => void } | undefined
  #promise: Promise<Result> | undefined
  #make: (() => Result) | undefined
  #reached = false
  #version = 0
  #listeners: readonly (() => void)[] = noListeners

  get promise(): Promise<Result> {
    return (this.#promise ??= this.#make ? Promise.resolve(this.#make()) : this.#createPromise())
  }

  get isReached(): boolean {
    return this.#reached
  }

  /**
   * Reaches a rest whose result takes its time, unless the run has gone on, or rested anew, by then. `unkept` makes the
   * result of a rest that could not be kept; null when there is no such rest.
   */
  async reachLater(
    kept: Promise<void> | undefined,
    make: () => Result | Promise<Result>,
    unkept: (result: Result, error: unknown) => Result | null,
  ): Promise<void> {
    const turn = (this.#version += 1)
    const failure = await (kept ?? Promise.resolve()).then(
      () => null,
      (error: unknown) => ({ error }),
    )
    if (turn !== this.#version) return
    const made = await make()
    if (turn !== this.#version) return
    const result = failure === null ? made : unkept(made, failure.error)
    if (result !== null) this.reach(() => result)
  }

  /** A rest can be reached again without being left: one of several approvals was answered. */
  reach(make: () => Result): void {
    this.#make = make
    this.#reached = true
    if (this.#open) this.#open.resolve(make())
    else this.#promise = undefined
    this.#open = undefined
    for (const listener of this.#listeners) listener()
  }

  leave(): void {
    this.#version += 1
    if (!this.#reached) return
    this.#reached = false
    this.#make = undefined
    this.#promise = undefined
  }

  refuse(error: unknown): void {
    this.#reached = true
    void this.promise
    this.#open?.reject(error)
    this.#open = undefined
  }

  /** Calls back whenever a rest is reached. */
  onReach(listener: () => void): () => void {
    this.#listeners = this.#listeners.concat(listener)
    return () => {
      this.#listeners = this.#listeners.filter((one) => one !== listener)
    }
  }

  #createPromise(): Promise<Result> {
    const promise = new Promise<Result>((resolve, reject) => {
      this.#open = { resolve, reject }
    })
    // A refusal rejects the result; without a handler it is no unhandled rejection.
    promise.catch(() => undefined)
    return promise
  }
}

/** The result of an end that could not be written: it carries the store's error, because the answer is paid for. */
export function toUnsavedResult(result: RunResult, error: unknown): RunResult | null {
  if (isRestState(result.state)) return null
  return { error: { ...createStoreFailedEvent(error).failure, recoverable: true }, ...result } as RunResult
}
