import { isRecord } from '../../guards/lib/stored.js'
import { readElapsed } from '../core/base/clock.js'
import { setAlarm } from '../core/sessions/alarm.js'
import {
  createMachineLabel,
  draftMachineRecord,
  type MachineEvent,
  type MachineRecord,
  openMachineRecord,
  type StoredMachineState,
} from '../core/sessions/log/machine-record.js'
import { getAcquiredAt } from '../core/sessions/log/lease.js'
import { type LogEnd, WriteAheadLog, type WriteAheadLogParts } from '../core/sessions/log/write-ahead-log.js'
import type { InboxMessage } from '../core/sessions/store/inbox.js'
import type { SessionStore } from '../core/sessions/store/store.js'

/** A message in the inbox of a machine's session. A message without an event only wakes the session. */
export interface MachineMessage {
  event: MachineEvent | null
  key?: string
}

function parseMessage({ text }: InboxMessage): MachineMessage | null {
  try {
    const { event, key } = JSON.parse(text) as { event?: unknown; key?: unknown }
    const isEvent = isRecord(event) && typeof event['type'] === 'string'
    if (event !== null && !isEvent) return null
    return { event: event as MachineEvent | null, ...(typeof key === 'string' && { key }) }
  } catch {
    return null
  }
}

const inboxFormat = { parse: parseMessage, isQueued: () => false, toSteering: () => null }

/** The end of a machine's log. `record` is null if the log is empty. */
export interface MachineLogEnd extends LogEnd {
  record: MachineRecord | null
}

export const emptyLogEnd: MachineLogEnd = { head: 0, check: '', at: 0, record: null }

/** @throws {StoreError} `corrupt_log`, `newer_log`; the log of an agent has a `head` but no `record` */
export async function readLogEnd(store: SessionStore, id: string, to?: number): Promise<MachineLogEnd> {
  const records = await store.read(id, { from: 'snapshot', ...(to !== undefined && { to }) })
  const last = records.at(-1)
  if (!last) return emptyLogEnd
  return { head: last.seq, check: last.check, at: last.at, record: openMachineRecord(last, id) }
}

export class MachineLog extends WriteAheadLog<MachineMessage> {
  readonly #machine: string
  readonly #foundHead: number
  /** The store's time minus the elapsed time of this process. */
  #offset: number

  constructor(parts: WriteAheadLogParts, end: MachineLogEnd, machine: string) {
    const { inbox = 0, keys = [] } = end.record?.state ?? {}
    super(parts, { ...end, inbox, queued: 0, keys }, inboxFormat)
    this.#machine = machine
    this.#foundHead = end.head
    this.#offset = getAcquiredAt(parts.lease) - readElapsed(parts.clock)
  }

  /** Milliseconds since the epoch, by the store's clock. */
  now(): number {
    return Math.max(this.lastTime, Math.floor(this.#offset + readElapsed(this.clock)))
  }

  write(record: MachineRecord, message?: { number: number; key?: string | undefined }): void {
    this.addRecord((seq) => draftMachineRecord(seq, this.now(), record))
    if (message) this.inbox.markApplied(message.number, message.key)
  }

  /** Sets the list entry. The next record also sets the alarm that wakes the session. */
  list({ status, value }: StoredMachineState, wakeAt: number | undefined): void {
    this.summary = {
      title: this.sessionId,
      state: status === 'done' ? 'COMPLETED' : status === 'error' ? 'ERROR' : null,
      reason: null,
      value: formatStateValue(value),
      ...(wakeAt !== undefined && { wakeAt }),
      agent: createMachineLabel(this.#machine),
      runs: 1,
      messages: 0,
      totalTokens: 0,
      cost: null,
    }
  }

  /** Writes all pending records, then releases the session. Sets the alarm if the session waits for a time. */
  async rest(state: StoredMachineState, wakeAt: number | undefined): Promise<void> {
    if (this.failure) throw this.failure
    if (this.isResting && !this.hasPending) return
    if (wakeAt !== undefined && !this.hasPending)
      await setAlarm(this.store, this.sessionId, wakeAt, { name: createMachineLabel(this.#machine) })
    if (this.head === this.#foundHead) {
      await this.close()
      return
    }
    this.list(state, wakeAt)
    await this.writeRest()
  }
}

/** The names of the current states: `reviewing`, or `{"paying":"waiting"}`. */
export function formatStateValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
