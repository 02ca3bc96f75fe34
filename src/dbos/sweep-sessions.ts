import type { Agents } from '../core/drive/define-agents.js'
import { listOpenSessions } from '../core/drive/stranded-sessions.js'
import { getListedDefinition } from '../core/sessions/agent-definition.js'
import type { ListedSession, SessionStore } from '../core/sessions/store/store.js'
import type { DbosLike, DbosListOptions, DbosWorkflow } from './dbos-sdk.js'
import { isRestState, isActiveState } from '../../machines/agent/run-result.js'
import { isQueuedText, isSteeringText } from '../core/sessions/inbox/queued-message.js'
import { listUnread } from '../core/sessions/inbox/inbox-owners.js'
import { optionError } from '../core/base/errors.js'
import type { SessionAnswer } from '../core/drive/drive-answers.js'
import { checkDriveOptions } from '../core/drive/drive-options.js'
import type { SessionResult } from '../core/drive/drive-rest.js'

type Found = (session: string, head: number) => Promise<void>

const waitPrefix = 'wait:'

const createWaitId = (session: string, head: number): string => `${waitPrefix}${session}:${head}:`

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
    const resting = listOpenSessions(store, ['WAITING_FOR_INPUT', 'PAUSED'])
    for (const { sessionId, inbox } of await listUnread(store, resting)) {
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

/** A request to run a session, including its answers: at most 1,000 bytes of JSON. */
export interface DbosEnqueueRequest {
  session: string
  /** Input of the run. Defaults to the result of `loadInput`, which may be longer. */
  input?: string
  /** The turn to run; see `runSession`. Defaults to the first. */
  turn?: number
  agent?: string
  /** The priority, of which 0 is the highest. Defaults to 10 for new sessions and 5 for started ones. */
  priority?: number
}

export interface QueuedDrive extends DbosEnqueueRequest {
  answers?: readonly SessionAnswer[]
  at?: number
  /** The id of the first attempt, and the number of attempts. */
  base: string
  attempt: number
  begins?: boolean
  refused?: number
}

/** A request that another process must run, or this process after a delay. */
export interface RefusedDrive {
  /** Delay in milliseconds. */
  later: number
  refused: number
}

/**
 * Validates a request that enters or leaves the queue, because other programs can write to the queue.
 * @throws {UsageError} `invalid_session`, `invalid_option`, naming the key
 */
export function checkDrive(drive: unknown): void {
  if (typeof drive !== 'object' || drive === null)
    throw optionError('enqueue takes { session, input, … }.', 'session')
  const { session, turn, agent, answers, at, input, priority } = drive as Partial<QueuedDrive>
  checkDriveOptions({ session, turn, agent, answers, at })
  if (input !== undefined && typeof input !== 'string')
    throw optionError('The input of enqueue must be a string, because DBOS stores it.', 'input')
  if (priority !== undefined && !(Number.isSafeInteger(priority) && priority >= 0))
    throw optionError('The priority of enqueue must be a non-negative integer.', 'priority')
}

/** The single request after a wait, whatever arrives in the meantime. Answers are queued separately. */
export function createDriveAfterWait(queued: QueuedDrive, rest: SessionResult): QueuedDrive {
  const next = toResumingDrive(queued, rest)
  const base = next.answers ? queued.base : `${createWaitId(rest.session, rest.head)}${rest.waitUntil}`
  const attempt = base === queued.base ? queued.attempt + 1 : 0
  return { ...next, base, attempt }
}

/** The request that wakes a sleeping session: one for each sleep, and a second one if that came too early. */
export function createDriveAfterSleep(queued: QueuedDrive, rest: SessionResult): QueuedDrive {
  const base = `sleep:${rest.session}:${rest.head}:${rest.wakeAt}`
  return { session: rest.session, base, attempt: base === queued.base ? queued.attempt + 1 : 0 }
}

/** Does not start a deleted session again, and omits answers that the run has read. */
export function toResumingDrive(
  { input: _input, begins: _begins, refused: _refused, answers, ...queued }: QueuedDrive,
  { undelivered: unsaid }: Pick<SessionResult, 'undelivered'>,
): QueuedDrive {
  return { ...queued, ...(unsaid && answers && { answers }) }
}

/** Increasing delay before the next attempt of a refused request, in milliseconds. */
export const getRetryDelay = (refused: number): number => Math.min(30_000, 500 * 2 ** Math.min(refused, 10))
