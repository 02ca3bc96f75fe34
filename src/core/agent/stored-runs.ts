import type { AgentConfig } from '../../../machines/agent/config.js'
import { refuseMissingTokenizer } from '../effects/refusals.js'
import type { AgentParts } from '../live/parts.js'
import type { Run } from '../run/run.js'
import type { Origin, RunParts } from '../run/run-parts.js'
import type { Inspector } from '../run/safe-inspector.js'
import type { AgentDefinition } from '../sessions/definition.js'
import { type GivenConversation, sessionNotEmpty, withHistory } from '../sessions/history.js'
import type { SessionLog } from '../sessions/log/session-log.js'
import { openSession } from '../sessions/open-session.js'
import { nothingToResume, refuseUnfinished } from '../sessions/refusals.js'
import { Session } from '../sessions/session.js'
import { machineStateOf, type Standing, toldBefore } from '../sessions/standing.js'
import { unknownSession } from '../sessions/store/refusals.js'
import type { SessionStore } from '../sessions/store/store.js'
import type { ChildHost } from '../sub-agents/open-child.js'

/** What the runs of an agent in its store are begun and brought back with. */
export interface StoredRuns extends Pick<ChildHost, 'bind' | 'rebind' | 'ready' | 'run'> {
  parts: AgentParts
  store: SessionStore
  definition: () => AgentDefinition
  /** Told of every run of the agent. */
  inspect: Inspector | undefined
}

/** A session that was taken for one writer, and where it stands. */
export interface TakenSession {
  log: SessionLog
  standing: Standing
}

/** @throws as `openSession` */
export function takeSession(
  { parts, store, definition }: StoredRuns,
  id: string,
  asked: { holder: string; name?: string | undefined; definition?: () => AgentDefinition },
): Promise<TakenSession> {
  return openSession(store, id, { clock: parts.clock, definition, ...asked })
}

/** What a run begins with. */
export interface RunStart {
  runId: string
  session: Session
  said: GivenConversation
  config: AgentConfig
  context: unknown
}

/** A run of a session in the store begins where its log ends. */
export async function beginRun(stored: StoredRuns, start: RunStart): Promise<Origin> {
  const { runId, session } = start
  return beginIn(
    stored,
    await takeSession(stored, session.id, { holder: `run ${runId}`, name: session.name }),
    start,
  )
}

/** The same in a session that was taken already. It is given free when the run cannot begin. */
export async function beginIn(
  stored: StoredRuns,
  { log, standing }: TakenSession,
  { runId, session, said, config, context }: RunStart,
): Promise<Origin> {
  try {
    refuseUnfinished(standing, session.id)
    if (standing.head > 0 && said.history.length > 0) throw sessionNotEmpty(session.id)
    await log.inbox.drop()
    const state = standing.head === 0 ? withHistory(session.state, said, session.id) : standing.state
    const binding = { context, journal: log, store: stored.store }
    const bound = stored.bind(runId, session.id, state, said.said, { config }, binding)
    await stored.ready(bound)
    log.bring(state)
    return { input: bound, log }
  } catch (error) {
    await log.close()
    throw error
  }
}

/** What a run is given that is brought back. */
export type RunRevival = Pick<RunParts, 'signal' | 'inspect'> & { context: unknown }

/** Brings back the latest run of a session. */
export async function resumeRun(stored: StoredRuns, id: string, revival: RunRevival): Promise<Run> {
  return reviveIn(stored, await takeSession(stored, id, { holder: 'a resumed run' }), id, revival)
}

/** The same in a session that was taken already. It is given free when there is nothing to bring back. */
export async function reviveIn(
  { parts, store, rebind, run }: StoredRuns,
  { log, standing }: TakenSession,
  id: string,
  { signal, context, inspect }: RunRevival,
): Promise<Run> {
  try {
    if (standing.run === null) throw standing.head === 0 ? unknownSession(id) : nothingToResume(id)
    // A run that has ended needs no model any more.
    if (standing.run.status === 'active') {
      parts.model.check?.()
      await refuseMissingTokenizer(parts, standing.run.context.config)
    }
    await log.inbox.readFirst()
    const snapshot = machineStateOf(standing.run)
    rebind(snapshot, { context, journal: log, told: toldBefore(standing), link: standing.link, store })
    const session = new Session(id, standing.name)
    session.update(standing.run.context)
    const { runId } = standing.run.context
    return run({ runId, session, origin: { snapshot, log }, signal, inspect })
  } catch (error) {
    await log.close()
    throw error
  }
}
