import type { AgentContext, SessionState } from '../../../machines/agent/context.js'
import type { Clock } from '../base/clock.js'
import { newId } from '../base/new-id.js'
import { standingAtQuestion, waitsForChild } from './child-question.js'
import { childSessionId } from './child-session.js'
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
  const beginning = await change(standing)
  const id = newId()
  await writeFork({ store, clock }, id, { sessionId, standing, beginning })
  return id
}

/** Where a session begins that is made of another one. */
interface Origin {
  sessionId: string
  standing: Standing
  beginning: Beginning
}

async function writeFork(
  parts: ForkParts,
  id: string,
  { sessionId, standing, beginning }: Origin,
): Promise<void> {
  const { head, name, runs, definition } = standing
  const { state, run, edit } = beginning
  const context: AgentContext | null = run && { ...run.context, sessionId: id, runId: newId() }
  if (context) await copyChildren(parts, { sessionId, standing, beginning }, context)
  const { log } = await openSession(parts.store, id, { clock: parts.clock, holder: 'a fork', name })
  const named = name === undefined ? {} : { name }
  const forkedFrom = { sessionId, seq: head, ...(edit && { edit }) }
  log.write({ type: 'opened', version: logVersion, ...named, state, forkedFrom })
  if (run && context) {
    const begun = definition === null ? {} : { definition }
    const state = { ...run.machine, context }
    log.write({ type: 'snapshot', version: logVersion, ...named, runs, ...begun, state })
    await log.rest(context)
  } else {
    await log.close()
  }
}

/** A sub-agent that waits for an answer waits for it in the fork, too: in a session of its own, at the same question. */
async function copyChildren(
  parts: ForkParts,
  { sessionId, standing }: Origin,
  fork: AgentContext,
): Promise<void> {
  const waiting = fork.calls.filter(waitsForChild)
  const from = standing.run?.context
  if (waiting.length === 0 || from === undefined) return
  const { head } = standing
  const [last] = await parts.store.read(sessionId, { from: head, to: head })
  for (const call of waiting) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const child = await standingAtQuestion(parts.store, from, call, last?.at ?? Infinity)
    const origin = { sessionId: childSessionId(from, call.id), standing: child, beginning: asItStands(child) }
    // oxlint-disable-next-line no-await-in-loop -- as above
    await writeFork(parts, childSessionId(fork, call.id), origin)
  }
}

interface ForkParts {
  store: SessionStore
  clock: Clock
}

function asItStands({ state, run }: Standing): Beginning {
  return { state, run: run && { machine: machineStateOf(run), context: run.context } }
}
