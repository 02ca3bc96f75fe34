import { isRestState, isWorkState } from '../../machines/agent/run-result.js'
import type { Agents } from '../core/drive/define-agents.js'
import { getListedDefinition, listOpenSessions } from '../core/drive/stranded-sessions.js'
import { isQueuedText, isSteeringText } from '../core/sessions/inbox/queued-message.js'
import type { UnreadInbox } from '../core/sessions/store/inbox.js'
import type { ListedSession, SessionStore } from '../core/sessions/store/store.js'

interface InboxPollOptions {
  /** When a session is asked for again that has not heard its message by then, in milliseconds. */
  againMs: number
  /** Queues a session. */
  found: (session: string, head: number) => Promise<void>
}

/** Sessions whose inboxes are asked for in one question. */
const pageSize = 500

/**
 * Looks for sessions that rest and have messages in their inboxes, as from `agent.send` or the command line, and queues each of
 * them.
 */
export function createInboxPoll(
  agents: Agents,
  store: SessionStore,
  { againMs, found }: InboxPollOptions,
): () => Promise<void> {
  /** The message that a session was queued for, and when. */
  let tried = new Map<string, { inbox: number; at: number }>()
  return async () => {
    const now = performance.now()
    const before = tried
    tried = new Map()
    for (const { sessionId, inbox } of await listUnheard(store)) {
      const last = before.get(sessionId)
      if (last?.inbox === inbox && now - last.at < againMs) {
        tried.set(sessionId, last)
        continue
      }
      tried.set(sessionId, { inbox, at: now })
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const listed = await store.get(sessionId)
      if (!listed || listed.holder !== null || !(await canContinue(store, listed))) continue
      const begun = getListedDefinition(listed)
      // oxlint-disable-next-line no-await-in-loop -- as above
      if (begun === null || agents.findAgentFor(begun)) await found(sessionId, listed.head)
    }
  }
}

/**
 * Whether a session was told something that it can take: an answer at its rest, or a queued message after its end. After a
 * cancelled run, the queue waits for the user.
 */
async function canContinue(store: SessionStore, { id, summary }: ListedSession): Promise<boolean> {
  const state = summary?.state ?? null
  if (state === null || isWorkState(state) || state === 'CANCELLED') return false
  const found = (await store.inbox?.read(id)) ?? []
  return found.some(({ text }) =>
    isRestState(state) ? !isQueuedText(text) || isSteeringText(text) : isQueuedText(text),
  )
}

async function listUnheard(store: SessionStore): Promise<UnreadInbox[]> {
  const { inbox } = store
  if (inbox?.listUnread) return inbox.listUnread()
  if (!inbox?.findUnread) return []
  const resting: string[] = []
  for await (const { id } of listOpenSessions(store, ['WAITING_FOR_INPUT', 'PAUSED'])) resting.push(id)
  const all: UnreadInbox[] = []
  for (let from = 0; from < resting.length; from += pageSize)
    // oxlint-disable-next-line no-await-in-loop -- one page after the other
    all.push(...(await inbox.findUnread(resting.slice(from, from + pageSize))))
  return all
}
