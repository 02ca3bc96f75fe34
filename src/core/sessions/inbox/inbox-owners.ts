import { attempt, chain } from '../../base/maybe-promise.js'
import type { UnreadInbox } from '../store/inbox.js'
import { createTicker, perStore } from '../store/per-store.js'
import type { SessionStore } from '../store/store.js'

/** Poll interval for messages that other processes sent to held sessions, in milliseconds. */
const pollMs = 1000

export interface InboxOwner {
  readonly sessionId: string
  /** Reports new messages. `inbox` is the number of the last message. */
  notify(inbox: number): void
}

/** The sessions that this process holds. One query polls all of them, if other processes can use the store. */
export const inboxOwners = perStore((store, clock) => {
  const held = new Map<string, InboxOwner>()
  const notify = (sessionId: string, inbox: number): void => held.get(sessionId)?.notify(inbox)
  const notifyAll = (found: readonly UnreadInbox[]): void => {
    for (const { sessionId, inbox } of found) notify(sessionId, inbox)
  }
  /** If a poll fails, the next poll or write reports the messages. */
  const ignore = (): void => undefined
  const ticker = createTicker(clock, {
    getMs: () => pollMs,
    isNeeded: () => held.size > 0 && store.inbox?.findUnread !== undefined,
    work: () =>
      attempt(() => chain(store.inbox?.findUnread?.([...held.keys()]) ?? [], notifyAll), ignore, ignore),
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
