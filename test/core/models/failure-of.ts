import { ModelError } from '../../../src/core/models/provider.js'

/** The `ModelError` of a failed request. Throws on success or on any other error. */
export async function failureOf(work: Promise<unknown>) {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof ModelError) return error.failure
  throw new Error('no ModelError', { cause: error })
}
