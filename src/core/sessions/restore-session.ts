import type { Session } from './session.js'
import { parseSession } from './parse-session.js'

// In a file of its own: bundlers would put all of parseSession into what an app loads first (1 kB gzipped).

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
