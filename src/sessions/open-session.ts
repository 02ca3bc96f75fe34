import type { Clock } from '../runtime/clock.js'
import type { SessionStore } from '../stores/store.js'
import { acquireLease, releaseLease } from './lease.js'
import { leaseMs, SessionLog } from './session-log.js'
import { type Standing, standingAfter } from './standing.js'

export interface OpenSessionOptions {
  clock: Clock
  /** Who asks, in words for people. */
  holder: string
  /** The name of a session that does not exist yet. */
  name?: string | undefined
}

/**
 * Takes a session for one writer and reads where it stands.
 * @throws {StoreError} `session_busy`, `corrupt_log`, `newer_log`, `unknown_state`, `store_unavailable`
 */
export async function openSession(
  store: SessionStore,
  sessionId: string,
  { clock, holder, name }: OpenSessionOptions,
): Promise<{ log: SessionLog; standing: Standing }> {
  const lease = await acquireLease(store, sessionId, { holder, ttlMs: leaseMs })
  try {
    const standing = standingAfter(await store.read(sessionId, { from: 'snapshot' }), sessionId)
    return { log: new SessionLog({ store, lease, standing, clock, holder, name }), standing }
  } catch (error) {
    await releaseLease(store, lease)
    throw error
  }
}
