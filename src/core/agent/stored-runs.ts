import type { AgentConfig } from '../../../machines/agent/config.js'
import { addRequester, type Principal } from '../../../machines/agent/principal.js'
import type { BudgetsOption } from '../budgets/shared-budget.js'
import { checkTokenizerInstalled } from '../effects/check-run-start.js'
import { type AgentParts, isLostSpeaker } from '../live/agent-parts.js'
import { endLeftChildren, endStoredRun } from '../run/end-stored-run.js'
import type { Run } from '../run/run.js'
import type { RunOrigin, RunParts } from '../run/run-parts.js'
import type { Inspector } from '../run/safe-listeners.js'
import { acceptsDefinition, type AgentDefinition, type AgentLabel } from '../sessions/agent-definition.js'
import { type InputConversation, sessionNotEmptyError, addHistory } from '../sessions/input-history.js'
import type { QueuedMessage } from '../sessions/inbox/queued-message.js'
import { openSession, type AcquiredSession } from '../sessions/open-session.js'
import { addBranch, type BranchStart, unbranched } from '../sessions/branch-tree.js'
import { cutState } from '../sessions/session-state.js'
import {
  lostSpeakerError,
  nothingToResumeError,
  refuseSubAgentSession,
  refuseUnfinishedRun,
  strandedError,
} from '../sessions/session-errors.js'
import { Session } from '../sessions/session.js'
import { toMachineState, type FoldedSession, getLastEventSeq } from '../sessions/fold-session.js'
import { unknownSessionError } from '../sessions/store/store-error.js'
import type { SessionTags } from '../sessions/store/session-tags.js'
import type { SessionStore } from '../sessions/store/store.js'
import type { ChildHost } from '../sub-agents/open-child.js'
import { checkModels } from './read-parts.js'

/** Starts and resumes the runs of an agent in its store. */
export interface StoredRuns extends Pick<ChildHost, 'bind' | 'bindSnapshot' | 'ready' | 'run'> {
  parts: AgentParts
  store: SessionStore
  definition: () => AgentDefinition
  /** The agent's name in `defineAgents`, or undefined. */
  label: () => AgentLabel | undefined
  inspect: Inspector | undefined
}

/**
 * Acquires a session and ends unfinished sub-agent runs of earlier processes.
 * @throws as `openSession`
 */
export async function acquireSession(
  { parts, store, definition }: StoredRuns,
  id: string,
  request: { holder: string; name?: string | undefined; definition?: () => AgentDefinition },
): Promise<AcquiredSession> {
  const { clock, interpreter } = parts
  const acquired = await openSession(store, id, { clock, definition, interpreter, ...request })
  await endLeftChildren({ store, clock }, acquired.folded)
  return acquired
}

export interface RunStart {
  runId: string
  session: Session
  conversation: InputConversation
  config: AgentConfig
  context: unknown
  /** The queued message that became the input. */
  queued?: QueuedMessage | undefined
  tags: SessionTags | undefined
  /** The author of the input. Queued messages have their own author. */
  requesters?: readonly Principal[] | undefined
  /** Additional shared budgets. */
  budgets?: BudgetsOption | undefined
  branch?: BranchStart | undefined
}

/** Starts a run after the last record of its session. */
export async function beginRun(stored: StoredRuns, start: RunStart): Promise<RunOrigin> {
  const { runId, session } = start
  return beginAcquiredRun(
    stored,
    await acquireSession(stored, session.id, { holder: `run ${runId}`, name: session.name }),
    start,
  )
}

/** Starts a run in an acquired session, which is released if the run cannot start. */
export async function beginAcquiredRun(
  stored: StoredRuns,
  { log, folded }: AcquiredSession,
  { runId, session, conversation, config, context, tags, requesters, budgets, queued, branch }: RunStart,
): Promise<RunOrigin> {
  try {
    refuseSubAgentSession(session.id, folded.parent)
    refuseUnfinishedRun(folded, session.id)
    if (folded.head > 0 && conversation.history.length > 0) throw sessionNotEmptyError(session.id)
    if (tags !== undefined) log.facts.addTags(tags, session.id)
    await log.inbox.discard()
    const stateBefore = folded.head === 0 ? addHistory(session.state, conversation, session.id) : folded.state
    const state = branch ? cutState(stateBefore, branch) : stateBefore
    const binding = { context, journal: log, store: stored.store, budgets, tags: () => log.facts.tags }
    const authors = queued ? addRequester([], queued.by) : { requesters }
    const bound = stored.bind(
      runId,
      session.id,
      state,
      conversation.newMessages,
      { config, ...authors },
      binding,
    )
    await stored.ready(bound)
    log.addInitialState(state)
    if (branch) {
      const tree = folded.branches ?? unbranched
      log.facts.setBranch(branch, (seq) => addBranch(tree, branch, { messages: stateBefore.messages, seq }))
    }
    if (queued === undefined) return { input: bound, log }
    log.setQueued(queued.message)
    return { input: bound, log, queuedId: queued.messageId }
  } catch (error) {
    await log.close()
    throw error
  }
}

/** The options of a resumed run. */
export type RunResumption = Pick<RunParts, 'signal' | 'inspect'> & {
  context: unknown
  budgets?: BudgetsOption | undefined
}

/** Resumes the latest run of a session. */
export async function resumeRun(stored: StoredRuns, id: string, revival: RunResumption): Promise<Run> {
  return resumeAcquiredRun(stored, await acquireSession(stored, id, { holder: 'a resumed run' }), id, revival)
}

/**
 * Resumes the run of an acquired session. If it has no run, or another agent started the run, the session is released.
 * A run that was resumed too often is ended.
 * @throws {UsageError} `unknown_session`, `nothing_to_resume`, `stranded`
 */
export async function resumeAcquiredRun(
  stored: StoredRuns,
  acquired: AcquiredSession,
  id: string,
  { signal, context, budgets, inspect }: RunResumption,
): Promise<Run> {
  const { parts, store, bindSnapshot, run, label } = stored
  const { log } = acquired
  try {
    if (acquired.folded.run?.status === 'active' && !acceptsDefinition(label(), acquired.folded.definition))
      throw strandedError(id, acquired.folded.definition, [label()])
    const folded = await endPoisonedRun(stored, acquired)
    if (folded.run === null) throw folded.head === 0 ? unknownSessionError(id) : nothingToResumeError(id)
    // A run that has ended needs no model.
    if (folded.run.status === 'active') {
      checkModels(parts)
      const { speaker } = folded.run.context
      if (isLostSpeaker(parts.tools, speaker)) throw lostSpeakerError(speaker)
      await checkTokenizerInstalled(parts, folded.run.context.config)
    }
    await log.inbox.readFirst()
    const snapshot = toMachineState(folded.run)
    bindSnapshot(snapshot, {
      context,
      journal: log,
      lastEventSeq: getLastEventSeq(folded),
      link: folded.link,
      store,
      budgets,
      tags: () => log.facts.tags,
    })
    const session = new Session(id, folded.name)
    session.update(folded.run.context)
    const { runId } = folded.run.context
    return run({ runId, session, origin: { snapshot, log }, signal, inspect })
  } catch (error) {
    await log.close()
    throw error
  }
}

/** Maximum number of resumes without progress. */
const maxResumes = 5

/** Ends a run that crashes every process that resumes it. Returns the resulting state of the session. */
function endPoisonedRun(
  { parts, store }: StoredRuns,
  acquired: AcquiredSession,
): Promise<FoldedSession> | FoldedSession {
  const { log, folded } = acquired
  if (folded.run?.status !== 'active' || folded.resumeCount < maxResumes) return folded
  const message =
    `The session was resumed ${maxResumes} times without a new record, so its next step seems to crash the process. Read its ` +
    `last records. agent.fork('${log.sessionId}') creates a session that continues from there.`
  return endStoredRun({ store, clock: parts.clock }, acquired, {
    type: 'STORE_FAILED',
    failure: { code: 'poisoned', message },
  })
}
