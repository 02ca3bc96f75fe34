import { createId } from '../base/platform.js'
import { isQueueStopped } from '../sessions/inbox/queued-message.js'
import { StoreError } from '../sessions/store/store-error.js'
import { Session } from '../sessions/session.js'
import type { Run } from '../run/run.js'
import { acquireSession, beginAcquiredRun, type RunStart, type StoredRuns } from './stored-runs.js'

/** What a queued run is begun with. */
export interface QueuedRunOptions {
  /**
   * What the sender of the message with this id gives its run: the app's own object, and tags. Undefined where the message is
   * not to be said here.
   */
  findSender: (messageId: string) => Pick<RunStart, 'context' | 'tags'> | undefined
  /** Whether the run may begin although the one before it was stopped. */
  afterStop: boolean
}

/**
 * Takes a session whose next run begins with the first message of its queue; the returned function begins it, and a
 * subscriber right after misses nothing. Null: no message waits, the session is at work or waits, or another process has it.
 */
export async function beginQueuedRun(
  stored: StoredRuns,
  id: string,
  { findSender, afterStop }: QueuedRunOptions,
): Promise<(() => Run) | null> {
  const runId = createId()
  const taken = await acquireSession(stored, id, { holder: `run ${runId}` }).catch(ignoreBusy)
  if (taken === null) return null
  const { log, folded } = taken
  const { run, name, state } = folded
  const { parts } = stored
  try {
    const mayBegin = run?.status !== 'active' && (afterStop || !run || !isQueueStopped(run.context))
    const queued = mayBegin ? await log.inbox.findNext((run?.context ?? state).messages) : null
    const found = queued && findSender(queued.messageId)
    if (!queued || !found) {
      await log.close()
      return null
    }
    parts.model.check?.()
    const session = new Session(id, name)
    const start = {
      runId,
      session,
      said: { history: [], newMessages: queued.said },
      config: parts.config,
      context: found.context,
      tags: found.tags,
      queued,
    }
    const origin = await beginAcquiredRun(stored, taken, start)
    return () => stored.run({ runId, session, origin, signal: undefined, inspect: stored.inspect })
  } catch (error) {
    await log.close()
    throw error
  }
}

function ignoreBusy(error: unknown): null {
  if (error instanceof StoreError && error.code === 'session_busy') return null
  throw error
}
