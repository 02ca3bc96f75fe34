import { type Clock, readElapsed } from '../../base/clock.js'
import { attempt, chain, type MaybePromise } from '../../base/maybe-promise.js'
import { appendWithAlarm } from '../alarm.js'
import { type InboxFormat, InboxReader } from '../inbox/inbox-reader.js'
import type { Lease, SessionStore, SessionSummary } from '../store/store.js'
import { leaseLostError, StoreError, takenOverError, toStoreError } from '../store/store-error.js'
import { type RecordDraft, sealDraft } from './log-record.js'
import {
  acquireLeaseAgain,
  findRelease,
  type HeartbeatMember,
  heartbeats,
  leaseMs,
  releaseLease,
} from './lease.js'

/** `written`: more records are durable. */
type LogListener = (change: 'held' | 'written' | 'released') => void

export interface WriteAheadLogParts {
  store: SessionStore
  lease: Lease
  clock: Clock
  holder: string
}

/** Number, checksum and time of the last record. */
export interface LogEnd {
  head: number
  check: string
  at: number
}

/** The messages that the log contains. */
export interface InboxEnd {
  /** Number of the last message. */
  inbox: number
  /** Number of the last queued message that started a run, or 0. */
  queued: number
  keys: readonly string[]
}

/**
 * The write-ahead log of one session, for any type of record. Records become durable with the next `flush()`, or at
 * the end of the current turn of the event loop. The process holds the session while it is active. When it is idle,
 * any process may acquire it.
 */
export abstract class WriteAheadLog<Message extends { key?: string }> {
  readonly sessionId: string
  readonly store: SessionStore
  /** Messages that people and programs have sent to the session from any process. */
  readonly inbox: InboxReader<Message>
  protected readonly clock: Clock
  readonly #holder: string
  /** Renewed while held, released when the session becomes idle, reacquired to continue. */
  #lease: Lease
  #isHeld = true
  /** The time when the lease was last renewed for the full `leaseMs`. */
  #renewedAt: number
  /** A renewal before a write or a call. */
  #renewing: Promise<void> | undefined
  /** Until the next record. An answer can arrive while the write of a rest is in progress. */
  #mayRelease = false
  /** While a write that releases the session is in progress, the lease may be gone before the response arrives. */
  #isReleasing = false
  /** The number of the last record, written or pending. */
  head: number
  /** The time of the last record, written or pending. */
  protected lastTime: number
  /** The last written record. If the log still ends with it, no other process has written. */
  #last: { seq: number; check: string }
  /** The last record that is known to be durable. */
  protected lastWritten: number
  #pending: RecordDraft[] = []
  /** The session's list entry, from the next write on. */
  protected summary: SessionSummary | undefined
  /** Counts the events that the session has emitted, for the last record of a write. */
  protected countEvents: (() => number) | undefined
  #isFlushDue = false
  #acquiring: Promise<void> | undefined
  /** The write in progress. The next write starts after it. */
  #writing: Promise<void> | undefined
  /** After a failure, nothing is written. */
  protected failure: StoreError | undefined
  #listener: LogListener | undefined
  #onFailure = (_failure: StoreError): void => undefined

  constructor(
    { store, lease, clock, holder }: WriteAheadLogParts,
    { head, check, at, inbox: applied, queued, keys }: LogEnd & InboxEnd,
    format: InboxFormat<Message>,
  ) {
    this.sessionId = lease.sessionId
    this.store = store
    this.clock = clock
    this.#holder = holder
    this.head = head
    this.lastTime = at
    this.lastWritten = head
    this.#last = { seq: head, check }
    this.#lease = lease
    this.#renewedAt = readElapsed(clock)
    heartbeats.get(store, clock).add(this.#member)
    const confirmHeld = () => this.flush()?.then(() => this.#confirmHeld()) ?? this.#confirmHeld()
    const position = { applied, queued, keys, found: lease.inbox }
    this.inbox = new InboxReader(store, lease.sessionId, { clock, format, ...position, confirmHeld })
    this.inbox.startPolling()
  }

  /** When idle, any process may acquire the session. */
  get isResting(): boolean {
    return !this.#isHeld
  }

  protected get hasPending(): boolean {
    return this.#pending.length > 0
  }

  get hasFailed(): boolean {
    return this.failure !== undefined
  }

  setListener(listener: LogListener): void {
    this.#listener = listener
    if (this.#isHeld) listener('held')
  }

  /** Called at most once, when a write fails. After that, nothing is written. */
  onFailure(listener: (failure: StoreError) => void): void {
    this.#onFailure = listener
  }

  /** If `draft` throws, the log ends. Returns null if it has ended. */
  protected addRecord(draft: (seq: number) => RecordDraft): RecordDraft | null {
    if (this.failure) return null
    let record: RecordDraft
    try {
      record = draft(this.head + 1)
    } catch (error) {
      this.#fail(error)
      return null
    }
    this.head = record.seq
    this.lastTime = record.at
    this.#pending.push(record)
    this.#mayRelease = false
    if (this.#isFlushDue) return record
    this.#isFlushDue = true
    queueMicrotask(() => {
      this.flush()?.catch(() => undefined)
    })
    return record
  }

  flush(): Promise<void> | undefined {
    this.#isFlushDue = false
    if (this.failure) return Promise.reject(this.failure)
    if (this.#writing) return this.#writing.then(() => this.flush())
    if (this.#pending.length === 0 && this.summary === undefined) return undefined
    const written = this.#failOnError(
      () => {
        // An answer may arrive after the session was released.
        const ours = this.#isHeld ? this.checkHeld() : this.reacquire()
        return ours ? ours.then(() => this.#write()) : this.#write()
      },
      () => (this.#writing = undefined),
    )
    // A write without a promise may have started a later one.
    if (written) this.#writing = written
    return written
  }

  /** Ends the log if the work fails. `over` is called when a promise has settled. */
  #failOnError(work: () => MaybePromise<void>, over: () => void): Promise<void> | undefined {
    const done = attempt(
      work,
      () => undefined,
      async (error) => {
        throw this.#fail(error)
      },
    )
    return done?.finally(over)
  }

  /** Writes all pending records, then releases the session for the process that resumes it. */
  protected writeRest(): Promise<void> | undefined {
    this.#mayRelease = true
    return this.flush()?.finally(() => this.#releaseAtRest()) ?? this.#releaseAtRest()
  }

  /** Releases the session, unless it has continued or is about to write another rest. */
  #releaseAtRest(): Promise<void> | undefined {
    const isWritten = this.#writing === undefined && this.summary === undefined
    return this.#mayRelease && isWritten ? this.#release() : undefined
  }

  close(): Promise<void> | undefined {
    return this.flush()?.finally(() => this.#release()) ?? this.#release()
  }

  /** Reacquires the session if no other process has written. Simultaneous callers share one acquisition. */
  reacquire(): Promise<void> | undefined {
    if (this.failure) return Promise.reject(this.failure)
    if (this.#acquiring) return this.#acquiring
    if (this.#isHeld) return undefined
    const by = { holder: this.#holder, clock: this.clock, head: this.#last.seq }
    this.#acquiring = this.#failOnError(
      () => chain(acquireLeaseAgain(this.store, this.sessionId, by), (lease) => this.#acceptLease(lease)),
      () => (this.#acquiring = undefined),
    )
    return this.#acquiring
  }

  /** Compares checksums, because a session that was deleted and created again can have as many records. */
  #acceptLease(lease: Lease): MaybePromise<void> {
    this.#setLease(lease)
    return chain(this.store.read(this.sessionId, { from: Math.max(1, this.#last.seq) }), (records) => {
      const { seq, check } = this.#last
      if (records.length !== (seq === 0 ? 0 : 1) || (records[0]?.check ?? '') !== check) {
        void this.#release()
        throw takenOverError(this.sessionId)
      }
      this.inbox.noteAnswer({ inbox: this.#lease.inbox ?? 0 })
    })
  }

  #write(): MaybePromise<void> {
    const lastEventSeq = this.countEvents?.()
    const last = this.#pending.length - 1
    const records = this.#pending.map((draft, i) => sealDraft(draft, i === last ? lastEventSeq : undefined))
    const summary = this.summary
    this.#pending = []
    this.summary = undefined
    const end = records.at(-1)
    if (end) this.#last = { seq: end.seq, check: end.check }
    const settled = this.inbox.takeApplied()
    // Messages that have arrived are processed first, while the session is still held.
    this.#isReleasing = this.#mayRelease && end !== undefined && !this.inbox.hasOpenMessages
    const isLast = this.#isReleasing
    const answer = appendWithAlarm(this.store, this.#lease, records, { summary, isLast })
    return chain(answer, (appended) => {
      this.lastWritten = Math.max(this.lastWritten, end?.seq ?? 0)
      this.#isReleasing = false
      this.inbox.remove(settled)
      if (appended?.released) this.#markReleased()
      this.inbox.noteAnswer(appended)
      this.#listener?.('written')
    })
  }

  #setLease(acquired: Lease): void {
    const isNew = !this.#isHeld
    this.#lease = acquired
    this.#renewedAt = readElapsed(this.clock)
    this.#isHeld = true
    if (isNew) this.#listener?.('held')
    this.inbox.startPolling()
    heartbeats.get(this.store, this.clock).add(this.#member)
  }

  readonly #member: HeartbeatMember = {
    getLease: () => this.#lease,
    /** Ignores the renewal of an earlier lease, because a new one may have been acquired after a rest. */
    onRenewed: (renewed) => {
      if (this.#isHeld && this.#lease.token === renewed.token) this.#setLease(renewed)
    },
    /** In the meantime, a different lease may have been acquired. */
    onRenewalFailed: ({ token }, error) => {
      if (!this.#isHeld || this.#isReleasing || this.#lease.token !== token) return
      const isOver = readElapsed(this.clock) - this.#renewedAt >= leaseMs
      const isLost = error instanceof StoreError && error.code === 'lease_lost'
      // A short outage of the store is harmless as long as the lease is valid.
      if (isLost || isOver) this.#fail(error)
    },
  }

  #renew(): Promise<void> | undefined {
    const asked = this.#lease
    const renewed = attempt(
      () => this.store.renew(asked, leaseMs),
      this.#member.onRenewed,
      (error) => this.#member.onRenewalFailed(asked, error),
    )
    const failIfLost = () => this.failure && Promise.reject(this.failure)
    if (!renewed) return failIfLost()
    this.#renewing = renewed.finally(() => (this.#renewing = undefined)).then(failIfLost)
    return this.#renewing
  }

  /** Confirms the lease with the store, regardless of its age. */
  #confirmHeld(): Promise<void> | undefined {
    if (this.#renewing) return this.#renewing.then(() => this.#confirmHeld())
    return this.#isHeld ? this.#renew() : Promise.reject(leaseLostError(this.#lease))
  }

  /** Confirms the lease, with the store if it may be stale. Returns undefined while it is fresh. */
  checkHeld(): Promise<void> | undefined {
    if (this.failure) return Promise.reject(this.failure)
    if (this.#renewing) return this.#renewing
    // After a long suspension, this process may still be the only one that wants the session.
    const mayBeStale = readElapsed(this.clock) - this.#renewedAt > leaseMs / 2
    return this.#isHeld && mayBeStale ? this.#renew() : undefined
  }

  #markReleased(): void {
    this.#isHeld = false
    heartbeats.get(this.store, this.clock).remove(this.#member)
    this.inbox.stopPolling()
    this.#listener?.('released')
  }

  #release(): Promise<void> | undefined {
    if (!this.#isHeld) return findRelease(this.store, this.sessionId)
    this.#markReleased()
    return releaseLease(this.store, this.#lease, this.clock, (answer) => this.inbox.noteAnswer(answer))
  }

  #fail(error: unknown): StoreError {
    if (this.failure) return this.failure
    this.failure = toStoreError(this.sessionId, error)
    this.#pending = []
    this.inbox.close()
    void this.#release()
    this.#onFailure(this.failure)
    return this.failure
  }
}
