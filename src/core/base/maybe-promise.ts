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
