import { type Actor, type SnapshotFrom, transition } from 'xstate'
import { agentMachine } from '../../../machines/agent.machine.js'
import type { ControlEvent } from '../../../machines/agent/context.js'
import type { AgentMachine } from '../live/journaled-machine.js'
import { createStoreFailedEvent } from '../sessions/journal.js'
import type { SessionLog } from '../sessions/log/session-log.js'

export type AgentSnapshot = SnapshotFrom<AgentMachine>

/** The event of this process's timer. If another process holds the session, that process ends the expired question. */
export const ownExpiry: ControlEvent = { type: 'APPROVAL_EXPIRED' }

/**
 * The events for a run that the machine has not processed. They wait for the actor and, after a rest, for the session,
 * which another process may hold.
 */
export class RunMailbox {
  #actor: Actor<AgentMachine> | undefined
  #log: SessionLog | undefined
  /** Events that the actor has received. */
  #sent: ControlEvent[] = []
  #queue: ControlEvent[] = []
  /** Settles when the event that ends a rest was sent or refused. */
  sending: Promise<void> | undefined
  /** The queued event that ends a rest. While the session is reacquired, its inbox adds events to the queue. */
  ending: ControlEvent | undefined
  #forecast: { from: AgentSnapshot; events: ControlEvent[]; state: AgentSnapshot } | undefined
  /** Whether pending messages end the rest, in which case the rest is not reported. */
  leavesRest = false

  get events(): ControlEvent[] {
    return [...this.#sent, ...this.#queue]
  }

  /** The actor itself queues events until it is started. */
  open(actor: Actor<AgentMachine>, log: SessionLog | undefined): void {
    this.#actor = actor
    this.#log = log
    this.#flush()
  }

  post(event: ControlEvent, before?: ControlEvent): void {
    this.#queue.splice(before ? this.#queue.indexOf(before) : this.#queue.length, 0, event)
    this.#flush()
  }

  /** The machine processes an event, which may have another sender. */
  take(event: unknown): void {
    const at = this.#sent.indexOf(event as ControlEvent)
    if (at !== -1) this.#sent.splice(at, 1)
  }

  /**
   * The state after all events, or after those that precede `before`. Undefined until the session is read. Applies only
   * new events, because a thousand answers in a row would otherwise take half a million transitions.
   */
  forecast(now: number, before?: ControlEvent): AgentSnapshot | undefined {
    const from = this.#actor?.getSnapshot()
    if (!from) return undefined
    const events = before ? this.events.slice(0, this.events.indexOf(before)) : this.events
    const last = this.#forecast
    const isExtended = last?.from === from && last.events.every((event, i) => event === events[i])
    let state = isExtended ? last.state : from
    for (const event of events.slice(isExtended ? last.events.length : 0))
      if (state.status === 'active') [state] = transition(agentMachine, state, { now, ...event })
    this.#forecast = { from, events, state }
    return state
  }

  #flush(): void {
    const actor = this.#actor
    if (!actor) return
    while (!this.sending && !this.ending) {
      const [event] = this.#queue
      if (!event) return
      const log = this.#log
      // The event was checked against this rest, so it precedes the messages in the inbox, except revocations.
      if (log?.isResting) this.ending = event
      const reacquired = this.ending && log?.reacquire()?.then(() => log.inbox.reading)
      if (reacquired) this.sending = this.#sendWhenHeld(actor, event, reacquired)
      else this.#send(actor, event)
    }
  }

  #send(actor: Actor<AgentMachine>, event: ControlEvent): void {
    this.ending = undefined
    const events = this.#queue.splice(0, this.#queue.indexOf(event) + 1)
    // The rest before the event is not reported.
    if (events.length > 1) this.leavesRest = true
    this.#sent.push(...events)
    for (const one of events) actor.send(one)
  }

  async #sendWhenHeld(actor: Actor<AgentMachine>, event: ControlEvent, held: Promise<void>): Promise<void> {
    try {
      await held
      this.#send(actor, event)
    } catch (error) {
      this.ending = undefined
      this.#queue = this.#queue.filter((one) => one !== event)
      // A cancel always applies, even if only in this process.
      if (event.type === 'CANCEL') {
        this.#sent.push(event)
        actor.send(event)
      } else if (event !== ownExpiry) actor.send(createStoreFailedEvent(error))
    }
    this.sending = undefined
    this.#flush()
  }
}
