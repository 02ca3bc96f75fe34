/** Sessions in a Durable Object of Cloudflare, whose alarm wakes those that sleep. */
export { durableObjectStore, type DurableObjectStoreOptions } from './durable-object-store.js'
export type { ObjectStorage } from './object-tables.js'
export { wakeSessions } from './wake-sessions.js'
