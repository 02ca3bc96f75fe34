import { canResumeFromLog } from '../live/release-run.js'
import type { ShownAnswer } from '../live/answer-stream.js'
import { type Actor, createActor, type SnapshotFrom, transition } from 'xstate'
import { isRestState, isWorkState } from '../../../machines/agent/run-result.js'
import type { EmittedEvent } from '../../../machines/agent/announcements.js'
import { agentMachine } from '../../../machines/agent.machine.js'
import type { ControlEvent } from '../../../machines/agent/machine-events.js'
import { describeError } from '../base/errors.js'
import { getPlatform } from '../base/platform.js'
import type { AgentMachine } from '../live/journaled-machine.js'
import { findRuntime } from '../live/runtime.js'
import type { SessionLog } from '../sessions/log/session-log.js'
import type { ParentLink, RunOrigin } from './run-parts.js'
import type { EventHub } from './event-hub.js'
import { canResume } from './answer-events.js'
import { EventGate } from './event-gate.js'
import { type Inspector, safeInspector } from './safe-listeners.js'

/**
 * The state after the pending events. Where events were only added, only the new ones are applied: a thousand answers
 * in a row would otherwise be half a million transitions.
 */
export class EventForecast<State, Event> {
  #from: State | undefined
  #taken: Event[] = []
  #reached: State | undefined

  apply(from: State, events: Iterable<Event>, take: (state: State, event: Event) => State): State {
    const waiting = [...events]
    const goesOn = from === this.#from && this.#taken.every((event, i) => event === waiting[i])
    const known = goesOn ? this.#taken.length : 0
    const start = goesOn && this.#reached !== undefined ? this.#reached : from
    this.#from = from
    this.#taken = waiting
    this.#reached = waiting.slice(known).reduce(take, start)
    return this.#reached
  }
}

export type AgentSnapshot = SnapshotFrom<AgentMachine>

/** Who is told what becomes of the actor. */
export interface ActorListener {
  onSnapshot: (snapshot: AgentSnapshot) => void
  /** Only what the machine itself does wrong: an agent that fails has a final state for it. */
  onBroken: (error: unknown) => void
}

/** The actor of a run: creates, starts or resumes it, sends it events, and forecasts its state. */
export class RunActor {
  readonly #hub: EventHub
  readonly #gate = new EventGate()
  #eventForecast: EventForecast<AgentSnapshot, ControlEvent> | undefined
  #actor: Actor<AgentMachine> | undefined
  #listener: ActorListener | undefined
  #watch: ParentLink['watch'] | undefined
  #isReleased = false
  /** Events that are still being checked. */
  #sending: Promise<unknown> | undefined
  /** Whether messages wait for the run in the rest that it was restored in: until it has taken them, it has no new rest. */
  #leavesRest = false

  constructor(hub: EventHub) {
    this.#hub = hub
  }

  /** Whether another process may go on with it. */
  get isReleased(): boolean {
    return this.#isReleased
  }

  /** Undefined while the session is still being read. */
  get snapshot(): AgentSnapshot | undefined {
    return this.#actor?.getSnapshot()
  }

  /** What of the present answer has been shown. */
  get answer(): ShownAnswer | null {
    return (this.#actor && findRuntime(this.#actor)?.answer) ?? null
  }

  /** The run after its pending events: so a second answer is refused at once, however slow the store. */
  get forecast(): AgentSnapshot | undefined {
    const actor = this.#actor
    if (!actor) return undefined
    const now = findRuntime(actor)?.time.now() ?? 0
    this.#eventForecast ??= new EventForecast()
    return this.#eventForecast.apply(actor.getSnapshot(), this.#gate.pendingEvents, (ahead, event) =>
      ahead.status === 'active' ? transition(agentMachine, ahead, { now, ...event })[0] : ahead,
    )
  }

  /** Whether there is a pause to end or to withdraw, after the pending events. */
  get canResume(): boolean {
    const { forecast } = this
    if (forecast) return canResume(forecast)
    const told = [...this.#gate.pendingEvents].findLast(({ type }) => type === 'PAUSE' || type === 'RESUME')
    return told?.type === 'PAUSE'
  }

  /** The state as plain JSON. */
  get persisted(): unknown {
    return this.#actor?.getPersistedSnapshot()
  }

  /** Makes the actor, and listens to it. */
  create(
    machine: AgentMachine,
    { input, snapshot, log }: RunOrigin,
    { above, inspect }: { above: ParentLink | undefined; inspect: Inspector | undefined },
    followers: ActorListener,
  ): void {
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
    this.#hub.attachActor(actor)
    log?.onFailure((failure) => {
      queueMicrotask(() => {
        this.#gate.fail(failure)
      })
    })
    this.#listener = followers
    this.#watch = above?.watch
    actor.subscribe(this)
    this.#gate.open(actor, log)
  }

  /**
   * `next`, `complete` and `error` make this object an observer: XState binds them, so no closures are created for a
   * run.
   */
  next(reached: AgentSnapshot): void {
    this.#leavesRest &&= this.#gate.hasPendingEvents
    if (this.#leavesRest && reached.status === 'active' && isRestState(reached.context.state)) return
    this.#listener?.onSnapshot(reached)
    this.#watch?.(reached.context)
  }

  complete(): void {
    this.#hub.complete()
  }

  error(error: unknown): void {
    this.#listener?.onBroken(error)
  }

  start(): void {
    if (!this.#isReleased) this.#actor?.start()
  }

  /**
   * Resumes a run that was interrupted, or that messages of its inbox make work: a moment later, so that a subscriber
   * right after `resume()` misses nothing. A run at rest, or one that has ended, emits its state.
   */
  resume(ended: (snapshot: AgentSnapshot) => void): void {
    const actor = this.#actor
    if (!actor) return
    const { status, context } = actor.getSnapshot()
    const isAtRest = status === 'active' && !isWorkState(context.state)
    // The session stays held: the messages are applied before any process may take it.
    this.#leavesRest = isAtRest && this.#gate.hasPendingEvents
    if (status !== 'active' || (isAtRest && !this.#leavesRest)) {
      actor.start()
      // XState does not notify subscribers of an actor that starts in a final state.
      if (status !== 'active') {
        findRuntime(actor)?.emitRestoredState(context)
        ended(actor.getSnapshot())
      }
      return
    }
    getPlatform().runSoon(() => {
      if (!this.#isReleased) actor.start()
    })
  }

  /** Sends an event to the run; events before the actor exists wait for it. */
  send(event: ControlEvent): void {
    this.#gate.send(event)
  }

  /** An event that may follow when this settles: `release` waits for it. */
  sendLater(saying: Promise<void>): void {
    this.#sending = this.#sending ? Promise.all([this.#sending, saying]) : saying
  }

  /** Stops where another process can resume, and releases the session. */
  async release(log: SessionLog | undefined): Promise<void> {
    const actor = this.#actor
    if (!actor) return
    const runtime = findRuntime(actor)
    runtime?.halt()
    // The call may come in the middle of a transition, which is written first.
    await this.#sending
    const children = runtime?.hasChildren
      ? [...runtime.children.values()].map((child) => child.release())
      : []
    await Promise.all(children)
    // Messages to the run are in its log before another process resumes it.
    // oxlint-disable-next-line no-await-in-loop -- more may be said meanwhile
    while (this.#gate.delivering || !this.#isQuiet(actor))
      await (this.#gate.delivering ?? this.#waitUntilQuiet(actor))
    if (log) this.#recordRelease(actor, log)
    await this.#stop(actor, log)
  }

  /** A request that is dropped was paid for; and a process that stops in order was not ended by the run. */
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

  #stop(actor: Actor<AgentMachine>, log: SessionLog | undefined): Promise<void> | undefined {
    this.#isReleased = true
    this.#gate.close()
    log?.inbox.close()
    // A sub-agent's has a parent, and XState stops such actors from there alone.
    // oxlint-disable-next-line no-underscore-dangle -- as above
    ;(actor as unknown as { _stop(): void })._stop()
    return log?.close()
  }

  warn(code: string, message: string): void {
    this.emit({ type: 'warning', code, message })
  }

  /** Announces what is no event of the machine. */
  emit(announcement: EmittedEvent): void {
    if (this.#actor) findRuntime(this.#actor)?.emit(announcement)
  }

  /** A moment later: the inspector was called in the middle of a transition. */
  #warnOfInspector(thrown: unknown): void {
    queueMicrotask(() => {
      const message = `The inspector threw, and is not called again: ${describeError(thrown)}`
      this.warn('subscriber_error', message)
    })
  }
}
