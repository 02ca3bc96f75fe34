/** A store may be synchronous. */
export type MaybePromise<Value> = Value | Promise<Value>

export type Synchronous<Part> = { [Key in keyof Part]: SynchronousMethod<Part[Key]> }

type SynchronousMethod<Method> = Method extends (...args: infer Args) => infer Result
  ? (...args: Args) => Awaited<Result>
  : Method

/** Continues with a value, at once unless it is a promise. */
export function chain<Value, Next>(
  value: MaybePromise<Value>,
  work: (value: Value) => MaybePromise<Next>,
): MaybePromise<Next> {
  return value instanceof Promise ? value.then(work) : work(value)
}

/** Runs work with the same key one after the other, even if some of it fails. `last` has the latest work of each key. */
export function runInTurn<Key, Value>(
  last: {
    get(key: Key): Promise<unknown> | undefined
    set(key: Key, work: Promise<unknown>): unknown
    delete(key: Key): unknown
  },
  key: Key,
  work: () => Promise<Value>,
): Promise<Value> {
  const before = last.get(key)
  const current = before ? before.then(work, work) : work()
  last.set(key, current)
  const forget = (): void => {
    if (last.get(key) === current) last.delete(key)
  }
  current.then(forget, forget)
  return current
}

/** Handles the result or the error of some work, at once unless the work returns a promise. */
export function attempt<Value, Next>(
  work: () => MaybePromise<Value>,
  settled: (value: Value) => MaybePromise<Next>,
  failed: (error: unknown) => MaybePromise<Next>,
): MaybePromise<Next> {
  let value: MaybePromise<Value>
  try {
    value = work()
  } catch (error) {
    return failed(error)
  }
  return value instanceof Promise ? value.then(settled, failed) : settled(value)
}

/** The value, or `fallback` if reading it throws. */
export function valueOr<Value, Fallback>(read: () => Value, fallback: Fallback): Value | Fallback {
  try {
    return read()
  } catch {
    return fallback
  }
}
