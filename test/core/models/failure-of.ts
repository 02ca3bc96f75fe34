import { ModelError } from '../../../src/core/models/provider.js'

/** Why a request has failed. Throws where it has not, or not with a `ModelError`. */
export async function failureOf(work: Promise<unknown>) {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof ModelError) return error.failure
  throw new Error('no ModelError', { cause: error })
}
