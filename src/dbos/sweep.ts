import type { Agents } from '../core/drive/define-agents.js'
import { openSessions } from '../core/drive/stranded.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import type { DbosLike } from './sdk.js'

export interface SweepOptions {
  workflowName: string
  queueName: string
  /** Milliseconds since the epoch. */
  now: number
  /** Has a session driven that nobody drives. */
  found: (session: string, head: number) => Promise<void>
}

/** A process that has just taken a drive from the queue has not taken its session yet. */
const graceMs = 3000
/** At one look; the rest is found at the next. */
const most = 200

/**
 * Looks for what dead processes have left: sessions at work that nobody holds, by their leases; and drives that a process
 * had taken from the queue and that never came to a session. Two that look at once find the same, and queue it once.
 */
export async function sweep(
  DBOS: DbosLike,
  agents: Agents,
  store: SessionStore,
  { workflowName, queueName, now, found }: SweepOptions,
): Promise<void> {
  for await (const { id, head, holder, summary, updatedAt } of openSessions(store, [
    'RUNNING',
    'WAITING_FOR_TOOL',
  ])) {
    if (holder !== null || now - updatedAt < graceMs) continue
    const { agent: name, version } = summary ?? {}
    const begun = name === undefined ? null : { hash: '', name, ...(version !== undefined && { version }) }
    // Of the rest, other processes will take care.
    if (begun === null || agents.acceptorOf(begun)) await found(id, head)
  }
  const pending = await DBOS.listWorkflows({ workflowName, status: 'PENDING', limit: most, loadInput: true })
  for (const { workflowID, executorId, input, dequeuedAt, updatedAt } of pending) {
    const { session } = (input?.[0] ?? {}) as { session?: unknown }
    const isYoung = now - (dequeuedAt ?? updatedAt ?? 0) < graceMs
    if (executorId === DBOS.executorID || isYoung || typeof session !== 'string') continue
    // oxlint-disable-next-line no-await-in-loop -- few, and one look at a time
    const listed = await store.get(session)
    // oxlint-disable-next-line no-await-in-loop -- as above
    if (!listed?.holder) await DBOS.resumeWorkflow(workflowID, { queueName })
  }
}
