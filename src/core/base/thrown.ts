/** What was thrown, by the plain data that was made of it: in this process alone, and never in a log. */
const thrown = new WeakMap<object, { error: unknown }>()

export function keepThrown<Plain extends object>(plain: Plain, error: unknown): Plain {
  thrown.set(plain, { error })
  return plain
}

/** Code and message of a failure; its `cause` is what was thrown, where it was thrown here. JSON leaves the cause out. */
export function failureWithCause<Failure extends { code: string; message: string }>(
  failure: Failure,
  plain: object,
): Failure & { cause?: unknown } {
  const kept = thrown.get(plain)
  if (kept) Object.defineProperty(failure, 'cause', { value: kept.error, enumerable: false })
  return failure
}

export function wasThrown(plain: object): boolean {
  return thrown.has(plain)
}
