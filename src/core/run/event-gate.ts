import type { Actor } from 'xstate'
import type { AgentMachineEvent, ControlEvent } from '../../../machines/agent/machine-events.js'
import type { SessionLog } from '../sessions/log/session-log.js'
import type { AgentMachine } from '../live/journaled-machine.js'
import { findRuntime } from '../live/runtime.js'
import { createStoreFailedEvent } from '../sessions/journal.js'

/**
 * The only way into a run: control events in the order in which they came. Events before the actor exists wait for it.
 * At a rest any process may take the session: before the run continues, this process takes it back, unchanged.
 */
export class EventGate {
  #actor: Actor<AgentMachine> | undefined
  #log: SessionLog | undefined
  #waiting: ControlEvent[] = []
  /** Sent, and not taken by the machine yet. */
  #pending: ControlEvent[] = []
  #delivery: Promise<void> | undefined
  /** The session is being taken back: a store that answers at once hands over its inbox meanwhile. */
  #isReacquiring = false
  #isClosed = false

  /** The events that were sent and that the machine has not taken yet, in order. */
  get pendingEvents(): Iterable<ControlEvent> {
    return this.#pending
  }

  /** Opens the gate. An actor queues events before its start, and takes them then. */
  open(actor: Actor<AgentMachine>, log: SessionLog | undefined): void {
    this.#actor = actor
    this.#log = log
    findRuntime(actor)?.listenToEvents(this)
    for (const event of this.#waiting.splice(0)) actor.send(event)
  }

  get hasPendingEvents(): boolean {
    return this.#pending.length > 0
  }

  onMachineEvent(event: AgentMachineEvent): void {
    const at = this.#pending.indexOf(event as ControlEvent)
    if (at !== -1) this.#pending.splice(at, 1)
  }

  /** The log has failed. A delivery that waits for the log reports it; there a CANCEL comes first. */
  fail(failure: unknown): void {
    if (!this.#delivery) this.#actor?.send(createStoreFailedEvent(failure))
  }

  /** Settles once the run has taken the events of its rest; undefined when nothing is being delivered. */
  get delivering(): Promise<void> | undefined {
    return this.#delivery
  }

  /** Nothing gets through any more. */
  close(): void {
    this.#isClosed = true
  }

  send(event: ControlEvent): void {
    if (this.#isClosed) return
    this.#pending.push(event)
    this.#forward(event)
  }

  #forward(event: ControlEvent): void {
    if (this.#actor && !this.#delivery && !this.#isReacquiring) this.#deliver(this.#actor, event)
    else this.#waiting.push(event)
  }

  #deliver(actor: Actor<AgentMachine>, event: ControlEvent): void {
    const awake = this.#log?.isResting ? this.#reacquire(this.#log) : undefined
    if (awake) this.#delivery = this.#deliverLater(actor, event, awake)
    else {
      actor.send(event)
      if (this.#waiting.length > 0) this.#forwardWaiting()
    }
  }

  /** Messages of the inbox come after the event that ends the rest, which was checked against that rest. */
  #reacquire(log: SessionLog): Promise<void> | undefined {
    this.#isReacquiring = true
    try {
      return log.reacquire()
    } finally {
      this.#isReacquiring = false
    }
  }

  async #deliverLater(actor: Actor<AgentMachine>, event: ControlEvent, awake: Promise<void>): Promise<void> {
    try {
      await awake
      actor.send(event)
    } catch (error) {
      // Cancelling always wins, if only here.
      actor.send(event.type === 'CANCEL' ? event : createStoreFailedEvent(error))
    }
    this.#delivery = undefined
    this.#forwardWaiting()
  }

  #forwardWaiting(): void {
    for (const next of this.#waiting.splice(0)) this.#forward(next)
  }
}
