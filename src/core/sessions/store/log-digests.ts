import type { MaybePromise } from '../../base/maybe-promise.js'
import type { SessionStore } from './store.js'

/** Data extracted from a log for lists and searches, so that the log does not have to be read again. */
export interface LogDigest {
  sessionId: string
  head: number
  /** The time when the session was created. Distinguishes a session that was deleted and created again. */
  createdAt: number
  data: string
}

/** The digests of a store, deleted with their sessions. */
export interface DigestTable {
  /** Reads the stored digests of these sessions. A log may have grown since its digest was created. */
  read(sessionIds: readonly string[]): MaybePromise<LogDigest[]>
  /** Stores the digests whose log still ends at `head`, replacing older ones. Stores at most one digest per session. */
  put(digests: readonly LogDigest[]): MaybePromise<void>
}

const openers = new WeakMap<object, () => MaybePromise<DigestTable>>()

/**
 * Registers digests for exactly this store object. They are not a method, because a wrapper that spreads the store in
 * order to encrypt its data would expose them in plain text.
 */
export function offerDigests<Store extends object>(
  store: Store,
  open: () => MaybePromise<DigestTable>,
): Store {
  openers.set(store, open)
  return store
}

/** Opens the digests of a store, which are created on first use. Returns null if the store has none. */
export async function openDigests(store: SessionStore): Promise<DigestTable | null> {
  return (await openers.get(store)?.()) ?? null
}
