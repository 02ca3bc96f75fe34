import type { SessionStore } from './store.js'

type MaybePromise<Value> = Value | Promise<Value>

/** Data extracted from a log for lists and searches, so that the log does not have to be read again. */
export interface LogDigest {
  sessionId: string
  /** The number of the last record that was read. */
  head: number
  /** When the session was created. Distinguishes a session that was deleted and created again. */
  createdAt: number
  /** JSON text. */
  data: string
}

/** The digests of a store, kept in addition to its logs. They are deleted with their sessions. */
export interface DigestTable {
  /** The stored digests of these sessions. A log may have grown since its digest was made. */
  read(sessionIds: readonly string[]): MaybePromise<LogDigest[]>
  /** Stores the digests whose log still ends at `head`, replacing older ones. At most one per session. */
  put(digests: readonly LogDigest[]): MaybePromise<void>
}

const openers = new WeakMap<object, () => MaybePromise<DigestTable>>()

/**
 * Registers digests for exactly this store. They are not a store method, because a wrapper that spreads the store to
 * encrypt its data would expose them in plain text.
 */
export function offerDigests<Store extends object>(
  store: Store,
  open: () => MaybePromise<DigestTable>,
): Store {
  openers.set(store, open)
  return store
}

/** The digests of a store, created on first use. Null if the store keeps none. */
export async function openDigests(store: SessionStore): Promise<DigestTable | null> {
  return (await openers.get(store)?.()) ?? null
}
