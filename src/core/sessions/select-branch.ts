import type { AgentContext } from '../../../machines/agent/context.js'
import { UsageError, optionError } from '../base/errors.js'
import { getBranch, returnToBranch, type BranchTree, unbranched } from './branch-tree.js'
import { toMachineState } from './fold-session.js'
import { createSnapshot } from './log/create-records.js'
import { openSession, type StoreParts } from './open-session.js'
import { readSessionAt, type SessionSnapshot, toSessionSnapshot } from './replay-session.js'
import { refuseUnfinishedRun } from './session-errors.js'
import { unknownSessionError } from './store/store-error.js'
import { checkSessionId } from './store/session-id.js'
import type { SessionStore } from './store/store.js'

/** A branch of a session. */
export interface SessionBranch {
  /** Number of the branch. 1 is the first. */
  branch: number
  /** Number of the parent branch. Null for the first branch. */
  parent: number | null
  /** Number of messages that the branch shares with its parent. */
  shared: number
  /** Number of the branch's last record. `agent.replay(id, { to: seq })` shows the branch. */
  seq: number
  /** Whether the session continues from this branch. */
  isCurrent: boolean
}

/** The branches of a session, oldest first. */
export async function listBranches(store: SessionStore, sessionId: string): Promise<SessionBranch[]> {
  const { branches, head } = await readSessionAt(store, checkSessionId(sessionId))
  const tree = branches ?? unbranched
  return tree.branches.map(({ parent, at, end }, i) => ({
    branch: i + 1,
    parent,
    shared: at,
    seq: end ?? head,
    isCurrent: i + 1 === tree.current,
  }))
}

/** Reads a session after a record, or the current state of a branch. */
export async function replayBranch(
  store: SessionStore,
  sessionId: string,
  { branch: number, to }: { branch?: number; to?: number } = {},
): Promise<SessionSnapshot> {
  if (number === undefined) return toSessionSnapshot(await readSessionAt(store, sessionId, to))
  if (to !== undefined) {
    const text = 'replay() takes a record (to) or a branch, but not both.'
    throw optionError(text, 'branch')
  }
  const folded = await readSessionAt(store, sessionId)
  const end = findEnd(folded.branches ?? unbranched, number, sessionId)
  const branch = end === null ? folded : await readSessionAt(store, sessionId, end)
  return toSessionSnapshot(branch, folded.branches, number)
}

function findEnd(tree: BranchTree, number: unknown, sessionId: string): number | null {
  if (typeof number === 'number' && Number.isSafeInteger(number) && tree.branches[number - 1])
    return getBranch(tree, number).end
  const { length } = tree.branches
  const message = `Session '${sessionId}' has no branch ${String(number).slice(0, 20)}: it has ${length}, numbered from 1.`
  throw new UsageError('unknown_branch', message, 'branch')
}

/**
 * Switches a session back to a branch. Totals and guard state still cover all branches. @throws {UsageError}
 * `unknown_branch`, `unfinished_run`, `nothing_to_resume` for a branch without a run
 */
export async function selectBranch(
  { store, clock }: StoreParts,
  sessionId: string,
  number: number,
): Promise<void> {
  checkSessionId(sessionId)
  const { log, folded } = await openSession(store, sessionId, { clock, holder: 'a selection of a branch' })
  try {
    if (folded.head === 0) throw unknownSessionError(sessionId)
    const tree = folded.branches ?? unbranched
    const end = findEnd(tree, number, sessionId)
    if (end === null) return
    refuseUnfinishedRun(folded, sessionId)
    const branch = await readSessionAt(store, sessionId, end)
    if (branch.run === null || folded.run === null) throw noRunError(sessionId, number, end)
    const context = joinContexts(branch.run.context, folded.run.context)
    const branches = returnToBranch(tree, number, {
      messages: folded.run.context.messages,
      seq: folded.head + 1,
    })
    const { definition } = branch
    const facts = { ...folded, definition, branches, link: null }
    const state = { ...toMachineState(branch.run), context }
    log.write({ ...createSnapshot(state, facts), selected: number })
    log.setSummary(context)
    await log.flush()
  } finally {
    await log.close()
  }
}

/** The transcript of the selected branch, with the totals, guard state and grants of all branches. */
function joinContexts({ grants: _former, ...branch }: AgentContext, left: AgentContext): AgentContext {
  return {
    ...branch,
    usage: { run: branch.usage.run, session: left.usage.session },
    lastMessageNumber: Math.max(branch.lastMessageNumber, left.lastMessageNumber),
    guardrails: left.guardrails,
    warnedOfBudget: left.warnedOfBudget,
    loaded: left.loaded,
    ...(left.refusals && { refusals: left.refusals }),
    // A grant that was revoked or used up on another branch does not return.
    ...(left.grants && { grants: left.grants }),
  }
}

function noRunError(sessionId: string, number: number, end: number): UsageError {
  const message = `No run has started on branch ${number} of session '${sessionId}'. agent.fork('${sessionId}', ${end}) creates a session from it.`
  return new UsageError('nothing_to_resume', message, sessionId)
}
