/** What was thrown, by the plain data that was made of it: in this process alone, and never in a log. */
const thrownByPlain = new WeakMap<object, { error: unknown }>()

export function rememberThrown<Plain extends object>(plain: Plain, error: unknown): Plain {
  thrownByPlain.set(plain, { error })
  return plain
}

/** Code and message of a failure; its `cause` is what was thrown, where it was thrown here. JSON leaves the cause out. */
export function attachCause<Failure extends { code: string; message: string }>(
  failure: Failure,
  plain: object,
): Failure & { cause?: unknown } {
  const kept = thrownByPlain.get(plain)
  if (kept) Object.defineProperty(failure, 'cause', { value: kept.error, enumerable: false })
  return failure
}

export function hasThrown(plain: object): boolean {
  return thrownByPlain.has(plain)
}
