import { StatewrightError } from '../../base/errors.js'

/**
 * - `session_busy`: another run, process or machine writes to the session
 * - `lease_lost`: another process took the session over in the meantime
 * - `unknown_session`: there is none with this id
 * - `out_of_order`: the log has moved on since it was read
 * - `corrupt_log`: a record is damaged or missing; the message names the last good one
 * - `newer_log`: written by a newer Statewright
 * - `unknown_state`: a snapshot in it stands in a state that this machine does not have
 * - `disk_full`, `read_only`, `store_unavailable`: the place where it is kept does not take it
 */
export type StoreErrorCode =
  | 'session_busy'
  | 'lease_lost'
  | 'unknown_session'
  | 'out_of_order'
  | 'corrupt_log'
  | 'newer_log'
  | 'unknown_state'
  | 'disk_full'
  | 'read_only'
  | 'store_unavailable'

/**
 * What a session store cannot do. `subject` is the session, or the place where the store is.
 *
 * @example
 * try {
 *   await agent.resume('ann')
 * } catch (error) {
 *   if (error instanceof StoreError && error.code === 'session_busy') console.log(error.message) // with who has it
 * }
 */
export class StoreError extends StatewrightError {
  override readonly name = 'StoreError'
  declare readonly code: StoreErrorCode

  // oxlint-disable-next-line no-useless-constructor -- narrows the code
  constructor(code: StoreErrorCode, message: string, subject?: string, options?: ErrorOptions) {
    super(code, message, subject, options)
  }
}
