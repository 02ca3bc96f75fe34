import { StatewrightError, UsageError } from '../../base/errors.js'
import { invalidTextPattern } from './session-tags.js'
import type { Lease, LogRecord } from './store.js'

/**
 * - `session_busy`: another run, process or machine writes to the session
 * - `lease_lost`: another process acquired the session in the meantime
 * - `unknown_session`: the store has no session with this id
 * - `out_of_order`: other records were appended since the log was read
 * - `corrupt_log`: a record is damaged or missing; the message names the last intact one
 * - `newer_log`: written by a newer version of Statewright
 * - `unknown_state`: a snapshot has a state that this machine does not have
 * - `machine_session`: the session belongs to a machine from `statewright/durable`, not to an agent
 * - `disk_full`, `read_only`, `store_unavailable`: the storage rejects the operation
 */
export type StoreErrorCode =
  | 'session_busy'
  | 'lease_lost'
  | 'unknown_session'
  | 'out_of_order'
  | 'corrupt_log'
  | 'newer_log'
  | 'unknown_state'
  | 'machine_session'
  | 'disk_full'
  | 'read_only'
  | 'store_unavailable'

/**
 * A failed operation in a session store. `subject` is the session, or the location of the store.
 * @example
 * try {
 *   await agent.resume('ann')
 * } catch (error) {
 *   if (error instanceof StoreError && error.code === 'session_busy') console.log(error.message) // names the holder
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

export function isSessionBusy(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'session_busy'
}

/** Whether another process holds the session or has taken it over. */
export const isHeldElsewhere = (error: unknown): boolean =>
  error instanceof StoreError && ['session_busy', 'lease_lost', 'out_of_order'].includes(error.code)

/** For use in `catch`: returns null if another process holds the session. */
export function nullIfBusy(error: unknown): null {
  if (isSessionBusy(error)) return null
  throw error
}

export function sessionBusyError(sessionId: string, holder: string | null): StoreError {
  const message = `The session ${sessionId} is in use by ${holder ?? 'another process'}. Wait until it is released, or use another session.`
  return new StoreError('session_busy', message, sessionId)
}

export function leaseLostError({ sessionId, holder }: Lease): StoreError {
  const message =
    `${holder} can no longer write to the session ${sessionId}: its lease expired, or another process has taken the ` +
    'session over. Acquire it again, and continue from the current log.'
  return new StoreError('lease_lost', message, sessionId)
}

export function takenOverError(sessionId: string): StoreError {
  const message =
    `Session '${sessionId}' was taken over or deleted: its log does not end with the last record of this run. Read its state with ` +
    `agent.resume('${sessionId}').`
  return new StoreError('out_of_order', message, sessionId)
}

/** Converts any value that a custom store throws to a StoreError. */
export function toStoreError(sessionId: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error
  const why = error instanceof Error ? error.message : String(error)
  const message = `Session '${sessionId}' could not be stored: ${why}`
  return new StoreError('store_unavailable', message, sessionId, { cause: error })
}

export function unknownSessionError(sessionId: string): StoreError {
  const message = `There is no session '${sessionId}' in this store. List them with store.list(), or 'statewright sessions list'.`
  return new StoreError('unknown_session', message, sessionId)
}

export function getExpiry(now: number, ttlMs: number): number {
  if (Number.isFinite(ttlMs) && ttlMs >= 0) return Math.min(Math.ceil(now + ttlMs), Number.MAX_SAFE_INTEGER)
  const message = `ttlMs must be a non-negative number of milliseconds (got ${ttlMs}).`
  throw new UsageError('invalid_lease', message, 'ttlMs')
}

/** Rejects records that a store could not keep unchanged. */
export function checkRecords(sessionId: string, records: readonly LogRecord[]): void {
  const isSound = (text: unknown): boolean => typeof text === 'string' && !invalidTextPattern.test(text)
  records.forEach(({ seq, at, type, data, check }, index) => {
    const invalid = (fault: string): UsageError =>
      new UsageError('invalid_record', `Record ${seq} cannot be stored: ${fault}.`, sessionId)
    if (!Number.isSafeInteger(at)) throw invalid('`at` is not an integer')
    if (![type, data, check].every(isSound)) throw invalid('`type`, `data` or `check` is not valid JSON text')
    const first = records[0]?.seq ?? 1
    if (seq !== first + index) throw outOfOrderError(sessionId, first + index - 1, seq)
  })
}

export function checkFollows(sessionId: string, records: readonly LogRecord[], head: number): void {
  const first = records[0]?.seq
  if (first !== undefined && first !== head + 1) throw outOfOrderError(sessionId, head, first)
}

function outOfOrderError(sessionId: string, head: number, seq: number): StoreError {
  const message =
    `Record ${seq} cannot follow record ${head} of the session ${sessionId}. Read the log again from there, because it ` +
    'has new records.'
  return new StoreError('out_of_order', message, sessionId)
}
