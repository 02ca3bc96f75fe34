import type { Message } from '../../../machines/agent/messages.js'
import type { RunInProgress, RunResult, TurnEnd } from '../../../machines/agent/run-result.js'
import { toCurrentResult } from '../../../machines/agent/to-result.js'
import { maskMessages } from '../../../machines/agent/mask-uncleared.js'
import type { Usage } from '../../../machines/agent/usage.js'
import { UsageError } from '../base/errors.js'
import { listTurnEnds } from './find-turn.js'
import type { SessionStore } from './store/store.js'
import type { MachineState } from './log/log-record.js'
import { type BranchPoint, type BranchTree, getBranch, listBranchPoints } from './branch-tree.js'
import { unknownSessionError } from './store/store-error.js'
import { type FoldedSession, foldRecords, toMachineState } from './fold-session.js'
import { parseSession } from './parse-session.js'
import { Session } from './session.js'

/** The branches of a session, seen from one of them. */
export interface SessionBranches {
  /** The number of the branch that is shown. */
  current: number
  /** How many branches there are. */
  count: number
  /** Where the transcript parts from those of others. */
  points: readonly BranchPoint[]
  /** How the branch began. `at`: how many messages it shares with the one before; `again`: its first message was said once more. */
  began: { at: number; again?: true; key?: string }
  /** The clients' ids of messages that are on branches which the session has left. */
  left: readonly string[]
}

/** A session as it stood after one record of its log. */
export interface SessionSnapshot {
  /** The number of that record; 0 before the first. */
  seq: number
  name?: string
  messages: readonly Message[]
  /** Totals of all runs up to there. */
  usage: Usage
  /** The latest run: how it stood, as its `result` would have told. Null before the first. */
  run: RunResult | RunInProgress | null
  /** The same as the machine's own state, fit for `createActor(agent.machine, { snapshot })`. */
  snapshot: MachineState | null
  /** Ends of runs that did not answer in full, by the user messages that they answer. Absent: none. */
  ends?: readonly TurnEnd[]
  /** Its branch, and where the transcript parts from others. Absent: the session has one branch. */
  branches?: SessionBranches
}

/** The state of a session after record `to`; default: after the last one. Nothing is written. */
export async function replaySession(
  store: SessionStore,
  sessionId: string,
  to?: number,
): Promise<SessionSnapshot> {
  const folded = await readSessionAt(store, sessionId, to)
  return toSessionSnapshot(folded, folded.branches)
}

/** `tree`: the branches of the session. */
export function toSessionSnapshot(
  { head, name, state, run }: FoldedSession,
  tree: BranchTree | null,
  branch = tree?.current,
): SessionSnapshot {
  const ends = run ? listTurnEnds(run.context) : (state.turnEnds ?? [])
  return {
    seq: head,
    ...(name !== undefined && { name }),
    messages: run ? maskMessages(run.context) : state.messages,
    usage: run?.context.usage.session ?? state.usage,
    run: run ? toCurrentResult(run.context) : null,
    snapshot: run ? toMachineState(run) : null,
    ...(ends.length > 0 && { ends }),
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
 * @throws {StoreError} `unknown_session`
 * @throws {UsageError} `invalid_option` for a record that the log does not have
 */
export async function readSessionAt(
  store: Pick<SessionStore, 'read'>,
  sessionId: string,
  to?: number,
): Promise<FoldedSession> {
  if (to !== undefined && (!Number.isSafeInteger(to) || to < 1)) {
    throw new UsageError('invalid_option', `'to' must be the number of a record, from 1 (is ${to}).`, 'to')
  }
  const records = await store.read(sessionId, { from: 'snapshot', ...(to !== undefined && { to }) })
  const last = records.at(-1)?.seq ?? 0
  if (last === 0 && (await store.read(sessionId, { to: 1 })).length === 0)
    throw unknownSessionError(sessionId)
  if (to !== undefined && to > last) {
    throw new UsageError(
      'invalid_option',
      `Session '${sessionId}' has ${last} records; there is no ${to}.`,
      'to',
    )
  }
  return foldRecords(records, sessionId)
}

/**
 * A session of a store as `restoreSession` gives it, ready to be used elsewhere: calls that wait for an answer are closed.
 * Nothing is written.
 * @throws {StoreError} `unknown_session`, `corrupt_log`, …
 */
export async function readSession(store: SessionStore, id: string): Promise<Session> {
  const { name, state, run } = await readSessionAt(store, id)
  const { messages: kept, usage, ...metadata } = state
  const messages = run ? maskMessages(run.context) : kept
  return parseSession(Object.assign(new Session(id, name), { messages, usage, metadata }))
}
