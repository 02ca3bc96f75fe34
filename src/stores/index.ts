/** Session stores, opened by URL. Node only. `memoryStore` also runs in browsers, and is in the core. */
export { memoryStore, type MemoryStoreOptions } from '../core/sessions/store/memory-store.js'
export { openStore } from './open-store.js'
export { checkSessionId } from '../core/sessions/store/session-id.js'
export { StoreError, type StoreErrorCode } from '../core/sessions/store/store-error.js'
export type {
  Delivery,
  InboxPosition,
  InboxMessage,
  UnreadInbox,
  SessionInbox,
  SyncSessionInbox,
} from '../core/sessions/store/inbox.js'
export type { ListOptions } from '../core/sessions/store/list-options.js'
export type { SessionTags } from '../core/sessions/store/session-tags.js'
export type {
  AcquireOptions,
  Appended,
  AppendOptions,
  Lease,
  LogRecord,
  ReadRange,
  ListedSession,
  SessionStore,
  SessionSummary,
  SyncSessionStore,
} from '../core/sessions/store/store.js'
