import { type Clock, unrefTimer } from '../../base/clock.js'
import { PerStore } from '../store/per-store.js'
import type { SessionStore } from '../store/store.js'

/** How often a process asks for messages that other processes have left for the sessions that it holds, in milliseconds. */
const pollMs = 1000

/** The part of a process that holds a session. */
export interface InboxHolder {
  readonly sessionId: string
  /** `inbox`: the number of the last message that is there. */
  notify(inbox: number): void
}

/**
 * The holders of a store's sessions in this process. All of them are asked for at once, and only while there are any; a
 * store that no other process can reach is never asked.
 */
class InboxHolders {
  readonly #store: SessionStore
  readonly #clock: Clock
  readonly #held = new Map<string, InboxHolder>()
  #timer: unknown

  constructor(store: SessionStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  add(holder: InboxHolder): void {
    this.#held.set(holder.sessionId, holder)
    this.#schedulePoll()
  }

  remove(holder: InboxHolder): void {
    if (this.#held.get(holder.sessionId) !== holder) return
    this.#held.delete(holder.sessionId)
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
    // A message that may come is no reason for a process to stay.
    unrefTimer(this.#timer)
  }

  async #poll(): Promise<void> {
    const timer = this.#timer
    try {
      const found = (await this.#store.inbox?.findUnread?.([...this.#held.keys()])) ?? []
      for (const { sessionId, inbox } of found) this.notify(sessionId, inbox)
    } catch {
      // It is asked again, and told with what is written.
    }
    // Holders may have left or come meanwhile.
    if (this.#timer !== timer) return
    this.#timer = undefined
    if (this.#held.size > 0) this.#schedulePoll()
  }
}

/** Those whose time goes by the same clock. */
export const inboxHolders = new PerStore((store, clock) => new InboxHolders(store, clock))

/** A message was put into the inbox of a session: its holder in this process is notified at once. */
export function notifyHolder(store: SessionStore, sessionId: string, inbox: number): void {
  for (const each of inboxHolders.list(store)) each.notify(sessionId, inbox)
}
