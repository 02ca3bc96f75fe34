import type { AgentConfig } from '../../../machines/agent/config.js'
import { checkTokenizerInstalled } from '../effects/check-run-start.js'
import type { AgentParts } from '../live/agent-parts.js'
import { endStoredRun } from '../run/end-stored-run.js'
import type { Run } from '../run/run.js'
import type { RunOrigin, RunParts } from '../run/run-parts.js'
import type { Inspector } from '../run/safe-inspector.js'
import { acceptsDefinition, type AgentDefinition, type AgentLabel } from '../sessions/definition.js'
import { type GivenConversation, sessionNotEmpty, withHistory } from '../sessions/history.js'
import { openSession, type TakenSession } from '../sessions/open-session.js'
import { nothingToResume, refuseUnfinished, stranded } from '../sessions/refusals.js'
import { Session } from '../sessions/session.js'
import { machineStateOf, type Standing, toldBefore } from '../sessions/standing.js'
import { unknownSession } from '../sessions/store/refusals.js'
import type { SessionStore } from '../sessions/store/store.js'
import type { ChildHost } from '../sub-agents/open-child.js'

/** What the runs of an agent in its store are begun and brought back with. */
export interface StoredRuns extends Pick<ChildHost, 'bind' | 'bindSnapshot' | 'ready' | 'run'> {
  parts: AgentParts
  store: SessionStore
  definition: () => AgentDefinition
  /** How `defineAgents` calls the agent; undefined where it is in no such list. */
  label: () => AgentLabel | undefined
  /** Told of every run of the agent. */
  inspect: Inspector | undefined
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
export async function beginRun(stored: StoredRuns, start: RunStart): Promise<RunOrigin> {
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
): Promise<RunOrigin> {
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

/**
 * The same in a session that was taken already: every way to go on with a run ends here. The session is given free when
 * there is nothing to bring back, or when another agent began it. A run that was brought back too often is ended.
 * @throws {UsageError} `unknown_session`, `nothing_to_resume`, `stranded`
 */
export async function reviveIn(
  stored: StoredRuns,
  taken: TakenSession,
  id: string,
  { signal, context, inspect }: RunRevival,
): Promise<Run> {
  const { parts, store, bindSnapshot, run, label } = stored
  const { log } = taken
  try {
    if (taken.standing.run?.status === 'active' && !acceptsDefinition(label(), taken.standing.definition))
      throw stranded(id, taken.standing.definition, [label()])
    const standing = await endPoisoned(stored, taken)
    if (standing.run === null) throw standing.head === 0 ? unknownSession(id) : nothingToResume(id)
    // A run that has ended needs no model any more.
    if (standing.run.status === 'active') {
      parts.model.check?.()
      await checkTokenizerInstalled(parts, standing.run.context.config)
    }
    await log.inbox.readFirst()
    const snapshot = machineStateOf(standing.run)
    bindSnapshot(snapshot, { context, journal: log, told: toldBefore(standing), link: standing.link, store })
    const session = new Session(id, standing.name)
    session.update(standing.run.context)
    const { runId } = standing.run.context
    return run({ runId, session, origin: { snapshot, log }, signal, inspect })
  } catch (error) {
    await log.close()
    throw error
  }
}

/** How often a run may be brought back before anything comes of it. */
const mostRevivals = 5

/** A run that ends every process that goes on with it is ended in the log. Returns where the session stands then. */
function endPoisoned({ parts, store }: StoredRuns, taken: TakenSession): Promise<Standing> | Standing {
  const { log, standing } = taken
  if (standing.run?.status !== 'active' || standing.resumed < mostRevivals) return standing
  const message =
    `The session was taken up ${mostRevivals} times without one new record: whatever it does next ends its process. Look ` +
    `at its last records; agent.fork('${log.sessionId}') goes on from there.`
  return endStoredRun({ store, clock: parts.clock }, taken, {
    type: 'STORE_FAILED',
    failure: { code: 'poisoned', message },
  })
}
