import { findNearestName } from '../core/base/text.js'
import { checkSessionId } from '../core/sessions/store/session-id.js'
import type { ListedSession, SessionStore } from '../core/sessions/store/store.js'
import { CliError } from './cli-error.js'

const mostNames = 3

/**
 * A session of the store.
 * @throws {CliError} `unknown_session`, with similar ids
 * @throws {UsageError} `invalid_session`
 */
export async function findSession(store: SessionStore, sessionId: string): Promise<ListedSession> {
  const id = checkSessionId(sessionId)
  const found = await store.get(id)
  if (found) return found
  const entries = await store.list({ children: true })
  const near = idsNear(
    id,
    entries.map((entry) => entry.id),
  )
  const hint =
    near.length > 0
      ? `Did you mean ${near.map((one) => `'${one}'`).join(' or ')}?`
      : entries.length === 0
        ? 'The store is empty.'
        : "'statewright sessions list' shows the sessions."
  throw new CliError('unknown_session', `There is no session '${id}' here. ${hint}`, id)
}

/** Ids with this prefix, else the most similar id. */
function idsNear(id: string, ids: readonly string[]): string[] {
  const begun = ids.filter((one) => one.toLowerCase().startsWith(id.toLowerCase()))
  if (begun.length > 0) return begun.slice(0, mostNames)
  const meant = findNearestName(id, ids)
  return meant === undefined ? [] : [meant]
}
