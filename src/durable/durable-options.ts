import type {
  AnyActorLogic,
  AnyStateMachine,
  ContextFrom,
  EventFromLogic,
  InputFrom,
  OutputFrom,
  StateValueFrom,
} from 'xstate'
import type { PendingCall } from '../../machines/agent/run-result.js'
import type { AnyAgent } from '../core/drive/define-agents.js'
import type { SessionMessage } from '../core/sessions/inbox/session-message.js'
import type { Clock } from '../core/base/clock.js'
import type { StoredMachineState } from '../core/sessions/log/machine-record.js'
import type { ListedSession, SessionStore } from '../core/sessions/store/store.js'

/** Options for `durable`. */
export interface DurableOptions<Machine extends AnyStateMachine> {
  /** Where the sessions are stored. */
  store: SessionStore
  /** Actors to add to the machine, as in `machine.provide`. */
  actors?: Record<string, AnyActorLogic | AnyAgent>
  /**
   * The promise actors that must not run again after a crash, or after an output that is not JSON. The chart receives
   * their error event instead, and `event.error.code` is `in_doubt`.
   */
  once?: readonly (string & keyof Machine['implementations']['actors'])[] | readonly string[]
  /** The clock for waits in this process. Defaults to the system clock. Delays follow the store's clock. */
  clock?: Clock
  /**
   * Returns the state to open if the chart has another `version`, or lacks a state or an actor that the session uses.
   * `from` is the version that wrote the state.
   */
  migrate?: (
    state: Pick<StoredMachineState, 'value' | 'context'>,
    options: { from: string | undefined },
  ) =>
    | Partial<Pick<StoredMachineState, 'value' | 'context'>>
    | Promise<Partial<Pick<StoredMachineState, 'value' | 'context'>>>
  /** Receives errors from background work. Defaults to a process warning. */
  onError?: (error: unknown, at: { session?: string }) => void
}

/** A running agent's call that waits for an answer. */
export type PendingAgentCall = PendingCall & {
  /** The session of the agent. */
  session: string
}

/** A message for a running agent, such as an answer to a call. `session` names one of several agents. */
export type AgentMessage = Exclude<SessionMessage, { type: 'message' | 'cancel' }> & { session?: string }

/** The state of a settled session. */
export interface SettledState<Machine extends AnyStateMachine> {
  status: 'active' | 'done' | 'error' | 'stopped'
  /** The current states. */
  value: StateValueFrom<Machine>
  context: ContextFrom<Machine>
  /** The output of a machine that is done. */
  output?: OutputFrom<Machine>
  /** Why the machine ended in an error, as plain data. */
  error?: unknown
  /** Calls of running agents that wait for an answer: `send(id, { type: 'approve', ...call })`. */
  pending: PendingAgentCall[]
  /** The number of the last record. */
  head: number
}

/** The state of a session after one of its records. */
export interface MachineSnapshot<Machine extends AnyStateMachine>
  extends Pick<SettledState<Machine>, 'status' | 'value' | 'context' | 'output' | 'error'> {
  /** The number of the record. */
  record: number
  /** The event of the record. `xstate.init` starts a session, and `xstate.fork` a fork. */
  event: { type: string; [key: string]: unknown }
  /** Why the event had no effect. */
  refused?: { code: string; message: string; subject?: string }
}

/** The outcome of a running actor, by its name in `setup({ actors })` or its id. */
export interface ActorOutcome {
  actor: string
  output?: unknown
  /** An error instead of an output. */
  error?: unknown
}

/** Options for `fork`. */
export interface ForkOptions<Machine extends AnyStateMachine> {
  /** The record to start from. Defaults to the last one. */
  at?: number
  /** The first event of the fork, or the outcome of a running actor. Actors in `once` are in doubt in a fork. */
  with?: EventFromLogic<Machine> | ActorOutcome
}

/** Options for `worker`. */
export interface WorkerOptions {
  /** The time between two polls of the store, in milliseconds. Defaults to 1,000. */
  pollMs?: number
  /** The maximum number of sessions that the worker continues at the same time. Defaults to 50. */
  concurrency?: number
}

/** Continues sessions that are due, that have unread events, or that a dead process left behind. */
export interface DurableWorker {
  /** The number of sessions that the worker runs. */
  readonly active: number
  /**
   * Stops at a point where another process can continue. Waits for actors in `once`; other actors are aborted and run
   * again elsewhere. From now on, `send` only stores events, and calls that would run a session reject with `draining`.
   */
  drain(): Promise<void>
}

/** The sessions of a machine in a store. */
export interface DurableMachine<Machine extends AnyStateMachine> {
  /** The machine with its actors, for `generatePaths` and other tests. */
  readonly machine: Machine
  /**
   * Starts a session. Resolves when the session is stored. A second call with the same input changes nothing.
   * @example await claims.start('claim-17', { input: { amount: 900 } })
   * @throws {UsageError} `already_started` with another input, `other_session`, `not_json`, `transition_failed`, `draining`
   */
  start(
    id: string,
    ...options: undefined extends InputFrom<Machine>
      ? [options?: { input?: InputFrom<Machine> }]
      : [options: { input: InputFrom<Machine> }]
  ): Promise<void>
  /**
   * Sends an event to a session, from any process. Resolves when the event is stored. A session applies the events from
   * one sender in order, and each event once. An event with one of the last 100 keys is not applied again. Also use
   * this method for answers to running agents.
   * @example await claims.send('claim-17', { type: 'APPROVE', by: 'ann' }, { key: 'approval-4' })
   * @throws {UsageError} `unknown_event`, `not_json`, `session_ended`, `other_session`, `unknown_call`, `stale_answer`
   * @throws {StoreError} `unknown_session`
   */
  send(id: string, event: EventFromLogic<Machine> | AgentMessage, options?: { key?: string }): Promise<void>
  /**
   * Resolves when the machine waits for an event or a time, or has ended.
   * @example const { value, context } = await claims.settled('claim-17')
   * @throws {UsageError} `not_settled` after `timeoutMs`, `transition_failed` and `not_json` for an event that had no
   * effect, `chart_changed`, `draining`
   * @throws {StoreError} `unknown_session`
   */
  settled(id: string, options?: { timeoutMs?: number }): Promise<SettledState<Machine>>
  /**
   * Starts a worker. Run one in each worker process.
   * @example
   * const worker = claims.worker()
   * process.once('SIGTERM', () => void worker.drain().then(() => process.exit(0)))
   */
  worker(options?: WorkerOptions): DurableWorker
  /**
   * The state of a session after a record, by default the last. Read-only.
   * @example const { value, event } = await claims.replay('claim-17', 1)
   * @throws {UsageError} `invalid_option` for a record that the session does not have
   * @throws {StoreError} `unknown_session`
   */
  replay(id: string, record?: number): Promise<MachineSnapshot<Machine>>
  /**
   * Copies a session, up to a record, to a new session and returns the new id. The new session continues with the next
   * `settled` or `send`. Running agents continue from copies of their sessions.
   * @example const id = await claims.fork('claim-17', { at: 1, with: { type: 'APPROVE', by: 'ben' } })
   * @throws {UsageError} `unknown_actor`, `unknown_event`, `invalid_option`, `unsupported_fork` if an agent is running
   * and later records exist
   */
  fork(id: string, options?: ForkOptions<Machine>): Promise<string>
  /**
   * The sessions of this machine, most recently written first. `summary.value` is the state.
   * @example for await (const { id, summary } of claims.list()) console.log(id, summary?.value)
   */
  list(): AsyncGenerator<ListedSession>
  /**
   * Deletes a session. Returns false if the session does not exist.
   * @example await claims.delete('claim-17')
   * @throws {StoreError} `session_busy`
   */
  delete(id: string): Promise<boolean>
}
