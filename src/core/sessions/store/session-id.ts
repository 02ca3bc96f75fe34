import { UsageError } from '../../base/errors.js'

/** Matches ids that are safe in file names, database columns and command arguments. */
const idPattern = /^[A-Za-z0-9_:@][A-Za-z0-9._:@-]{0,199}$/

/**
 * Validates a session id for all stores: 1 to 200 letters (A–Z, a–z), digits and `. _ : @ -`, not starting with a dot or
 * dash.
 * @example
 * const id = checkSessionId('ann:2026-05') // throws a UsageError for 'a b', '' or '.hidden'
 * @throws {UsageError} `invalid_session`
 */
export function checkSessionId(id: unknown): string {
  if (isSessionId(id)) return id
  const message =
    `${describeId(id)} is not a valid session id. Use 1 to 200 letters (A-Z, a-z), digits and . _ : @ -. It must not start with a ` +
    'dot or a dash.'
  throw new UsageError('invalid_session', message, 'session')
}

export const isSessionId = (id: unknown): id is string => typeof id === 'string' && idPattern.test(id)

function describeId(id: unknown): string {
  if (typeof id !== 'string') return id === null ? 'null' : `A value of type ${typeof id}`
  return JSON.stringify(id.length > 60 ? `${id.slice(0, 60)}…` : id)
}
