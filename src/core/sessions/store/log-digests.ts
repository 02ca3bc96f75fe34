import type { SessionStore } from './store.js'

type MaybePromise<Value> = Value | Promise<Value>

/** What was once read in a log, for lists and searches: who has it need not read the log again. */
export interface LogDigest {
  sessionId: string
  /** The number of the last record that was read. */
  head: number
  /** When the session was created: one that was deleted and made anew is another. */
  createdAt: number
  /** JSON text. */
  data: string
}

/** The digests beside the logs of a store. They are deleted with their sessions. */
export interface DigestTable {
  /** Those that are kept of these sessions. The log of one may have grown since. */
  read(sessionIds: readonly string[]): MaybePromise<LogDigest[]>
  /** Keeps those whose log ends where they do, in place of former ones. At most one a session. */
  put(digests: readonly LogDigest[]): MaybePromise<void>
}

const openers = new WeakMap<object, () => MaybePromise<DigestTable>>()

/**
 * Lets the studio keep digests in exactly this store. They are no method of it: a store that spreads it, and encrypts what it
 * keeps, would hand them on, and they are readable.
 */
export function offerDigests<Store extends object>(
  store: Store,
  open: () => MaybePromise<DigestTable>,
): Store {
  openers.set(store, open)
  return store
}

/** The digests of a store; made when they are first asked for. Null for a store that keeps none. */
export async function openDigests(store: SessionStore): Promise<DigestTable | null> {
  return (await openers.get(store)?.()) ?? null
}
