import type { AgentContext, SessionState } from '../../../machines/agent/context.js'
import type { Clock } from '../base/clock.js'
import { createId } from '../base/create-id.js'
import { readSessionAtQuestion, isWaitingForChild } from './child-question.js'
import { getChildSessionId } from './child-session.js'
import type { LoggedEdit } from './fork-edit.js'
import type { SessionStore } from './store/store.js'
import { createOpening, createSnapshot } from './log/create-records.js'
import type { MachineState } from './log/record-content.js'
import { openSession } from './open-session.js'
import { readSessionAt } from './replay-session.js'
import { toMachineState, type FoldedSession } from './fold-session.js'

/** What a fork begins with. */
export interface ForkStart {
  state: SessionState
  /** Null: none has started, or the fork keeps nothing of it but the conversation. */
  run: { machine: MachineState; context: AgentContext } | null
  edit?: LoggedEdit
}

/**
 * A new session that begins where another one stood after record `seq`; the other is left as it is. A run that was under
 * way there can be resumed in both: as another run, with idempotency keys of its own. `change` says what the fork has
 * otherwise.
 */
export async function forkSession(
  store: SessionStore,
  sessionId: string,
  seq: number | undefined,
  clock: Clock,
  change: (folded: FoldedSession) => ForkStart | Promise<ForkStart> = keepUnchanged,
): Promise<string> {
  const folded = await readSessionAt(store, sessionId, seq)
  const beginning = await change(folded)
  const id = createId()
  await writeFork({ store, clock }, id, { sessionId, folded, beginning })
  return id
}

/** Where a session begins that is made of another one. */
interface ForkOrigin {
  sessionId: string
  folded: FoldedSession
  beginning: ForkStart
  /** Of a sub-agent's session: the fork of the session above it. */
  parent?: string
}

async function writeFork(
  parts: ForkParts,
  id: string,
  { sessionId, folded, beginning, parent }: ForkOrigin,
): Promise<void> {
  const { head, name, tags, runs, definition } = folded
  const identity = { name, tags, parent }
  const { state, run, edit } = beginning
  const context: AgentContext | null = run && { ...run.context, sessionId: id, runId: createId() }
  if (context) await copyChildren(parts, { sessionId, folded, beginning }, context)
  const { log } = await openSession(parts.store, id, { clock: parts.clock, holder: 'a fork', name, parent })
  log.facts.addTags(tags, id)
  log.write(createOpening(identity, state, { sessionId, seq: head, ...(edit && { edit }) }))
  if (run && context) {
    log.write(createSnapshot({ ...run.machine, context }, { ...identity, runs, definition }))
    await log.rest(context)
  } else {
    log.setFirstSummary(state)
    await log.close()
  }
}

/** A sub-agent that waits for an answer waits for it in the fork, too: in a session of its own, at the same question. */
async function copyChildren(
  parts: ForkParts,
  { sessionId, folded }: ForkOrigin,
  fork: AgentContext,
): Promise<void> {
  const waiting = fork.calls.filter(isWaitingForChild)
  const from = folded.run?.context
  if (waiting.length === 0 || from === undefined) return
  const { head } = folded
  const [last] = await parts.store.read(sessionId, { from: head, to: head })
  for (const call of waiting) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const child = await readSessionAtQuestion(parts.store, from, call, last?.at ?? Infinity)
    const origin = {
      sessionId: getChildSessionId(from, call.id),
      folded: child,
      beginning: keepUnchanged(child),
      parent: fork.sessionId,
    }
    // oxlint-disable-next-line no-await-in-loop -- as above
    await writeFork(parts, getChildSessionId(fork, call.id), origin)
  }
}

interface ForkParts {
  store: SessionStore
  clock: Clock
}

function keepUnchanged({ state, run }: FoldedSession): ForkStart {
  return { state, run: run && { machine: toMachineState(run), context: run.context } }
}
