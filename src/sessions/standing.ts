import { createActor, initialTransition, type SnapshotFrom, transition } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import type { LogRecord } from '../stores/store.js'
import { StoreError } from '../stores/store-error.js'
import type { MachineState } from './log-entry.js'
import { openRecord } from './log-record.js'
import { emptySession, type SessionState, sessionStateOf } from './session-state.js'

/** The latest run of a session, as the pure machine sees it. */
export type FoldedRun = SnapshotFrom<typeof agentMachine>

/** Where a session stands after a record of its log. */
export interface Standing {
  /** The number of that record; 0 before the first. */
  head: number
  name: string | undefined
  runs: number
  /** What the next run starts from. */
  state: SessionState
  /** The latest run, ended or not; null before the first. */
  run: FoldedRun | null
  /** The number of that run's last event, as far as the log knows. */
  told: number
  /** Characters of the last snapshot, and of what has come since. */
  snapshotSize: number
  tailSize: number
}

/** What records come to, with nothing but the pure machine: the log of a run's events is the run. */
export function standingAfter(records: readonly LogRecord[], sessionId: string): Standing {
  const standing: Standing = {
    head: (records[0]?.seq ?? 1) - 1,
    name: undefined,
    runs: 0,
    state: emptySession(),
    run: null,
    told: 0,
    snapshotSize: 0,
    tailSize: 0,
  }
  // A part of a log begins with a snapshot; what begins with anything else has lost its beginning.
  if (records[0]?.type !== 'snapshot') standing.head = 0
  for (const record of records) apply(standing, record, sessionId)
  if (standing.run) standing.state = sessionStateOf(standing.run.context)
  return standing
}

function apply(standing: Standing, record: LogRecord, sessionId: string): void {
  const entry = openRecord(record, standing.head, sessionId)
  standing.tailSize += record.data.length
  switch (entry.type) {
    case 'opened':
      standing.name = entry.name
      standing.state = entry.state ?? standing.state
      break
    case 'start': {
      if (standing.run) standing.state = sessionStateOf(standing.run.context)
      const [run] = initialTransition(agentMachine, { ...standing.state, ...entry.input })
      standing.run = run
      standing.runs += 1
      standing.told = 0
      break
    }
    case 'event':
      if (standing.run) [standing.run] = transition(agentMachine, standing.run, entry.event)
      break
    case 'snapshot':
      standing.name = entry.name
      standing.runs = entry.runs
      standing.run = revived(entry.state, record.seq, sessionId)
      standing.snapshotSize = record.data.length
      standing.tailSize = 0
  }
  standing.told = entry.told ?? standing.told
  standing.head = record.seq
}

/**
 * The number after which another process numbers the events of the run. A process that ended at a rest has told nothing
 * since; nobody knows what one that was killed at work has told, so there is room for it.
 */
export function toldBefore({ run, told }: Standing): number {
  const state = run?.context.state
  const isAtWork = state === 'RUNNING' || state === 'WAITING_FOR_TOOL'
  return isAtWork && told > 0 ? (Math.floor(told / roomAfterKill) + 1) * roomAfterKill : told
}

const roomAfterKill = 1_000_000

/** A snapshot brought back, if this machine has the state that it stands in. */
function revived(state: MachineState, seq: number, sessionId: string): FoldedRun {
  try {
    return createActor(agentMachine, { snapshot: state as never, input: undefined as never }).getSnapshot()
  } catch (error) {
    throw new StoreError(
      'unknown_state',
      `Record ${seq} of session '${sessionId}' stands in the state ${JSON.stringify(state.value)}, which this machine ` +
        'does not have. Open it with the version of Statewright that wrote it.',
      sessionId,
      { cause: error },
    )
  }
}

/** A run's state as plain JSON, without the actors that wait: those are started anew. */
export function machineStateOf(run: FoldedRun): MachineState {
  const childless = { ...run, children: {} } as FoldedRun
  return agentMachine.getPersistedSnapshot(childless) as unknown as MachineState
}
