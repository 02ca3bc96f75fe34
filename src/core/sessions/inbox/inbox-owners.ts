import { createTicker, PerStore } from '../store/per-store.js'
import type { SessionStore } from '../store/store.js'

/** Poll interval for messages that other processes sent to held sessions, in milliseconds. */
const pollMs = 1000

export interface InboxOwner {
  readonly sessionId: string
  /** Reports new messages. `inbox` is the number of the last message. */
  notify(inbox: number): void
}

/** The sessions that this process holds. One query polls all of them, if other processes can use the store. */
export const inboxOwners = new PerStore((store, clock) => {
  const held = new Map<string, InboxOwner>()
  const notify = (sessionId: string, inbox: number): void => held.get(sessionId)?.notify(inbox)
  const poll = async (): Promise<void> => {
    try {
      const found = (await store.inbox?.findUnread?.([...held.keys()])) ?? []
      for (const { sessionId, inbox } of found) notify(sessionId, inbox)
    } catch {
      // The next poll or write will report the messages.
    }
  }
  const ticker = createTicker(clock, {
    getMs: () => pollMs,
    isNeeded: () => held.size > 0 && store.inbox?.findUnread !== undefined,
    work: poll,
  })
  return {
    notify,
    add(owner: InboxOwner): void {
      held.set(owner.sessionId, owner)
      ticker.start()
    },
    remove(owner: InboxOwner): void {
      if (held.get(owner.sessionId) !== owner) return
      held.delete(owner.sessionId)
      ticker.stop()
    },
  }
})

/** Immediately notifies the owner in this process of a new message. */
export function notifyOwner(store: SessionStore, sessionId: string, inbox: number): void {
  for (const each of inboxOwners.list(store)) each.notify(sessionId, inbox)
}
