import type { AgentContext } from '../../../machines/agent/context.js'
import type { Clock } from '../base/clock.js'
import { newId } from '../base/new-id.js'
import type { SessionStore } from './store/store.js'
import { logVersion } from './log/record-content.js'
import { openSession } from './open-session.js'
import { standingAt } from './replay.js'
import { machineStateOf } from './standing.js'

/**
 * A new session that begins where another one stood after record `seq`; the other is left as it is. A run that was under
 * way there can be resumed in both: as another run, with idempotency keys of its own.
 */
export async function fork(
  store: SessionStore,
  sessionId: string,
  seq: number | undefined,
  clock: Clock,
): Promise<string> {
  const { head, name, runs, state, run } = await standingAt(store, sessionId, seq)
  const id = newId()
  const { log } = await openSession(store, id, { clock, holder: 'a fork', name })
  const named = name === undefined ? {} : { name }
  log.write({ type: 'opened', version: logVersion, ...named, state, forkedFrom: { sessionId, seq: head } })
  if (run) {
    const context: AgentContext = { ...run.context, sessionId: id, runId: newId() }
    const forked = machineStateOf(run)
    log.write({ type: 'snapshot', version: logVersion, ...named, runs, state: { ...forked, context } })
    await log.rest(context)
  } else {
    await log.close()
  }
  return id
}
