import { createActor, initialTransition, type SnapshotFrom, transition } from 'xstate'
import { isWorkState } from '../../../machines/agent/run-result.js'
import { agentMachine } from '../../../machines/agent.machine.js'
import type {
  AgentContext,
  AgentInput,
  SessionState,
  AgentMachineEvent,
} from '../../../machines/agent/context.js'
import { StatewrightError } from '../base/errors.js'
import { readDefinition } from './agent-definition.js'
import { isTags } from './store/session-tags.js'
import type { LogRecord } from './store/store.js'
import { StoreError } from './store/store-error.js'
import {
  damagedLogError,
  listFeatures,
  type MachineState,
  openRecord,
  type RecordContent,
} from './log/log-record.js'
import { addBranch, type BranchStart, type BranchTree, isBranchTree, unbranched } from './branch-tree.js'
import { createSessionState, cutState, toSessionState } from './session-state.js'
import { completeInput, restoreState } from './log/stored-state.js'
import { findContextFault, findStateFault } from './session-schema.js'
import { listClientIds, addKey } from './inbox/queued-message.js'
import type { SessionFacts } from './log/create-records.js'
import type { InboxEnd, LogEnd } from './log/write-ahead-log.js'
import { agentTables } from '../interpreter/chart-tables.js'
import { createPureTransition } from '../interpreter/table-transition.js'

/** The latest run of a session, as a snapshot of the pure machine. */
export type FoldedRun = SnapshotFrom<typeof agentMachine>

/** The state of a session after a record of its log. */
export interface FoldedSession extends LogEnd, InboxEnd, SessionFacts {
  state: SessionState
  /** The latest run, whether ended or not. Null before the first. */
  run: FoldedRun | null
  /** Consecutive resumes after a crash. Reset to 0 by any other event of the run. */
  resumeCount: number
  /** Number of the run's last emitted event. Null if the log does not contain the number. */
  lastEventSeq: number | null
  branches: BranchTree | null
  features: ReadonlySet<string>
  link: string | null
  /** Number of characters in the last snapshot, and in the records after it. */
  snapshotSize: number
  tailSize: number
}

export interface RunReducer {
  start(input: AgentInput): FoldedRun
  step(run: FoldedRun, event: AgentMachineEvent): FoldedRun
  restore(state: MachineState & { context: AgentContext }): FoldedRun
}

export const pureReducer: RunReducer = {
  start: (input) => initialTransition(agentMachine, input)[0],
  step: (run, event) => takeEvent(run, event)[0],
  restore: (state) =>
    createActor(agentMachine, { snapshot: state as never, input: undefined as never }).getSnapshot(),
}

/** A reducer that uses XState's interpreter, which takes twice as long. */
export const xstateReducer: RunReducer = {
  ...pureReducer,
  step: (run, event) => transition(agentMachine, run, event)[0],
}

export function foldRecords(
  records: readonly LogRecord[],
  sessionId: string,
  folding: RunReducer = pureReducer,
): FoldedSession {
  const folded = createFoldedSession(records)
  for (const record of records) applyRecord(folded, record, sessionId, folding)
  const fault = findSessionFault(folded)
  if (fault !== null)
    throw damagedLogError(
      sessionId,
      findLastSoundRecord(records, sessionId),
      `it results in an impossible state (${fault})`,
    )
  folded.state = getCurrentState(folded)
  return folded
}

/** The state that the next run starts from, after the latest run. */
function getCurrentState({ run, state, branches }: FoldedSession): SessionState {
  if (run === null) return state
  return {
    ...toSessionState(run.context),
    ...(branches && { lastMessageNumber: run.context.lastMessageNumber }),
  }
}

const noLogFeatures: ReadonlySet<string> = new Set()

/** The session state before the first of these records. */
export function createFoldedSession(records: readonly LogRecord[]): FoldedSession {
  return {
    // A partial log that does not start with a snapshot is damaged.
    head: records[0]?.type === 'snapshot' ? records[0].seq - 1 : 0,
    check: '',
    at: 0,
    name: undefined,
    tags: {},
    parent: undefined,
    runs: 0,
    state: createSessionState(),
    run: null,
    definition: null,
    resumeCount: 0,
    lastEventSeq: null,
    inbox: 0,
    queued: 0,
    keys: [],
    branches: null,
    features: noLogFeatures,
    link: null,
    snapshotSize: 0,
    tailSize: 0,
  }
}

/** Folds the log again, because faults are only detected at its end. */
function findLastSoundRecord(records: readonly LogRecord[], sessionId: string): number {
  const folded = createFoldedSession(records)
  for (const record of records) {
    const { head } = folded
    applyRecord(folded, record, sessionId)
    if (findSessionFault(folded) !== null) return head
  }
  return folded.head
}

export function findSessionFault({
  name,
  tags,
  parent,
  runs,
  lastEventSeq,
  inbox,
  queued,
  run,
  state,
  branches,
}: FoldedSession): string | null {
  if (name !== undefined && typeof name !== 'string') return 'its name is not a string'
  if (!isTags(tags) || (parent !== undefined && typeof parent !== 'string'))
    return 'its tags or its parent are not strings'
  if (![runs, lastEventSeq ?? 0, inbox, queued].every(Number.isSafeInteger))
    return 'a counter (runs, events or queued messages) is not an integer'
  if (branches !== null && !isBranchTree(branches)) return 'its branches are not a valid tree'
  return run ? findContextFault(run.context) : findStateFault(state)
}

/** Applies one record to `folded`, in place. @throws {StoreError} `corrupt_log`, `newer_log`, `unknown_state` */
export function applyRecord(
  folded: FoldedSession,
  record: LogRecord,
  sessionId: string,
  folding: RunReducer = pureReducer,
): RecordContent {
  const entry = openRecord(record, folded.head, sessionId)
  applyOpenedRecord(folded, record, entry, sessionId, folding)
  return entry
}

export function applyOpenedRecord(
  folded: FoldedSession,
  record: LogRecord,
  entry: RecordContent,
  sessionId: string,
  folding: RunReducer = pureReducer,
): void {
  try {
    applyEntry(folded, record, entry, sessionId, folding)
  } catch (error) {
    if (error instanceof StatewrightError) throw error
    throw damagedLogError(sessionId, folded.head, `record ${record.seq} has invalid content`, error)
  }
  folded.head = record.seq
  folded.check = record.check
  folded.at = record.at
}

function applyEntry(
  folded: FoldedSession,
  record: LogRecord,
  entry: RecordContent,
  sessionId: string,
  folding: RunReducer,
): void {
  folded.tailSize += record.data.length
  switch (entry.type) {
    case 'opened':
      folded.name = entry.name
      folded.tags = entry.tags ?? folded.tags
      folded.parent = entry.parent
      folded.state = entry.state ?? folded.state
      break
    case 'start': {
      folded.state = getCurrentState(folded)
      if (entry.branch) beginBranch(folded, entry.branch, record.seq)
      folded.run = folding.start({ ...folded.state, ...completeInput(entry.input) })
      folded.runs += 1
      folded.lastEventSeq = null
      folded.definition = readDefinition(entry.definition)
      folded.tags = entry.tags ?? folded.tags
      folded.resumeCount = 0
      folded.link = null
      folded.queued = Math.max(folded.queued, entry.queued ?? 0)
      for (const id of listClientIds(entry.input.input)) folded.keys = addKey(folded.keys, id)
      break
    }
    case 'event':
      if (!folded.run) throw new Error('No run has started.')
      folded.run = folding.step(folded.run, entry.event)
      folded.resumeCount = countResumes(folded.resumeCount, entry.event)
      folded.inbox = Math.max(folded.inbox, entry.event.inbox ?? 0)
      folded.keys = addKey(folded.keys, entry.event.key)
      break
    case 'snapshot':
      folded.name = entry.name
      folded.tags = entry.tags ?? {}
      folded.parent = entry.parent
      folded.runs = entry.runs
      folded.definition = readDefinition(entry.definition)
      folded.inbox = entry.inbox ?? folded.inbox
      folded.queued = entry.queued ?? folded.queued
      folded.keys = Array.isArray(entry.keys) ? entry.keys : folded.keys
      folded.branches = entry.branches ?? folded.branches
      folded.run = restoreRun(entry.state, record.seq, sessionId, folding)
      folded.snapshotSize = record.data.length
      folded.tailSize = 0
      break
    default:
      throw new Error('Unknown record type.')
  }
  const used = listFeatures(entry)
  if (used.length > 0) folded.features = new Set([...folded.features, ...used])
  folded.lastEventSeq = entry.lastEventSeq ?? folded.lastEventSeq
  if (typeof entry.link === 'string') folded.link = entry.link
}

function beginBranch(folded: FoldedSession, start: BranchStart, seq: number): void {
  const { state } = folded
  folded.branches = addBranch(folded.branches ?? unbranched, start, { messages: state.messages, seq })
  folded.state = cutState(state, start)
}

/** Counts resumes. A graceful stop reverts the increment of its resume. */
function countResumes(resumed: number, { type }: AgentMachineEvent): number {
  if (type === 'RESUMED') return resumed + 1
  return type === 'RELEASED' ? Math.max(0, resumed - 1) : 0
}

/** Skips a range after a kill, because the process may have emitted events that are not in the log. */
export function getLastEventSeq({ run, lastEventSeq }: FoldedSession): number {
  if (lastEventSeq === null) return 0
  return isWorkState(run?.context.state)
    ? (Math.floor(lastEventSeq / gapAfterKill) + 1) * gapAfterKill
    : lastEventSeq
}

const gapAfterKill = 1_000_000

function restoreRun(
  stored: MachineState,
  seq: number,
  sessionId: string,
  { restore }: Pick<RunReducer, 'restore'>,
): FoldedRun {
  const state = restoreState(stored)
  try {
    const run = restore(state)
    // XState reports a failed restore as a status instead of throwing.
    if (run.status === 'error') throw run.error
    return run
  } catch (error) {
    const message =
      `Record ${seq} of session '${sessionId}' is in the state ${JSON.stringify(state.value)}, which this machine ` +
      'does not have. Open it with the version of Statewright that wrote it.'
    throw new StoreError('unknown_state', message, sessionId, { cause: error })
  }
}

/** A run's state as plain JSON without its child actors, which are restarted on resume. */
export function toMachineState(run: FoldedRun): MachineState {
  const childless = { ...run, children: {} } as FoldedRun
  return agentMachine.getPersistedSnapshot(childless) as unknown as MachineState
}

export const takeEvent = createPureTransition(agentMachine, agentTables)
