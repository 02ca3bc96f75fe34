import type { Clock } from '../../base/clock.js'
import { PerStore } from '../store/per-store.js'
import type { SessionStore } from '../store/store.js'

/** How often a process asks for messages that other processes have left for the sessions that it holds, in milliseconds. */
const pollMs = 1000

/** Whoever holds a session. */
export interface Holder {
  readonly sessionId: string
  /** `inbox`: the number of the last message that is there. */
  news(inbox: number): void
}

/**
 * The holders of a store's sessions in this process. All of them are asked for at once, and only while there are any; a
 * store that no other process can reach is never asked.
 */
class Holders {
  readonly #store: SessionStore
  readonly #clock: Clock
  readonly #held = new Map<string, Holder>()
  #timer: unknown

  constructor(store: SessionStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  add(holder: Holder): void {
    this.#held.set(holder.sessionId, holder)
    this.#plan()
  }

  remove(holder: Holder): void {
    if (this.#held.get(holder.sessionId) !== holder) return
    this.#held.delete(holder.sessionId)
    if (this.#held.size > 0) return
    this.#clock.clearTimeout(this.#timer)
    this.#timer = undefined
  }

  news(sessionId: string, inbox: number): void {
    this.#held.get(sessionId)?.news(inbox)
  }

  #plan(): void {
    if (this.#timer !== undefined || !this.#store.inbox?.findUnread) return
    this.#timer = this.#clock.setTimeout(() => void this.#ask(), pollMs)
    // A message that may come is no reason for a process to stay.
    ;(this.#timer as { unref?: () => void } | undefined)?.unref?.()
  }

  async #ask(): Promise<void> {
    const timer = this.#timer
    try {
      const found = (await this.#store.inbox?.findUnread?.([...this.#held.keys()])) ?? []
      for (const { sessionId, inbox } of found) this.news(sessionId, inbox)
    } catch {
      // It is asked again, and told with what is written.
    }
    // Nobody may be left, or somebody have come meanwhile.
    if (this.#timer !== timer) return
    this.#timer = undefined
    if (this.#held.size > 0) this.#plan()
  }
}

/** Those whose time goes by the same clock. */
export const holders = new PerStore((store, clock) => new Holders(store, clock))

/** A message was put into the inbox of a session: whoever holds it in this process hears at once. */
export function tellHolder(store: SessionStore, sessionId: string, inbox: number): void {
  for (const each of holders.all(store)) each.news(sessionId, inbox)
}
