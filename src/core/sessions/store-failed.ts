import type { ActorEvent } from '../../../machines/agent/events.js'
import { StatewrightError } from '../base/errors.js'
import { describe } from '../base/plain-error.js'

/** What ends a run whose log can not be written. */
export function storeFailed(error: unknown): Extract<ActorEvent, { type: 'STORE_FAILED' }> {
  const code = error instanceof StatewrightError ? error.code : 'store_error'
  return { type: 'STORE_FAILED', failure: { code, message: describe(error) } }
}
