/** XState machines with stored sessions: every event is durable before it has an effect. */
export { durable, idempotencyKey } from './durable.js'
export type {
  DurableMachine,
  DurableOptions,
  DurableWorker,
  SettledState,
  WorkerOptions,
} from './durable-options.js'
