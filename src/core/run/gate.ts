import type { Actor } from 'xstate'
import type { AgentMachineEvent, ControlEvent } from '../../../machines/agent/events.js'
import type { SessionLog } from '../sessions/log/session-log.js'
import type { AgentMachine } from '../live/journaled.js'
import { liveOf } from '../live/live.js'
import { storeFailed } from '../sessions/journal.js'

/**
 * The only way into a run: events of our own making, in the order in which they came. What is said before the actor
 * exists waits for it. At a rest the session is anybody's: before the run goes on it has to be ours again, as we left
 * it.
 */
export class Gate {
  #actor: Actor<AgentMachine> | undefined
  #log: SessionLog | undefined
  #waiting: ControlEvent[] = []
  /** Said, and not heard by the machine yet. */
  #ahead: ControlEvent[] = []
  #waking: Promise<void> | undefined
  #isClosed = false

  /** What has been said and not heard yet, in order: a store takes its time, and so does a transition. */
  get ahead(): Iterable<ControlEvent> {
    return this.#ahead
  }

  /** The actor takes what it is sent before its start, and hears it then. */
  open(actor: Actor<AgentMachine>, log: SessionLog | undefined): void {
    this.#actor = actor
    this.#log = log
    liveOf(actor)?.onHeard(this)
    for (const event of this.#waiting.splice(0)) actor.send(event)
  }

  heard(event: AgentMachineEvent): void {
    const at = this.#ahead.indexOf(event as ControlEvent)
    if (at !== -1) this.#ahead.splice(at, 1)
  }

  /** The log has failed. Whoever waits for it to wake hears of it there, where a CANCEL comes first. */
  fail(failure: unknown): void {
    if (!this.#waking) this.#actor?.send(storeFailed(failure))
  }

  /** Settles once the run has heard what was said at its rest; undefined when nothing is on its way. */
  get delivering(): Promise<void> | undefined {
    return this.#waking
  }

  /** Nothing gets through any more. */
  close(): void {
    this.#isClosed = true
  }

  send(event: ControlEvent): void {
    if (this.#isClosed) return
    this.#ahead.push(event)
    this.#pass(event)
  }

  #pass(event: ControlEvent): void {
    if (this.#actor && !this.#waking) this.#deliver(this.#actor, event)
    else this.#waiting.push(event)
  }

  #deliver(actor: Actor<AgentMachine>, event: ControlEvent): void {
    const awake = this.#log?.isResting ? this.#log.wake() : undefined
    if (awake) this.#waking = this.#deliverLater(actor, event, awake)
    else actor.send(event)
  }

  async #deliverLater(actor: Actor<AgentMachine>, event: ControlEvent, awake: Promise<void>): Promise<void> {
    try {
      await awake
      actor.send(event)
    } catch (error) {
      // Cancelling always wins, if only here.
      actor.send(event.type === 'CANCEL' ? event : storeFailed(error))
    }
    this.#waking = undefined
    for (const next of this.#waiting.splice(0)) this.#pass(next)
  }
}
