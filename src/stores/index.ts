/** Session stores, opened by URL. Node only; `memoryStore` alone also runs in browsers, and is in the core. */
export { memoryStore, type MemoryStoreOptions } from './memory-store.js'
export { openStore } from './open-store.js'
export { checkedSessionId } from './session-id.js'
export { StoreError, type StoreErrorCode } from './store-error.js'
export type {
  AcquireOptions,
  Lease,
  LogRecord,
  ReadRange,
  SessionEntry,
  SessionStore,
  SessionSummary,
} from './store.js'
export type { SyncSessionStore } from './sync-store.js'
