import type { Clock } from '../base/clock.js'
import { removeAlarm } from './alarm.js'
import { acquireLease, leaseMs, releaseLease } from './log/lease.js'
import { isMachineSession } from './log/machine-record.js'
import type { ListedSession, SessionStore } from './store/store.js'
import { UsageError } from '../base/errors.js'
import { restoreSummary } from './session-summary.js'
import { readTitle } from './store/session-title.js'
import { unknownSessionError } from './store/store-error.js'

/**
 * Deletes a session and the sessions of all its sub-agents, with their inboxes and timers. Returns the number of
 * deleted sessions. Sub-agents go first, so that after a crash the parent's log still lists the others. @throws
 * {StoreError} `session_busy` while a run holds the session, which is then kept, or a sub-agent's
 */
export async function deleteSession(store: SessionStore, clock: Clock, sessionId: string): Promise<number> {
  const listed = await store.get(sessionId)
  if (listed === null) return deleteAlone(store, sessionId)
  // The lease prevents a new run, whose sub-agents would not be deleted.
  const lease = await acquireLease(store, sessionId, { holder: 'a deletion', ttlMs: leaseMs })
  let deleted = 0
  try {
    for (const child of await listChildren(store, listed)) deleted += await deleteSession(store, clock, child)
  } finally {
    await releaseLease(store, lease, clock)
  }
  return deleted + (await deleteAlone(store, sessionId))
}

/** Timers last, because a session that still exists must be able to wake. A repeated deletion removes them. */
async function deleteAlone(store: SessionStore, sessionId: string): Promise<number> {
  const isDeleted = await store.delete(sessionId)
  await removeAlarm(store, sessionId)
  return isDeleted ? 1 : 0
}

/** Most sessions have no sub-agents, as their logs show. A machine's log does not name its agents' sessions. */
async function listChildren(store: SessionStore, session: ListedSession): Promise<string[]> {
  const { id, summary } = session
  const mayHave =
    summary === null ||
    isMachineSession(session) ||
    (await store.read(id)).some(({ data }) => data.includes('"delegate":true'))
  const listed = mayHave ? await store.list({ parent: id }) : []
  const restored = await Promise.all(listed.map((child) => restoreSummary(store, child)))
  // A custom store may ignore the filter. The id decides if neither the summary nor the log can be read.
  return restored
    .filter((child) => (child.summary ? child.summary.parent === id : child.id.startsWith(`${id}:`)))
    .map((child) => child.id)
}

/** @throws {UsageError} `invalid_option`, `no_titles` @throws {StoreError} `unknown_session` */
export async function renameSession(store: SessionStore, id: string, newTitle: unknown): Promise<void> {
  const title = readTitle(newTitle)
  if (!store.setTitle)
    throw new UsageError(
      'no_titles',
      'This store does not support titles. Use memoryStore, fileStore or postgresStore, or add a method setTitle(id, title) to your store.',
      'store',
    )
  if (!(await store.setTitle(id, title))) throw unknownSessionError(id)
}
