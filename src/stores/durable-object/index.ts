/** Sessions in a Cloudflare Durable Object. The object's alarm wakes sleeping sessions. */
export { durableObjectStore, type DurableObjectStoreOptions } from './durable-object-store.js'
export type { ObjectStorage } from './durable-object-store.js'
export { wakeSessions } from './wake-sessions.js'
