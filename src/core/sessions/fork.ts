import type { AgentContext, SessionState } from '../../../machines/agent/context.js'
import type { Clock } from '../base/clock.js'
import { newId } from '../base/new-id.js'
import type { WrittenEdit } from './fork-edit.js'
import type { SessionStore } from './store/store.js'
import { logVersion, type MachineState } from './log/record-content.js'
import { openSession } from './open-session.js'
import { standingAt } from './replay.js'
import { machineStateOf, type Standing } from './standing.js'

/** What a fork begins with. */
export interface Beginning {
  state: SessionState
  /** Null: none has started, or the fork keeps nothing of it but the conversation. */
  run: { machine: MachineState; context: AgentContext } | null
  edit?: WrittenEdit
}

/**
 * A new session that begins where another one stood after record `seq`; the other is left as it is. A run that was under
 * way there can be resumed in both: as another run, with idempotency keys of its own. `change` says what the fork has
 * otherwise.
 */
export async function fork(
  store: SessionStore,
  sessionId: string,
  seq: number | undefined,
  clock: Clock,
  change: (standing: Standing) => Beginning | Promise<Beginning> = asItStands,
): Promise<string> {
  const standing = await standingAt(store, sessionId, seq)
  const { head, name, runs, definition } = standing
  const { state, run, edit } = await change(standing)
  const id = newId()
  const { log } = await openSession(store, id, { clock, holder: 'a fork', name })
  const named = name === undefined ? {} : { name }
  const forkedFrom = { sessionId, seq: head, ...(edit && { edit }) }
  log.write({ type: 'opened', version: logVersion, ...named, state, forkedFrom })
  if (run) {
    const context: AgentContext = { ...run.context, sessionId: id, runId: newId() }
    const begun = definition === null ? {} : { definition }
    const state = { ...run.machine, context }
    log.write({ type: 'snapshot', version: logVersion, ...named, runs, ...begun, state })
    await log.rest(context)
  } else {
    await log.close()
  }
  return id
}

function asItStands({ state, run }: Standing): Beginning {
  return { state, run: run && { machine: machineStateOf(run), context: run.context } }
}
