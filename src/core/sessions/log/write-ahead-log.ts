import type { Clock } from '../../base/clock.js'
import { attempt, chain, type MaybePromise } from '../../base/maybe-promise.js'
import { appendWithAlarm } from '../alarm.js'
import { type InboxFormat, InboxReader } from '../inbox/inbox-reader.js'
import type { Lease, SessionStore, SessionSummary } from '../store/store.js'
import { type StoreError, takenOverError, toStoreError } from '../store/store-error.js'
import { type RecordDraft, sealDraft } from './log-record.js'
import { acquireLeaseAgain, type HeldLease, holdLease } from './lease.js'

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
  readonly #lease: HeldLease
  /** Until the next record. An answer can arrive while the write of a rest is in progress. */
  #mayRelease = false
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
    this.#lease = holdLease(store, clock, lease, {
      getFailure: () => this.failure,
      isReleasing: () => this.#isReleasing,
      onLost: (error) => this.#fail(error),
      onHeld: (isNew) => {
        if (isNew) this.#listener?.('held')
        this.inbox.startPolling()
      },
      onReleased: () => {
        this.inbox.stopPolling()
        this.#listener?.('released')
      },
      onInboxAnswer: (answer) => this.inbox.noteAnswer(answer),
    })
    const confirmHeld = () => this.flush()?.then(() => this.#lease.confirmHeld()) ?? this.#lease.confirmHeld()
    const position = { applied, queued, keys, found: lease.inbox }
    this.inbox = new InboxReader(store, lease.sessionId, { clock, format, ...position, confirmHeld })
    this.inbox.startPolling()
  }

  /** When idle, any process may acquire the session. */
  get isResting(): boolean {
    return !this.#lease.isHeld
  }

  protected get hasPending(): boolean {
    return this.#pending.length > 0
  }

  get hasFailed(): boolean {
    return this.failure !== undefined
  }

  setListener(listener: LogListener): void {
    this.#listener = listener
    if (this.#lease.isHeld) listener('held')
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
      () => this.#writeAsHolder(),
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
    return this.#mayRelease && isWritten ? this.#lease.release() : undefined
  }

  close(): Promise<void> | undefined {
    return this.flush()?.finally(() => this.#lease.release()) ?? this.#lease.release()
  }

  /** Reacquires the session if no other process has written. Simultaneous callers share one acquisition. */
  reacquire(): Promise<void> | undefined {
    if (this.failure) return Promise.reject(this.failure)
    if (this.#acquiring) return this.#acquiring
    if (this.#lease.isHeld) return undefined
    const by = { holder: this.#holder, clock: this.clock, head: this.#last.seq }
    this.#acquiring = this.#failOnError(
      () => chain(acquireLeaseAgain(this.store, this.sessionId, by), (lease) => this.#acceptLease(lease)),
      () => (this.#acquiring = undefined),
    )
    return this.#acquiring
  }

  /** Compares checksums, because a session that was deleted and created again can have as many records. */
  #acceptLease(lease: Lease): MaybePromise<void> {
    this.#lease.setLease(lease)
    return chain(this.store.read(this.sessionId, { from: Math.max(1, this.#last.seq) }), (records) => {
      const { seq, check } = this.#last
      if (records.length !== (seq === 0 ? 0 : 1) || (records[0]?.check ?? '') !== check) {
        void this.#lease.release()
        throw takenOverError(this.sessionId)
      }
      this.inbox.noteAnswer({ inbox: this.#lease.lease.inbox ?? 0 })
    })
  }

  /** An answer may arrive after the session was released. */
  #writeAsHolder(): MaybePromise<void> {
    const ours = this.#lease.isHeld ? this.checkHeld() : this.reacquire()
    return ours ? ours.then(() => this.#write()) : this.#write()
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
    const answer = appendWithAlarm(this.store, this.#lease.lease, records, { summary, isLast })
    return chain(answer, (appended) => {
      this.lastWritten = Math.max(this.lastWritten, end?.seq ?? 0)
      this.#isReleasing = false
      this.inbox.remove(settled)
      if (appended?.released) this.#lease.markReleased()
      this.inbox.noteAnswer(appended)
      this.#listener?.('written')
    })
  }

  /** Confirms the lease if it may be stale. Returns undefined while it is fresh. */
  checkHeld(): Promise<void> | undefined {
    return this.failure ? Promise.reject(this.failure) : this.#lease.ensureHeld()
  }

  #fail(error: unknown): StoreError {
    if (this.failure) return this.failure
    this.failure = toStoreError(this.sessionId, error)
    this.#pending = []
    this.inbox.close()
    void this.#lease.release()
    this.#onFailure(this.failure)
    return this.failure
  }
}
