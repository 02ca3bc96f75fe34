import { canResumeFromLog } from '../live/release-run.js'
import type { ShownAnswer } from '../live/answer-stream.js'
import { type Actor, createActor, type SnapshotFrom, transition } from 'xstate'
import { isRestState, isWorkState } from '../../../machines/agent/run-result.js'
import type { EmittedEvent } from '../../../machines/agent/announcements.js'
import { agentMachine } from '../../../machines/agent.machine.js'
import { listLate } from '../../../machines/agent/expiry.js'
import type { AgentMachineEvent, ControlEvent } from '../../../machines/agent/machine-events.js'
import { describeError } from '../base/errors.js'
import { getPlatform } from '../base/platform.js'
import type { AgentMachine } from '../live/journaled-machine.js'
import { findRuntime } from '../live/runtime.js'
import type { SessionLog } from '../sessions/log/session-log.js'
import type { ParentLink, RunOrigin } from './run-parts.js'
import type { EventHub } from './event-hub.js'
import { canResume } from './answer-events.js'
import { type Inspector, safeInspector } from './safe-listeners.js'
import { createStoreFailedEvent } from '../sessions/journal.js'

/**
 * The state after the pending events. Applies only events that are new, because a thousand answers in a row would
 * otherwise take half a million transitions.
 */
export class EventForecast<State, Event> {
  #from: State | undefined
  #applied: Event[] = []
  #state: State | undefined

  apply(from: State, events: Iterable<Event>, take: (state: State, event: Event) => State): State {
    const pending = [...events]
    const isExtended = from === this.#from && this.#applied.every((event, i) => event === pending[i])
    const known = isExtended ? this.#applied.length : 0
    const start = isExtended && this.#state !== undefined ? this.#state : from
    this.#from = from
    this.#applied = pending
    this.#state = pending.slice(known).reduce(take, start)
    return this.#state
  }
}

export type AgentSnapshot = SnapshotFrom<AgentMachine>

export interface ActorListener {
  onSnapshot: (snapshot: AgentSnapshot) => void
  /** Called only for bugs in the machine. An agent that fails reaches a final state instead. */
  onBroken: (error: unknown) => void
}

/**
 * The actor of a run and its queue of control events, which is the only way to send events to the run. Events wait
 * until the actor is created. At a rest, they wait until the session is reacquired, because another process may hold
 * it.
 */
export class RunActor {
  readonly #hub: EventHub
  #actor: Actor<AgentMachine> | undefined
  #log: SessionLog | undefined
  #listener: ActorListener | undefined
  #watch: ParentLink['watch'] | undefined
  /** Events that were sent but not processed by the machine. */
  #pending: ControlEvent[] = []
  /** Pending events that have not been delivered to the actor. */
  #queue: ControlEvent[] = []
  #delivery: Promise<void> | undefined
  /** Set because a synchronous store delivers its inbox while the session is being reacquired. */
  #isReacquiring = false
  #forecast: EventForecast<AgentSnapshot, ControlEvent> | undefined
  #isReleased = false
  /** The event that the timer of this process sent. */
  #expiry: ControlEvent | undefined
  /** Checks of events that are still in progress. */
  #checks: Promise<unknown> | undefined
  /** Whether a restored run has pending messages that end its rest, so that the rest is not reported. */
  #leavesRest = false

  constructor(hub: EventHub) {
    this.#hub = hub
  }

  /** Whether another process may resume the run. */
  get isReleased(): boolean {
    return this.#isReleased
  }

  /** Undefined until the session is read. */
  get snapshot(): AgentSnapshot | undefined {
    return this.#actor?.getSnapshot()
  }

  /** The part of the current answer that subscribers have received. */
  get answer(): ShownAnswer | null {
    return (this.#actor && findRuntime(this.#actor)?.answer) ?? null
  }

  /** The time of the run. */
  get now(): number {
    const actor = this.#actor
    return (actor && findRuntime(actor)?.readTime(actor.getSnapshot().context)) ?? 0
  }

  /** Whether a question has expired after the pending events. `at` is a time that has been reached on another clock. */
  isExpired(at = 0): boolean {
    if (this.#actor) findRuntime(this.#actor)?.time.advanceTo(at)
    const { forecast } = this
    return forecast?.status === 'active' && listLate(forecast.context, this.now).length > 0
  }

  /** Called when the timer of this process fires. */
  onExpired(): void {
    this.#expiry = { type: 'APPROVAL_EXPIRED' }
    if (this.isExpired()) this.send(this.#expiry)
  }

  /**
   * The snapshot after all pending events. With it, a second answer is rejected immediately, even if the store is slow.
   */
  get forecast(): AgentSnapshot | undefined {
    const actor = this.#actor
    if (!actor) return undefined
    const now = this.now
    this.#forecast ??= new EventForecast()
    return this.#forecast.apply(actor.getSnapshot(), this.#pending, (ahead, event) =>
      ahead.status === 'active' ? transition(agentMachine, ahead, { now, ...event })[0] : ahead,
    )
  }

  /** Whether the run has a pause that can be ended or withdrawn, after the pending events. */
  get canResume(): boolean {
    const { forecast } = this
    if (forecast) return canResume(forecast)
    return this.#pending.findLast(({ type }) => type === 'PAUSE' || type === 'RESUME')?.type === 'PAUSE'
  }

  /** The state as plain JSON. */
  get persisted(): unknown {
    return this.#actor?.getPersistedSnapshot()
  }

  create(
    machine: AgentMachine,
    { input, snapshot, log }: RunOrigin,
    { above, inspect }: { above: ParentLink | undefined; inspect: Inspector | undefined },
    listener: ActorListener,
  ): Actor<AgentMachine> {
    const actor = createActor(machine, {
      ...(input && { input: input as never }),
      ...(snapshot && { snapshot: snapshot as never }),
      ...(above && { parent: above.parent, id: above.id }),
      ...(inspect && {
        inspect: safeInspector(inspect, (thrown) => {
          this.#warnOfInspector(thrown)
        }),
      }),
    } as never)
    this.#actor = actor
    this.#log = log
    this.#hub.attachActor(actor)
    log?.onFailure((failure) => {
      queueMicrotask(() => {
        // A delivery that waits for the log reports the failure itself, so that a CANCEL comes first.
        if (!this.#delivery) actor.send(createStoreFailedEvent(failure))
      })
    })
    this.#listener = listener
    this.#watch = above?.watch
    actor.subscribe(this)
    findRuntime(actor)?.listenToEvents(this)
    // The actor itself queues events until it is started.
    for (const event of this.#queue.splice(0)) actor.send(event)
    return actor
  }

  /** `next`, `complete` and `error` make this object an observer, which saves closures. */
  next(snapshot: AgentSnapshot): void {
    this.#leavesRest &&= this.#pending.length > 0
    if (this.#leavesRest && snapshot.status === 'active' && isRestState(snapshot.context.state)) return
    this.#listener?.onSnapshot(snapshot)
    this.#watch?.(snapshot.context)
  }

  complete(): void {
    this.#hub.complete()
  }

  error(error: unknown): void {
    this.#listener?.onBroken(error)
  }

  onMachineEvent(event: AgentMachineEvent): void {
    const at = this.#pending.indexOf(event as ControlEvent)
    if (at !== -1) this.#pending.splice(at, 1)
  }

  /**
   * Resumes a run that was interrupted or has pending messages. It starts asynchronously, so that code that subscribes
   * right after `resume()` receives all events. A resting run emits its state.
   */
  resume(onEnd: (snapshot: AgentSnapshot) => void): void {
    const actor = this.#actor
    if (!actor) return
    const { status, context } = actor.getSnapshot()
    const isAtRest = status === 'active' && !isWorkState(context.state)
    // The session stays held, so that messages are applied before another process can take it.
    this.#leavesRest = isAtRest && this.#pending.length > 0
    if (status !== 'active' || (isAtRest && !this.#leavesRest)) {
      actor.start()
      // XState does not notify subscribers of an actor that starts in a final state.
      if (status !== 'active') {
        findRuntime(actor)?.emitRestoredState(context)
        onEnd(actor.getSnapshot())
      }
      return
    }
    getPlatform().runSoon(() => {
      if (!this.#isReleased) actor.start()
    })
  }

  send(event: ControlEvent): void {
    if (this.#isReleased) return
    this.#pending.push(event)
    this.#forward(event)
  }

  #forward(event: ControlEvent): void {
    const actor = this.#actor
    if (!actor || this.#delivery || this.#isReacquiring) {
      this.#queue.push(event)
      return
    }
    const reacquired = this.#log?.isResting ? this.#reacquire(this.#log) : undefined
    if (reacquired) this.#delivery = this.#deliverLater(actor, event, reacquired)
    else {
      actor.send(event)
      this.#forwardQueue()
    }
  }

  /**
   * Reacquires the session. The event that ends the rest was checked against that rest, so it is sent before the
   * messages of the inbox.
   */
  #reacquire(log: SessionLog): Promise<void> | undefined {
    this.#isReacquiring = true
    try {
      return log.reacquire()
    } finally {
      this.#isReacquiring = false
    }
  }

  async #deliverLater(actor: Actor<AgentMachine>, event: ControlEvent, ready: Promise<void>): Promise<void> {
    try {
      await ready
      actor.send(event)
    } catch (error) {
      // The process that has taken the session ends its questions.
      if (event === this.#expiry) this.onMachineEvent(event)
      // A cancel always applies, even if only in this process.
      else actor.send(event.type === 'CANCEL' ? event : createStoreFailedEvent(error))
    }
    this.#delivery = undefined
    this.#forwardQueue()
  }

  #forwardQueue(): void {
    if (this.#queue.length === 0) return
    for (const event of this.#queue.splice(0)) this.#forward(event)
  }

  /** Sends an event after a check. `release` waits for it. */
  sendLater(check: Promise<void>): void {
    this.#checks = this.#checks ? Promise.all([this.#checks, check]) : check
  }

  /** Stops at a point where another process can resume, and releases the session. */
  async release(log: SessionLog | undefined): Promise<void> {
    const actor = this.#actor
    if (!actor) return
    const runtime = findRuntime(actor)
    runtime?.halt()
    // May be called during a transition, which is written first.
    await this.#checks
    const children = runtime?.hasChildren
      ? [...runtime.children.values()].map((child) => child.release())
      : []
    await Promise.all(children)
    // Messages must be in the log before another process resumes the run.
    // oxlint-disable-next-line no-await-in-loop -- new events can arrive while it waits
    while (this.#delivery || !this.#isQuiet(actor)) await (this.#delivery ?? this.#waitUntilQuiet(actor))
    if (log) this.#recordRelease(actor, log)
    this.#isReleased = true
    log?.inbox.close()
    // XState lets only the parent stop an actor, such as a sub-agent's.
    // oxlint-disable-next-line no-underscore-dangle -- XState has no public method for this
    ;(actor as unknown as { _stop(): void })._stop()
    await log?.close()
  }

  /** Logs the usage of a dropped request and the orderly stop of the process. */
  #recordRelease(actor: Actor<AgentMachine>, log: SessionLog): void {
    const { status, context } = actor.getSnapshot()
    if (status !== 'active' || !isWorkState(context.state)) return
    const usage = findRuntime(actor)?.openBill?.getUsageSoFar() ?? null
    if (usage !== null || log.isJustResumed) actor.send({ type: 'RELEASED', ...(usage && { usage }) })
  }

  #waitUntilQuiet(actor: Actor<AgentMachine>): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (this.#isQuiet(actor)) resolve()
      }
      actor.subscribe({ next: look, complete: resolve })
      look()
    })
  }

  #isQuiet(actor: Actor<AgentMachine>): boolean {
    const { status, context } = actor.getSnapshot()
    return status !== 'active' || canResumeFromLog(context)
  }

  warn(code: string, message: string): void {
    this.emit({ type: 'warning', code, message })
  }

  /** Emits an event that does not come from the machine. */
  emit(event: EmittedEvent): void {
    if (this.#actor) findRuntime(this.#actor)?.emit(event)
  }

  /** Emitted later, because XState calls the inspector during a transition. */
  #warnOfInspector(thrown: unknown): void {
    queueMicrotask(() => {
      const message = `The inspector threw an error and is not called again: ${describeError(thrown)}`
      this.warn('subscriber_error', message)
    })
  }
}
