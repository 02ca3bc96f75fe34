import { type Clock, unrefTimer } from '../../base/clock.js'
import { PerStore } from '../store/per-store.js'
import type { SessionStore } from '../store/store.js'

/** Poll interval for messages that other processes sent to held sessions, in milliseconds. */
const pollMs = 1000

export interface InboxOwner {
  readonly sessionId: string
  /** Reports new messages. `inbox` is the number of the last message. */
  notify(inbox: number): void
}

/** The sessions that this process holds. One query polls all of them, if other processes can use the store. */
class InboxOwners {
  readonly #store: SessionStore
  readonly #clock: Clock
  readonly #held = new Map<string, InboxOwner>()
  #timer: unknown

  constructor(store: SessionStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  add(owner: InboxOwner): void {
    this.#held.set(owner.sessionId, owner)
    this.#schedulePoll()
  }

  remove(owner: InboxOwner): void {
    if (this.#held.get(owner.sessionId) !== owner) return
    this.#held.delete(owner.sessionId)
    if (this.#held.size > 0) return
    this.#clock.clearTimeout(this.#timer)
    this.#timer = undefined
  }

  notify(sessionId: string, inbox: number): void {
    this.#held.get(sessionId)?.notify(inbox)
  }

  #schedulePoll(): void {
    if (this.#timer !== undefined || !this.#store.inbox?.findUnread) return
    this.#timer = this.#clock.setTimeout(() => void this.#poll(), pollMs)
    // Polling must not keep the process alive.
    unrefTimer(this.#timer)
  }

  async #poll(): Promise<void> {
    const timer = this.#timer
    try {
      const found = (await this.#store.inbox?.findUnread?.([...this.#held.keys()])) ?? []
      for (const { sessionId, inbox } of found) this.notify(sessionId, inbox)
    } catch {
      // The next poll or write will report the messages.
    }
    // Owners may have changed in the meantime.
    if (this.#timer !== timer) return
    this.#timer = undefined
    if (this.#held.size > 0) this.#schedulePoll()
  }
}

export const inboxOwners = new PerStore((store, clock) => new InboxOwners(store, clock))

/** Immediately notifies the owner in this process of a new message. */
export function notifyOwner(store: SessionStore, sessionId: string, inbox: number): void {
  for (const each of inboxOwners.list(store)) each.notify(sessionId, inbox)
}
