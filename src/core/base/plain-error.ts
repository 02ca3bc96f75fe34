import type { ModelActorError } from '../../../machines/agent/response.js'

/**
 * Whatever an actor rejected with, as plain data that the machine understands. The request actor rejects with plain
 * failures already; this is for everything else.
 */
export function plainError(error: unknown): ModelActorError {
  if (isPlainFailure(error)) return error
  return {
    kind: 'fatal',
    code: 'internal',
    message: describe(error),
    status: null,
    retryAfterMs: null,
    partialText: '',
    usage: null,
    jitter: 1,
  }
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

/** A sentence about anything that can be thrown. */
export function describe(error: unknown): string {
  try {
    if (error instanceof Error) return error.message || error.name
    return typeof error === 'string' ? error : (JSON.stringify(error) ?? String(error))
  } catch {
    return 'An error that cannot be described was thrown.'
  }
}
