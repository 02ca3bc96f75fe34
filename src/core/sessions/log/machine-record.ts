import { isRecord } from '../../../../guards/lib/stored.js'
import type { LogRecord } from '../store/store.js'
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
  /** The record that starts it. Contains its input. */
  at: number
  /** Unique in the session: `pay.12`. */
  key: string
}

/** An event scheduled for a time. */
export interface StoredDelay {
  id: string
  event: MachineEvent
  /** Milliseconds since the epoch, by the store's clock. */
  at: number
}

/** Why an event of a machine had no effect. */
interface EventRefusal {
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
  /** Events that the machine has sent to itself and processes next. */
  queue: MachineEvent[]
  /** Outcomes of actors that the chart could not process. A fixed chart processes them. */
  held: { event: MachineEvent; refused: EventRefusal }[]
  /** The last inbox message that the machine has processed. */
  inbox: number
  /** The idempotency keys of the last messages. */
  keys: string[]
}

/**
 * A record of a machine's session: an event, and the state that it leads to. Each record is complete, so that reading
 * starts at the last one.
 */
export interface MachineRecord {
  /** The id of the machine. Distinguishes the record from an agent's records. */
  machine: string
  /** The `version` of the chart. Absent if it has none. */
  chart?: string
  event: MachineEvent
  /** Why the event had no effect. */
  refused?: EventRefusal
  /** The actors that start with this record, with their inputs. */
  starts?: Record<string, { src: string; input?: unknown }>
  /** The record of the session that this one was forked from. */
  forkedFrom?: { sessionId: string; seq: number }
  state: StoredMachineState
}

/** The label of a machine in lists and alarms. It contains a space, which names of agents cannot have. */
export const createMachineLabel = (machine: string): string => `${machinePrefix}${machine}`

const machinePrefix = 'machine '

/** The id of the machine in a label, or undefined for the label of an agent. */
export function parseMachineLabel(agent: string | undefined): string | undefined {
  return agent?.startsWith(machinePrefix) ? agent.slice(machinePrefix.length) : undefined
}

/** The first record opens the log. Each later one replaces all records before it for a reader. */
export function draftMachineRecord(seq: number, at: number, record: MachineRecord): RecordDraft {
  const type = seq === 1 ? 'opened' : 'snapshot'
  return { seq, at, type, data: JSON.stringify({ version: logVersion, ...record }) }
}

/**
 * Verifies and parses a record of a machine. Null for a record of an agent.
 * @throws {StoreError} `corrupt_log`, `newer_log`
 */
export function openMachineRecord(record: LogRecord, sessionId: string): MachineRecord | null {
  const { version: _version, ...content }: Record<string, unknown> = verifyRecord(
    record,
    record.seq - 1,
    sessionId,
  )
  if (typeof content['machine'] !== 'string') return null
  const { event, state } = content
  if (!isRecord(event) || !isRecord(state) || !isRecord(state['actors']) || !Array.isArray(state['delays']))
    throw damagedLogError(sessionId, record.seq - 1, `record ${record.seq} has no state of a machine`)
  return content as unknown as MachineRecord
}
