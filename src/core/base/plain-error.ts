import { describeError } from './describe-error.js'
import { rememberThrown } from './thrown-errors.js'
import { type ModelActorError, createModelFailure } from '../../../machines/agent/model-response.js'

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
