import type { Session } from './session.js'
import { parseSession } from './parse-session.js'

// A separate file, because bundlers would otherwise include all of parseSession (1 kB gzipped) in the initial chunk.

/**
 * Creates a session from the output of `session.toJSON()`.
 *
 * Throws a UsageError: `newer_session` if a newer version of Statewright stored the session, and `invalid_session`,
 * listing every problem, if the value is not a session or no provider would accept its history.
 * @example
 * const session = restoreSession(JSON.parse(await readFile('session.json', 'utf8')))
 */
export function restoreSession(stored: unknown): Session {
  return parseSession(stored)
}
