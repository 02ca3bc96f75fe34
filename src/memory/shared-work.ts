import { runAbortable } from '../core/base/abort.js'

/**
 * Work that several wait for and that runs once at a time. It is stopped when the last of those who wait has given up,
 * so that no work goes on without a waiter.
 */
export class SharedWork {
  readonly #work: (signal: AbortSignal) => Promise<void>
  #running: { done: Promise<void>; controller: AbortController; waiting: number } | undefined

  constructor(work: (signal: AbortSignal) => Promise<void>) {
    this.#work = work
  }

  /** Waits for the work that is running, or starts it. Rejects with the signal's reason as soon as it aborts. */
  async join(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const running = (this.#running ??= this.#start())
    running.waiting += 1
    try {
      await runAbortable(signal, () => running.done)
    } finally {
      running.waiting -= 1
      if (running.waiting === 0 && this.#running === running) {
        this.#running = undefined
        running.controller.abort()
      }
    }
  }

  #start() {
    const controller = new AbortController()
    const done = this.#work(controller.signal)
    // A caller that has given up is not told of its failure.
    done.catch(() => {})
    return { done, controller, waiting: 0 }
  }
}
