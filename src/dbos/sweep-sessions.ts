import type { Agents } from '../core/drive/define-agents.js'
import { getListedDefinition, listOpenSessions } from '../core/drive/stranded-sessions.js'
import type { ListedSession, SessionStore } from '../core/sessions/store/store.js'
import { createWaitId, waitPrefix } from './queued-drive.js'
import type { DbosLike, DbosListOptions, DbosWorkflow } from './dbos-sdk.js'
import { isRestState, isWorkState } from '../../machines/agent/run-result.js'
import { isQueuedText, isSteeringText } from '../core/sessions/inbox/queued-message.js'
import type { UnreadInbox } from '../core/sessions/store/inbox.js'

export interface SweepOptions {
  workflowName: string
  queueName: string
  /** Milliseconds since the epoch. */
  now: number
  /** Queues a session whose process has died. */
  found: (session: string, head: number) => Promise<void>
}

/** A process that has just taken a request from the queue has not acquired its session yet. */
const graceMs = 3000
const pageSize = 200

/**
 * Looks for what dead processes have left: sessions at work without a holder, by their leases; and requests that a process took from
 * the queue and that never reached a session. Two processes that look at once find the same, and queue it once.
 */
export async function sweepSessions(
  DBOS: DbosLike,
  agents: Agents,
  store: SessionStore,
  { workflowName, queueName, now, found }: SweepOptions,
): Promise<void> {
  const left: { id: string; head: number }[] = []
  for await (const listed of listOpenSessions(store, ['RUNNING', 'WAITING_FOR_TOOL'])) {
    const { id, head, holder, updatedAt, summary } = listed
    if (holder !== null || isRecent(updatedAt, now) || summary?.unresumed) continue
    const begun = getListedDefinition(listed)
    // Of the rest, other processes will take care.
    if (begun === null || agents.findAgentFor(begun)) left.push({ id, head })
  }
  const waits = left.length > 0 ? await listAllWorkflows(DBOS, { workflowName, ...delayedFilter }) : []
  // oxlint-disable-next-line no-await-in-loop -- one after the other
  for (const { id, head } of left)
    if (!waits.some(({ workflowID }) => workflowID.startsWith(createWaitId(id, head)))) await found(id, head)
  for (const { workflowID, executorId, input, dequeuedAt, updatedAt } of await listAllWorkflows(DBOS, {
    workflowName,
    ...pendingFilter,
  })) {
    const { session } = (input?.[0] ?? {}) as { session?: unknown }
    if (executorId === DBOS.executorID || typeof session !== 'string') continue
    if (isRecent(dequeuedAt ?? updatedAt ?? 0, now)) continue
    // oxlint-disable-next-line no-await-in-loop -- one look at a time
    const listed = await store.get(session)
    // oxlint-disable-next-line no-await-in-loop -- as above
    if (!listed?.holder) await DBOS.resumeWorkflow(workflowID, { queueName })
  }
}

/** By two clocks: what one of them has yet to come to is not young, but told by another clock. */
function isRecent(at: number, now: number): boolean {
  const age = now - at
  return age >= 0 && age < graceMs
}

/** What a process has taken. */
const pendingFilter = { status: 'PENDING', loadInput: true } as const
/** What runs when a wait is over that a provider asked for: no process holds such a session, and none should. */
const delayedFilter = { status: 'DELAYED', workflow_id_prefix: waitPrefix } as const

/** All of them: however many are alive, a dead one is among them. */
async function listAllWorkflows(
  DBOS: DbosLike,
  asked: Omit<DbosListOptions, 'limit' | 'offset'>,
): Promise<DbosWorkflow[]> {
  const found: DbosWorkflow[] = []
  for (let page: readonly DbosWorkflow[] | undefined; page === undefined || page.length === pageSize; ) {
    // oxlint-disable-next-line no-await-in-loop -- one page after the other
    page = await DBOS.listWorkflows({ ...asked, limit: pageSize, offset: found.length })
    found.push(...page)
  }
  return found
}

interface InboxPollOptions {
  /** When a session is asked for again that has not heard its message by then, in milliseconds. */
  againMs: number
  /** Queues a session. */
  found: (session: string, head: number) => Promise<void>
}

/** Sessions whose inboxes are asked for in one question. */
const inboxPageSize = 500

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
  for (let from = 0; from < resting.length; from += inboxPageSize)
    // oxlint-disable-next-line no-await-in-loop -- one page after the other
    all.push(...(await inbox.findUnread(resting.slice(from, from + inboxPageSize))))
  return all
}
