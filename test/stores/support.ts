import { StoreError } from '../../src/core/sessions/store/store-error.js'
import type { SessionStore } from '../../src/core/sessions/store/store.js'

export {
  leaseRequest,
  record as createRecord,
  records as createRecords,
  summary as createSummary,
} from '../../src/testing/store/store-scene.js'

/** A place that stores sessions. Every `open` is a separate connection to it. */
export interface Place {
  open(now?: () => number): SessionStore
  remove(): void | Promise<void>
}

/** The error of a call, thrown or rejected. */
export async function failure(work: () => unknown): Promise<unknown> {
  try {
    await work()
  } catch (error) {
    return error
  }
  throw new Error('It did not fail.')
}

export async function refusal(code: StoreError['code'], work: () => unknown): Promise<StoreError> {
  const error = await failure(work)
  expect(error).toBeInstanceOf(StoreError)
  expect(error).toMatchObject({ code })
  return error as StoreError
}
