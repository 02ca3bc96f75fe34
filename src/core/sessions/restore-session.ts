import type { Session } from './session.js'
import { parseSession } from './parse-session.js'

/**
 * A session from what `session.toJSON()` gave, wherever it was kept in between.
 *
 * Throws a UsageError: `newer_session` for one that a newer Statewright stored, and `invalid_session`, with every
 * problem, for what is none, or whose history no provider would accept.
 *
 * @example
 * const session = restoreSession(JSON.parse(await readFile('session.json', 'utf8')))
 */
export function restoreSession(stored: unknown): Session {
  return parseSession(stored)
}
