import type { Agents } from '../core/drive/define-agents.js'
import { getListedDefinition, listOpenSessions } from '../core/drive/stranded-sessions.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { createWaitId, waitPrefix } from './queued-drive.js'
import type { DbosLike, DbosListOptions, DbosWorkflow } from './dbos-sdk.js'

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
