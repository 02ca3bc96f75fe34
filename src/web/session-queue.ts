/** Runs the tasks of one session one after the other, so that each sees the effect of the one before. */
export class SessionQueue {
  /** The last task of each session. */
  readonly #last = new Map<string, Promise<unknown>>()

  /** Runs a task when those before it have settled. Resolves or rejects as the task does. */
  async run<Value>(sessionId: string, task: () => Promise<Value>): Promise<Value> {
    const current = (this.#last.get(sessionId) ?? Promise.resolve()).then(task, task)
    this.#last.set(sessionId, current)
    try {
      return await current
    } finally {
      if (this.#last.get(sessionId) === current) this.#last.delete(sessionId)
    }
  }
}
