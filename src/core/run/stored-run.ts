import { outlivesRun } from '../sessions/grant-input.js'
import type { AgentRuntime, Binding } from '../live/runtime.js'
import { getChildSessionId } from '../sessions/agent-definition.js'
import type { AgentContext, AgentMachineEvent, ControlEvent } from '../../../machines/agent/context.js'
import { isFinalState, openStates } from '../../../machines/agent/run-result.js'
import { unrefTimer, wait } from '../base/clock.js'
import { listOpenChildren, mayHaveLeftChildren } from '../live/abandoned-sub-agents.js'
import { isQueuedText } from '../sessions/inbox/queued-message.js'
import { parseInboxMessage, type Receipt } from '../sessions/inbox/session-message.js'
import { leaseMs } from '../sessions/log/lease.js'
import { openSession, type AcquiredSession, type StoreParts } from '../sessions/open-session.js'
import { type FoldedRun, type FoldedSession, getLastEventSeq, takeEvent } from '../sessions/fold-session.js'
import type { InboxMessage } from '../sessions/store/inbox.js'
import type { SessionLog } from '../sessions/log/session-log.js'
import type { ListedSession, SessionStore } from '../sessions/store/store.js'
import type { RunParts } from './run-parts.js'
import { isSessionBusy, StoreError } from '../sessions/store/store-error.js'
import { setAlarm } from '../sessions/alarm.js'

/** Delays before a cancel tries again to acquire a session that another process holds, in milliseconds. */
const cancelPauses = [20, 100, 500]

/**
 * For a session without a lease owner, or at rest. A process that runs it in the meantime reads the message, but one that
 * holds it to read or to change it does not.
 */
export async function cancelStoredRun(
  parts: StoreParts,
  sessionId: string,
  message: number,
  [pauseMs, ...laterPauses]: readonly number[] = cancelPauses,
): Promise<Receipt['status']> {
  const status = await withMessage(parts, sessionId, message, 'cancels', async (session, cancel, waiting) => {
    if (session.folded.run?.status === 'active' && cancel)
      await endStoredRun(parts, session, { ...cancel, inbox: message }, waiting)
    return 'applied'
  })
  if (status === 'applied' || pauseMs === undefined) return status
  await wait(parts.clock, pauseMs)
  return cancelStoredRun(parts, sessionId, message, laterPauses)
}

export async function releaseOnError<Outcome>(
  log: AcquiredSession['log'],
  work: () => Promise<Outcome>,
): Promise<Outcome> {
  try {
    return await work()
  } catch (error) {
    await log.close()
    throw error
  }
}

async function withSession<Outcome>(
  { store, clock }: StoreParts,
  sessionId: string,
  purpose: 'cancels' | 'ends' | 'postpones',
  work: (session: AcquiredSession) => Promise<Outcome>,
): Promise<Outcome> {
  const session = await openSession(store, sessionId, { clock, holder: `a process that ${purpose} it` })
  try {
    return await work(session)
  } finally {
    await session.log.close()
  }
}

/**
 * Holds the session while `work` applies a message from its inbox. Returns `sent` if another process holds the session
 * and reads the message.
 */
async function withMessage(
  parts: StoreParts,
  sessionId: string,
  message: number,
  purpose: 'cancels' | 'postpones',
  work: (
    session: AcquiredSession,
    event: ControlEvent | null | undefined,
    inbox: readonly InboxMessage[],
  ) => Promise<Receipt['status']>,
): Promise<Receipt['status']> {
  try {
    return await withSession(parts, sessionId, purpose, async (session) => {
      const inbox = await readInbox(parts.store, sessionId)
      const found = inbox.find((one) => one.message === message)
      return work(session, found && parseInboxMessage(found), inbox)
    })
  } catch (error) {
    if (isSessionBusy(error)) return 'sent'
    throw error
  }
}

/** Writes an event after which the run rests or ends. Returns the number of the run's last event. */
async function writeRest(
  { log, folded }: AcquiredSession,
  event: AgentMachineEvent,
  [next, actions]: ReturnType<typeof takeEvent>,
): Promise<number> {
  const eventCount = actions.filter(({ type }) => (type as string) === 'xstate.emit').length
  const count = (folded.lastEventSeq ?? 0) + eventCount
  log.setEventCounter(() => count)
  log.append({ type: 'event', event })
  await log.rest(next.context)
  return count
}

/**
 * Ends the run of an acquired session with an event that leads to a final state. Afterwards, the session is released,
 * its inbox is empty and its sub-agents are cancelled. `waiting` is the inbox if it was already read.
 */
export async function endStoredRun(
  parts: StoreParts,
  session: AcquiredSession,
  ending: AgentMachineEvent,
  waiting?: readonly InboxMessage[],
): Promise<FoldedSession> {
  const { store, clock } = parts
  const { log, folded } = session
  const { run } = folded
  if (run === null) return folded
  // The clock of the previous process may be ahead of ours, but the time of a run must not go backwards.
  const event: AgentMachineEvent = { now: Math.max(clock.now(), folded.at), ...ending }
  const moved = takeEvent(run, event)
  // Messages that arrive later belong to a later run.
  const found = waiting ?? (await readInbox(store, log.sessionId))
  const lastEventSeq = await writeRest(session, event, moved)
  // An end takes precedence, so other messages are discarded. Queued messages wait for the next turn.
  const messages = found
    .filter((one) => !isQueuedText(one.text) && !outlivesRun(parseInboxMessage(one)))
    .map(({ message }) => message)
  if (messages.length > 0) await store.inbox?.remove(log.sessionId, messages)
  const open = listOpenChildren(run.context)
  for (const child of open) {
    await endChildSession(parts, child)
  }
  if (mayHaveLeftChildren(run.context)) await endChildrenExcept(parts, log.sessionId, open)
  return { ...folded, run: moved[0], lastEventSeq, head: log.head }
}

export const readInbox = async (store: SessionStore, sessionId: string): Promise<readonly InboxMessage[]> =>
  (await store.inbox?.read(sessionId)) ?? []

/** Ends the unfinished sub-agents of a session in the store, except the listed ones. Never rejects. */
async function endChildrenExcept(
  parts: StoreParts,
  parent: string,
  except: readonly string[],
): Promise<void> {
  let left: readonly ListedSession[]
  try {
    left = await parts.store.list({ parent, state: openStates })
  } catch {
    // The next process that acquires the session will try again.
    return
  }
  for (const { id } of left) {
    if (!except.includes(id)) await endChildSession(parts, id)
  }
}

/** Delay in milliseconds and maximum number of retries for ending a session that another process holds. */
const [retryMs, mostRetries] = [leaseMs / 3, 4]

/**
 * Ends the run of a sub-agent whose call was closed by its parent. After a crash, the session is held until its lease
 * expires, so this retries without keeping the process alive. Never rejects.
 */
async function endChildSession(parts: StoreParts, child: string, tries = mostRetries): Promise<void> {
  if (await endIfFree(parts, child)) return
  if (tries === 0) return
  const timer = parts.clock.setTimeout(() => void endChildSession(parts, child, tries - 1), retryMs)
  unrefTimer(timer)
}

/** Ends the run if it has not ended. Returns false if another process holds the session or the store is unavailable. */
async function endIfFree(parts: StoreParts, child: string): Promise<boolean> {
  try {
    // The session may not have any records.
    const { state } = (await parts.store.get(child))?.summary ?? {}
    if (state === undefined || state === null || isFinalState(state)) return true
    return await withSession(parts, child, 'ends', async (session) => {
      const why = 'The run that called it has ended.'
      if (session.folded.run?.status === 'active') await endStoredRun(parts, session, { type: 'CANCEL', why })
      return true
    })
  } catch (error) {
    return error instanceof StoreError && !['session_busy', 'store_unavailable'].includes(error.code)
  }
}

/**
 * Applies a dated `resume` from the inbox of a session without a lease owner, using only the store. The run sleeps
 * until that date. If other messages come first, or the run does not sleep, an alarm wakes the session at that date.
 */
export async function postponeStoredRun(
  parts: StoreParts,
  sessionId: string,
  message: number,
): Promise<Receipt['status']> {
  const { store, clock } = parts
  return withMessage(parts, sessionId, message, 'postpones', async (session, resume, inbox) => {
    const { folded, log } = session
    if (resume?.type !== 'RESUME' || resume.at === undefined) return 'waiting'
    const { run } = folded
    const event = { ...resume, now: Math.max(clock.now(), folded.at), inbox: message }
    // Messages in the log and those for the next turn may be left in the inbox.
    const first = inbox.find((one) => one.message > folded.inbox && parseInboxMessage(one) !== null)
    const moved = run?.status === 'active' && first?.message === message ? takeEvent(run, event) : null
    if (moved?.[0].context.state !== 'PAUSED') {
      await setAlarm(store, sessionId, resume.at, folded.definition)
      return 'waiting'
    }
    await writeRest(session, event, moved)
    log.inbox.remove([message])
    return 'applied'
  })
}

/** Ends the run of a call found by `findAbandonedCalls`, so that its log does not stay open forever. Never rejects. */
export async function endAbandonedChild(
  { binding, clock }: AgentRuntime,
  context: AgentContext,
  callId: string,
): Promise<void> {
  const { store, journal } = binding
  if (!store) return
  try {
    await journal?.flush()
    await endChildSession({ store, clock }, getChildSessionId(context, callId))
  } catch {
    // The log does not record that the call is closed, so another process will resume the run and its sub-agents.
  }
}

/** Ends unfinished sub-agents of earlier processes, when a process acquires the parent session. Never rejects. */
export async function endLeftChildren(parts: StoreParts, { run }: Pick<FoldedSession, 'run'>): Promise<void> {
  if (run === null || !mayHaveLeftChildren(run.context)) return
  const isOpen = run.status === 'active' ? listOpenChildren(run.context) : []
  await endChildrenExcept(parts, run.context.sessionId, isOpen)
}

export function bindStoredRun(
  bindings: WeakMap<object, Binding>,
  log: SessionLog,
  folded: FoldedSession,
  run: FoldedRun,
  binding: Binding,
): Pick<RunParts, 'runId' | 'origin'> {
  const lastEventSeq = getLastEventSeq(folded)
  bindings.set(run, { ...binding, journal: log, lastEventSeq, link: folded.link })
  return { runId: run.context.runId, origin: { snapshot: run, log } }
}
