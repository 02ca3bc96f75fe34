import { isWorkState } from '../../../machines/agent/run-result.js'
import { createActor, initialTransition, type SnapshotFrom, transition } from 'xstate'
import { agentMachine } from '../../../machines/agent.machine.js'
import type { AgentContext, AgentInput, SessionState } from '../../../machines/agent/context.js'
import type { AgentMachineEvent } from '../../../machines/agent/machine-events.js'
import { StatewrightError } from '../base/errors.js'
import { type AgentDefinition, readDefinition } from './definition.js'
import type { LogRecord } from './store/store.js'
import { StoreError } from './store/store-error.js'
import type { RecordContent, MachineState } from './log/record-content.js'
import { damaged, openRecord } from './log/log-record.js'
import { emptySession, sessionStateOf } from './session-state.js'
import { placed } from './log/placed-state.js'
import { faultOf, faultOfState } from './log/sound-state.js'
import { wholeContext, wholeInput } from './log/whole-context.js'

/** The latest run of a session, as the pure machine sees it. */
export type FoldedRun = SnapshotFrom<typeof agentMachine>

/** Where a session stands after a record of its log. */
export interface Standing {
  /** The number of that record; 0 before the first. */
  head: number
  /** The checksum of that record; empty before the first. */
  check: string
  /** When that record was written, by the time of the run; milliseconds since the epoch. */
  at: number
  name: string | undefined
  runs: number
  /** What the next run starts from. */
  state: SessionState
  /** The latest run, ended or not; null before the first. */
  run: FoldedRun | null
  /** The agent that began it; null where the log does not say. */
  definition: AgentDefinition | null
  /** How often it has been resumed since anything else came of it, by processes that did not leave it in order. */
  resumed: number
  /** The number of that run's last event, as far as the log knows; null where nobody has counted. */
  told: number | null
  /** The last message of the session's inbox that is in the log; 0: none is. */
  inbox: number
  /** The idempotency keys of the last messages that are in the log. */
  keys: readonly string[]
  /** What the telemetry of that run has left. */
  link: string | null
  /** Characters of the last snapshot, and of what has come since. */
  snapshotSize: number
  tailSize: number
}

/** How the machine takes what a log says. */
export interface Folding {
  start(input: AgentInput): FoldedRun
  step(run: FoldedRun, event: AgentMachineEvent): FoldedRun
  revive(state: MachineState & { context: AgentContext }): FoldedRun
}

/** With nothing but the machine. */
export const pure: Folding = {
  start: (input) => initialTransition(agentMachine, input)[0],
  step: (run, event) => transition(agentMachine, run, event)[0],
  revive: (state) =>
    createActor(agentMachine, { snapshot: state as never, input: undefined as never }).getSnapshot(),
}

/** What records come to, with nothing but the pure machine: the log of a run's events is the run. */
export function standingAfter(records: readonly LogRecord[], sessionId: string): Standing {
  const standing = before(records)
  for (const record of records) apply(standing, record, sessionId)
  const fault = faultIn(standing)
  if (fault !== null) throw damaged(sessionId, lastSound(records, sessionId), `it leads nowhere (${fault})`)
  if (standing.run) standing.state = sessionStateOf(standing.run.context)
  return standing
}

/** Where a session stands before the first of these records. */
export function before(records: readonly LogRecord[]): Standing {
  return {
    // A part of a log begins with a snapshot; what begins with anything else has lost its beginning.
    head: records[0]?.type === 'snapshot' ? records[0].seq - 1 : 0,
    check: '',
    at: 0,
    name: undefined,
    runs: 0,
    state: emptySession(),
    run: null,
    definition: null,
    resumed: 0,
    told: null,
    inbox: 0,
    keys: [],
    link: null,
    snapshotSize: 0,
    tailSize: 0,
  }
}

/** A log that leads to what no run can be is seen at its end; where that began, is looked for only then. */
function lastSound(records: readonly LogRecord[], sessionId: string): number {
  const standing = before(records)
  for (const record of records) {
    const { head } = standing
    apply(standing, record, sessionId)
    if (faultIn(standing) !== null) return head
  }
  return standing.head
}

/** What keeps a session from going on from there; null when nothing does. */
export function faultIn({ name, runs, told, inbox, run, state }: Standing): string | null {
  if (name !== undefined && typeof name !== 'string') return 'its name is no text'
  if (![runs, told ?? 0, inbox].every(Number.isSafeInteger))
    return 'the number of its runs, or of their events, is none'
  return run ? faultOf(run.context) : faultOfState(state)
}

/**
 * One record more; what it says. `standing` itself changes.
 * @throws {StoreError} `corrupt_log`, `newer_log`, `unknown_state`
 */
export function apply(
  standing: Standing,
  record: LogRecord,
  sessionId: string,
  folding: Folding = pure,
): RecordContent {
  const entry = openRecord(record, standing.head, sessionId)
  applyOpened(standing, record, entry, sessionId, folding)
  return entry
}

/** The same for a record that was opened before. */
export function applyOpened(
  standing: Standing,
  record: LogRecord,
  entry: RecordContent,
  sessionId: string,
  folding: Folding,
): void {
  try {
    take(standing, record, entry, sessionId, folding)
  } catch (error) {
    if (error instanceof StatewrightError) throw error
    throw damaged(sessionId, standing.head, `record ${record.seq} says what none can say`, error)
  }
  standing.head = record.seq
  standing.check = record.check
  standing.at = record.at
}

function take(
  standing: Standing,
  record: LogRecord,
  entry: RecordContent,
  sessionId: string,
  folding: Folding,
): void {
  standing.tailSize += record.data.length
  switch (entry.type) {
    case 'opened':
      standing.name = entry.name
      standing.state = entry.state ?? standing.state
      break
    case 'start': {
      if (standing.run) standing.state = sessionStateOf(standing.run.context)
      standing.run = folding.start({ ...standing.state, ...wholeInput(entry.input) })
      standing.runs += 1
      standing.told = null
      standing.definition = readDefinition(entry.definition)
      standing.resumed = 0
      standing.link = null
      break
    }
    case 'event':
      if (!standing.run) throw new Error('No run has started.')
      standing.run = folding.step(standing.run, entry.event)
      standing.resumed = resumedAfter(standing.resumed, entry.event)
      standing.inbox = Math.max(standing.inbox, entry.event.inbox ?? 0)
      standing.keys = withKey(standing.keys, entry.event.key)
      break
    case 'snapshot':
      standing.name = entry.name
      standing.runs = entry.runs
      standing.definition = readDefinition(entry.definition)
      standing.inbox = entry.inbox ?? standing.inbox
      standing.keys = Array.isArray(entry.keys) ? entry.keys : standing.keys
      standing.run = revived(entry.state, record.seq, sessionId, folding)
      standing.snapshotSize = record.data.length
      standing.tailSize = 0
      break
    default:
      throw new Error('There is no such type of record.')
  }
  standing.told = entry.told ?? standing.told
  if (typeof entry.link === 'string') standing.link = entry.link
}

/** How many idempotency keys a session remembers. */
const mostKeys = 100

/** The keys of a session once a message with this one is in its log. */
export function withKey(keys: readonly string[], key: string | undefined): readonly string[] {
  return typeof key === 'string' ? [...keys, key].slice(-mostKeys) : keys
}

/** A process that stops in order takes back that it resumed the run. */
function resumedAfter(resumed: number, { type }: AgentMachineEvent): number {
  if (type === 'RESUMED') return resumed + 1
  return type === 'LEFT' ? Math.max(0, resumed - 1) : 0
}

/**
 * The number after which another process numbers the events of the run. A process that ended at a rest has told nothing
 * since; nobody knows what one that was killed at work has told, so there is room for it.
 */
export function toldBefore({ run, told }: Standing): number {
  if (told === null) return 0
  return isWorkState(run?.context.state) ? (Math.floor(told / roomAfterKill) + 1) * roomAfterKill : told
}

const roomAfterKill = 1_000_000

/** A snapshot brought back, if this machine has the state that it stands in. */
function revived(
  stored: MachineState,
  seq: number,
  sessionId: string,
  { revive }: Pick<Folding, 'revive'>,
): FoldedRun {
  const state = { ...placed(stored), context: wholeContext(stored.context as AgentContext) }
  try {
    const run = revive(state)
    // What cannot be restored is not thrown.
    if (run.status === 'error') throw run.error
    return run
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
