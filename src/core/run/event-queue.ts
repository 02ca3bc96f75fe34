interface PendingRead<Value> {
  resolve(result: IteratorResult<Value, undefined> | Promise<IteratorResult<Value, undefined>>): void
}

/**
 * What an iterator gives: values as they come, however many ask at once and whenever. After its end it gives what has
 * come until then; after `return()` nothing more.
 */
export class EventQueue<Value> implements AsyncIterator<Value, undefined> {
  readonly #values: Value[] = []
  /** Who asked before there was anything. */
  readonly #reads: PendingRead<Value>[] = []
  readonly #onEnd: () => void
  #isOver = false
  #failure: { error: unknown } | null = null

  /** `onEnd` is called once, when nothing is taken any more. */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd
  }

  push(value: Value): void {
    if (this.#isOver) return
    const first = this.#reads.shift()
    if (first) first.resolve({ done: false, value })
    else this.#values.push(value)
  }

  /** Nothing comes any more; `failure` is thrown once, after what has come. */
  end(failure: { error: unknown } | null = null): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#failure = failure
    this.#onEnd()
    for (const asking of this.#reads.splice(0)) asking.resolve(this.#endResult())
  }

  next(): Promise<IteratorResult<Value, undefined>> {
    if (this.#values.length > 0) return Promise.resolve({ done: false, value: this.#values.shift() as Value })
    if (this.#isOver) return this.#endResult()
    const answer = new Promise<IteratorResult<Value, undefined>>((resolve) => {
      this.#reads.push({ resolve })
    })
    return ignoreRejection(answer)
  }

  return(): Promise<IteratorResult<Value, undefined>> {
    this.#values.length = 0
    this.end()
    this.#failure = null
    return this.#endResult()
  }

  #endResult(): Promise<IteratorResult<Value, undefined>> {
    const failure = this.#failure
    this.#failure = null
    return failure
      ? ignoreRejection(Promise.reject(failure.error))
      : Promise.resolve({ done: true, value: undefined })
  }
}

/** The reader may be gone: a rejection stays handled. */
function ignoreRejection<Answer>(answer: Promise<Answer>): Promise<Answer> {
  answer.catch(() => undefined)
  return answer
}
