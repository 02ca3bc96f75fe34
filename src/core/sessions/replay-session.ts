import type { Grant } from '../../../machines/agent/grant.js'
import type { Message } from '../../../machines/agent/messages.js'
import type { RunInProgress, RunResult, TurnEnd } from '../../../machines/agent/run-result.js'
import { toRunResult } from '../../../machines/agent/to-result.js'
import { maskMessages } from '../../../machines/agent/mask-uncleared.js'
import type { Usage } from '../../../machines/agent/usage.js'
import { optionError } from '../base/errors.js'
import { listTurnEnds } from './find-turn.js'
import type { SessionStore } from './store/store.js'
import type { MachineState } from './log/log-record.js'
import { type BranchPoint, type BranchTree, getBranch, listBranchPoints } from './branch-tree.js'
import { unknownSessionError } from './store/store-error.js'
import { type FoldedSession, foldRecords, toMachineState } from './fold-session.js'
import { parseSession } from './parse-session.js'
import { Session } from './session.js'

/** The branches of a session, relative to the shown branch. */
export interface SessionBranches {
  /** The number of the shown branch. */
  current: number
  /** The number of branches. */
  count: number
  /** The points where the transcript diverges from other branches. */
  points: readonly BranchPoint[]
  /** `at`: number of messages shared with the parent. `again`: the branch repeats its first message. */
  began: { at: number; again?: true; key?: string }
  /** Client ids of messages on branches that the session has left. */
  left: readonly string[]
}

/** The state of a session after a record of its log. */
export interface SessionSnapshot {
  /** Number of the record. 0 before the first record. */
  seq: number
  name?: string
  messages: readonly Message[]
  /** Token usage of all runs up to the record. */
  usage: Usage
  /** The latest run, in the format of its `result`. Null before the first. */
  run: RunResult | RunInProgress | null
  /** The state of the machine, for `createActor(agent.machine, { snapshot })`. */
  snapshot: MachineState | null
  /** The ends of the runs that did not answer in full, by user message. Absent if there are none. */
  ends?: readonly TurnEnd[]
  /** Approvals for later calls, including grants that have ended. Absent if there are none. */
  grants?: readonly Grant[]
  /** The shown branch and its divergence points. Absent if the session has only one branch. */
  branches?: SessionBranches
}

/** `tree` has the branches at the end of the log, of which `branch` is shown. Null leaves them out. */
export function toSessionSnapshot(
  { head, name, state, run, branches }: FoldedSession,
  tree: BranchTree | null = branches,
  branch = tree?.current,
): SessionSnapshot {
  const { grants = [] } = run?.context ?? state
  const ends = run ? listTurnEnds(run.context) : (state.turnEnds ?? [])
  return {
    seq: head,
    ...(name !== undefined && { name }),
    messages: run ? maskMessages(run.context) : state.messages,
    usage: run?.context.usage.session ?? state.usage,
    run: run ? toRunResult(run.context) : null,
    snapshot: run ? toMachineState(run) : null,
    ...(ends.length > 0 && { ends }),
    ...(grants.length > 0 && { grants }),
    ...(tree && branch !== undefined && { branches: describeBranches(tree, branch) }),
  }
}

function describeBranches(tree: BranchTree, branch: number): SessionBranches {
  const { at, regenerate, key } = getBranch(tree, branch)
  return {
    current: branch,
    count: tree.branches.length,
    points: listBranchPoints(tree, branch),
    began: { at, ...(regenerate && { again: regenerate }), ...(key !== undefined && { key }) },
    left: tree.branches.flatMap(({ clientIds }) => clientIds),
  }
}

/**
 * The session after record `to`, by default the last.
 * @throws {StoreError} `unknown_session`
 * @throws {UsageError} `invalid_option` for a record that the log does not have
 */
export async function readSessionAt(
  store: Pick<SessionStore, 'read'>,
  sessionId: string,
  to?: number,
): Promise<FoldedSession> {
  if (to !== undefined && (!Number.isSafeInteger(to) || to < 1)) {
    throw optionError(`'to' must be a record number, starting at 1 (got ${to}).`, 'to')
  }
  const records = await store.read(sessionId, { from: 'snapshot', ...(to !== undefined && { to }) })
  const last = records.at(-1)?.seq ?? 0
  if (last === 0) throw unknownSessionError(sessionId)
  if (to !== undefined && to > last) {
    throw optionError(`Session '${sessionId}' has ${last} records; there is no record ${to}.`, 'to')
  }
  return foldRecords(records, sessionId)
}

/** As `restoreSession` returns it, with closed calls. @throws {StoreError} `unknown_session`, `corrupt_log`, … */
export async function readSession(store: SessionStore, id: string): Promise<Session> {
  const { name, state, run } = await readSessionAt(store, id)
  const { messages: storedMessages, usage, ...metadata } = state
  const messages = run ? maskMessages(run.context) : storedMessages
  return parseSession(Object.assign(new Session(id, name), { messages, usage, metadata }))
}
