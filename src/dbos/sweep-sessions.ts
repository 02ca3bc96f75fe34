import type { Agents } from '../core/drive/define-agents.js'
import { listOpenSessions } from '../core/drive/stranded-sessions.js'
import { getListedDefinition } from '../core/sessions/agent-definition.js'
import type { ListedSession, SessionStore } from '../core/sessions/store/store.js'
import { createWaitId, waitPrefix } from './queued-drive.js'
import type { DbosLike, DbosListOptions, DbosWorkflow } from './dbos-sdk.js'
import { isRestState, isActiveState } from '../../machines/agent/run-result.js'
import { isQueuedText, isSteeringText } from '../core/sessions/inbox/queued-message.js'
import type { UnreadInbox } from '../core/sessions/store/inbox.js'

type Found = (session: string, head: number) => Promise<void>

/** A process that just took a request may not have acquired its session yet. */
const graceMs = 3000
const pageSize = 200

/**
 * Finds the work of dead processes: active sessions without a lease owner, and requests that a process took without
 * reaching their session. Two processes that sweep at once queue the same work once.
 */
export async function sweepSessions(
  DBOS: DbosLike,
  agents: Agents,
  store: SessionStore,
  options: { workflowName: string; queueName: string; now: number; found: Found },
): Promise<void> {
  const { workflowName, queueName, now, found } = options
  const left: { id: string; head: number }[] = []
  for await (const listed of listOpenSessions(store, ['RUNNING', 'WAITING_FOR_TOOL'])) {
    const { id, head, holder, updatedAt, summary } = listed
    if (holder !== null || isRecent(updatedAt, now) || summary?.unresumed) continue
    const begun = getListedDefinition(summary)
    // Other processes run the remaining sessions.
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
    // oxlint-disable-next-line no-await-in-loop -- one check at a time
    const listed = await store.get(session)
    // oxlint-disable-next-line no-await-in-loop -- as above
    if (!listed?.holder) await DBOS.resumeWorkflow(workflowID, { queueName })
  }
}

/** Whether a time is recent. The two times come from different clocks, so a time far in the future is not recent. */
function isRecent(at: number, now: number): boolean {
  const age = now - at
  return age >= 0 && age < graceMs
}

const pendingFilter = { status: 'PENDING', loadInput: true } as const
/** Workflows that run after a provider's wait. Their sessions have no lease owner. */
const delayedFilter = { status: 'DELAYED', workflow_id_prefix: waitPrefix } as const

/** Reads all pages, because a dead process can be on any of them. */
async function listAllWorkflows(DBOS: DbosLike, filter: Omit<DbosListOptions, 'limit' | 'offset'>) {
  const found: DbosWorkflow[] = []
  for (let page: readonly DbosWorkflow[] | undefined; page === undefined || page.length === pageSize; ) {
    // oxlint-disable-next-line no-await-in-loop -- one page after the other
    page = await DBOS.listWorkflows({ ...filter, limit: pageSize, offset: found.length })
    found.push(...page)
  }
  return found
}

const inboxPageSize = 500

/** Queues resting sessions with unread messages, again after `againMs` milliseconds. */
export function createInboxPoll(
  agents: Agents,
  store: SessionStore,
  { againMs, found }: { againMs: number; found: Found },
): () => Promise<void> {
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
      const begun = getListedDefinition(listed.summary)
      // oxlint-disable-next-line no-await-in-loop -- as above
      if (begun === null || agents.findAgentFor(begun)) await found(sessionId, listed.head)
    }
  }
}

/** An answer continues a waiting session, a queued message an ended one, but not after a cancelled run. */
async function canContinue(store: SessionStore, { id, summary }: ListedSession): Promise<boolean> {
  const state = summary?.state ?? null
  if (isActiveState(state) || state === 'CANCELLED') return false
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
