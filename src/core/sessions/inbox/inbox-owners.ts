import { attempt, chain } from '../../base/maybe-promise.js'
import { createTicker } from '../../base/clock.js'
import type { Delivery, SessionInbox, UnreadInbox } from '../store/inbox.js'
import { perStore } from '../store/per-store.js'
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

/** Stores a message. An owner in this process is notified immediately, unless its lease has expired. */
export async function putMessage(store: SessionStore, sessionId: string, text: string): Promise<Delivery> {
  const delivery = await (store.inbox as SessionInbox).put(sessionId, text)
  if (delivery.holder !== null)
    for (const each of inboxOwners.list(store)) each.notify(sessionId, delivery.message)
  return delivery
}

const unreadPageSize = 500

/** The sessions with messages. Only a store without `listUnread` needs the candidates. */
export async function listUnread(
  { inbox }: SessionStore,
  candidates: AsyncIterable<{ id: string }>,
): Promise<UnreadInbox[]> {
  if (inbox?.listUnread) return inbox.listUnread()
  if (!inbox?.findUnread) return []
  const ids: string[] = []
  for await (const { id } of candidates) ids.push(id)
  const all: UnreadInbox[] = []
  for (let from = 0; from < ids.length; from += unreadPageSize)
    all.push(...(await inbox.findUnread(ids.slice(from, from + unreadPageSize))))
  return all
}
