import { act } from '../act.js'

/** The log takes no more: what is in it is safe, what comes now would be forgotten. */
export const noteStoreFailure = act((_context, event) =>
  event.type === 'STORE_FAILED'
    ? { error: { code: event.failure.code, message: event.failure.message, recoverable: true } }
    : undefined,
)
