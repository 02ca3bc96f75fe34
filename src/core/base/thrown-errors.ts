import { type ModelActorError, createModelFailure } from '../../../machines/agent/model-response.js'
import { describeError } from './describe-error.js'

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

/**
 * Whatever an actor rejected with, as plain data that the machine understands. The request actor rejects with plain
 * failures already; this is for everything else.
 */
export function toPlainError(error: unknown): ModelActorError {
  if (isPlainFailure(error)) return error
  const failure = createModelFailure({ kind: 'fatal', code: 'internal', message: describeError(error) })
  return rememberThrown({ ...failure, usage: null, jitter: 1 }, error)
}

function isPlainFailure(error: unknown): error is ModelActorError {
  return (
    typeof error === 'object' &&
    error !== null &&
    !(error instanceof Error) &&
    'kind' in error &&
    'jitter' in error
  )
}
