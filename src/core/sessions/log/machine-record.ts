import { isRecord } from '../../../../guards/lib/stored.js'
import type { ListedSession, LogRecord } from '../store/store.js'
import { damagedLogError, logVersion, type RecordDraft, verifyRecord } from './log-record.js'

/** An event of a machine, as plain JSON. */
export interface MachineEvent {
  type: string
  [key: string]: unknown
}

/** A running actor. */
export interface StoredActor {
  /** The name of the actor in `setup({ actors })`. */
  src: string
  /** Number of the record that starts the actor. The record contains the actor's input. */
  at: number
  /** The key of the actor, unique in the session, such as `pay.12`. */
  key: string
}

/** A scheduled event. */
export interface StoredDelay {
  id: string
  event: MachineEvent
  /** Milliseconds since the epoch, according to the store's clock. */
  at: number
}

export interface EventRefusal {
  code: string
  message: string
  subject?: string
}

/** The state of a machine after a record. */
export interface StoredMachineState {
  status: 'active' | 'done' | 'error' | 'stopped'
  value: unknown
  context: unknown
  historyValue?: unknown
  output?: unknown
  error?: unknown
  actors: Record<string, StoredActor>
  delays: StoredDelay[]
  /** Events that the machine sent to itself and will process next. */
  queue: MachineEvent[]
  /** Outcomes of actors that the chart could not process. A corrected chart processes them. */
  held: { event: MachineEvent; refused: EventRefusal }[]
  /** Number of the last inbox message that the machine processed. */
  inbox: number
  /** Idempotency keys of the latest messages. */
  keys: string[]
}

/** An event of a machine and the resulting state. Each record is complete, so that reading starts at the last. */
export interface MachineRecord {
  /** The id of the machine. Distinguishes the record from an agent's record. */
  machine: string
  /** The `version` of the chart. Absent if the chart has none. */
  chart?: string
  event: MachineEvent
  /** Why the event had no effect. */
  refused?: EventRefusal
  /** The actors that start with this record, with their inputs. */
  starts?: Record<string, { src: string; input?: unknown }>
  /** The session and record that this session was forked from. */
  forkedFrom?: { sessionId: string; seq: number }
  state: StoredMachineState
}

/** The label of a machine in lists and alarms. It contains a space, which is not allowed in agent names. */
export const createMachineLabel = (machine: string): string => `${machinePrefix}${machine}`

const machinePrefix = 'machine '

/** The names of the current states: `reviewing`, or `{"paying":"waiting"}`. */
export function formatStateValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Whether a session belongs to a machine, not to an agent. */
export const isMachineSession = ({ summary }: Pick<ListedSession, 'summary'>): boolean =>
  summary?.agent?.startsWith(machinePrefix) === true

/** The first record opens the log. For a reader, each later record replaces all records before it. */
export function draftMachineRecord(seq: number, at: number, record: MachineRecord): RecordDraft {
  const type = seq === 1 ? 'opened' : 'snapshot'
  return { seq, at, type, data: JSON.stringify({ version: logVersion, ...record }) }
}

/** Null for an agent's record. @throws {StoreError} `corrupt_log`, `newer_log` */
export function openMachineRecord(record: LogRecord, sessionId: string): MachineRecord | null {
  const { version: _version, ...content }: Record<string, unknown> = verifyRecord(
    record,
    record.seq - 1,
    sessionId,
  )
  if (typeof content['machine'] !== 'string') return null
  const { event, state, refused = {} } = content
  if (!isEvent(event) || !isRecord(refused) || !isRecord(state) || !isWork(state))
    throw damagedLogError(sessionId, record.seq - 1, `record ${record.seq} contains no machine state`)
  return content as unknown as MachineRecord
}

/** @throws {StoreError} `corrupt_log`, also for an agent's record, `newer_log` */
export function readMachineRecord(record: LogRecord, sessionId: string): MachineRecord {
  const content = openMachineRecord(record, sessionId)
  if (content !== null) return content
  throw damagedLogError(sessionId, record.seq - 1, `record ${record.seq} does not belong to a machine`)
}

const isEvent = (event: unknown): boolean => isRecord(event) && typeof event['type'] === 'string'

/** Whether the actors and delays of a state can be started again. */
const isWork = ({ actors, delays }: Record<string, unknown>): boolean =>
  isRecord(actors) &&
  Object.values(actors).every((actor) => isRecord(actor) && typeof actor['src'] === 'string') &&
  Array.isArray(delays) &&
  delays.every((delay) => isRecord(delay) && isEvent(delay['event']))
