/** XState machines with stored sessions. Every event is durable before it has an effect. */
export { durable, idempotencyKey } from './durable.js'
export type * from './durable-options.js'
