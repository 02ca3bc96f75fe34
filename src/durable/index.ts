/** XState machines with stored sessions. Every event is durable before it has an effect. */
export { durable, idempotencyKey } from './durable.js'
export type {
  ActorOutcome,
  AgentMessage,
  DurableMachine,
  DurableOptions,
  DurableWorker,
  ForkOptions,
  MachineSnapshot,
  PendingAgentCall,
  SettledState,
  WorkerOptions,
} from './durable-options.js'
