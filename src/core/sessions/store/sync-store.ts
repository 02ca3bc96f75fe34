import type { SessionStore } from './store.js'

/** A session store that answers at once: when `append` returns, its records are durable. */
export type SyncSessionStore = {
  [Method in keyof SessionStore]: (
    ...args: Parameters<SessionStore[Method]>
  ) => Awaited<ReturnType<SessionStore[Method]>>
}
