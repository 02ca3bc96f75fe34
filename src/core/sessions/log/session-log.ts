import type { AgentContext, SessionState } from '../../../../machines/agent/context.js'
import { isWorkState } from '../../../../machines/agent/run-result.js'
import type { Clock } from '../../base/clock.js'
import { createOpening, createSnapshot, toStartInput } from './create-records.js'
import { type Journal, type JournalEntry, toLinkField } from '../journal.js'
import { InboxReader } from '../inbox/inbox-reader.js'
import { listClientIds } from '../inbox/queued-message.js'
import type { Appended, Lease, LogRecord, SessionStore, SessionSummary } from '../store/store.js'
import { type StoreError, takenOverError, toStoreError } from '../store/store-error.js'
import { HeldLease } from './held-lease.js'
import { CurrentFacts, type FirstFacts, noLogListener, type LogListener } from './session-facts.js'
import { acquireLeaseAgain } from './release-lease.js'
import { draftRecord, type RecordContent, type RecordDraft, sealDraft } from './log-record.js'
import { type FoldedRun, toMachineState, type FoldedSession } from '../fold-session.js'
import { appendWithAlarm } from '../alarm.js'
import { createFirstSummary, createSummary } from '../session-summary.js'

/**
 * A snapshot is written after this many characters, and after a quarter of the last snapshot's size. Reading then folds
 * at most a fifth of a log, and the cost of snapshots stays proportional to new records.
 */
const minSnapshotChars = 64_000

export interface SessionLogParts extends FirstFacts {
  store: SessionStore
  lease: Lease
  folded: FoldedSession
  clock: Clock
  /** A description of the lease owner. */
  holder: string
  resumesAt: number
}

/**
 * The write-ahead log of one session, written by one run. Entries are collected and become durable with the next
 * `flush()`, or at the end of the current event loop turn. The process holds the session between two rests. At a rest,
 * any process may acquire it.
 */
export class SessionLog implements Journal {
  readonly sessionId: string
  /** Messages that people and programs have sent to the session from any process. */
  readonly inbox: InboxReader
  readonly store: SessionStore
  /** The time at which the run starts or resumes here. */
  readonly resumesAt: number
  /** The time of the last record. */
  #at: number
  readonly #clock: Clock
  readonly #holder: string
  /** The identity of the session. */
  readonly facts: CurrentFacts
  readonly #lease: HeldLease
  /** True from a rest until the next entry, because an answer can arrive while the rest is still being written. */
  #mayRelease = false
  /** A write that releases the session is in progress. The lease may be gone before the response arrives. */
  #isReleasing = false
  #head: number
  /** The last record when the session was acquired. */
  readonly #foundHead: number
  /** The number and checksum of the last written record. If the log still ends with it, no other process has written. */
  #last: { seq: number; check: string }
  /** The last record that is known to be durable. */
  #written: number
  /** The start record of a run that started here, or 0 if the run is older. */
  #runStartedAt = 0
  #snapshotSize: number
  #tailSize: number
  #initialState: SessionState | undefined
  /** The queued message that starts the run. */
  #queued: number | undefined
  #pending: RecordDraft[] = []
  #summary: SessionSummary | undefined
  #isFlushDue = false
  #isJustResumed = false
  /** Whether session lists show the run as running. */
  #isListedAsRunning = false
  /** A reacquisition in progress. */
  #acquiring: Promise<void> | undefined
  /** The write in progress. The next write starts after it. */
  #writing: Promise<void> | undefined
  #failure: StoreError | undefined
  #listener = noLogListener
  #onFailure = (_failure: StoreError): void => undefined
  #getEventNumber = (): number | undefined => undefined
  #link: string | null

  constructor(parts: SessionLogParts) {
    const { store, lease, folded, clock, holder, resumesAt } = parts
    this.resumesAt = resumesAt
    this.#at = folded.at
    this.sessionId = lease.sessionId
    this.store = store
    this.#clock = clock
    this.#holder = holder
    this.facts = new CurrentFacts(folded, parts)
    this.#head = folded.head
    this.#foundHead = folded.head
    this.#written = folded.head
    this.#last = { seq: folded.head, check: folded.check }
    this.#snapshotSize = folded.snapshotSize
    this.#tailSize = folded.tailSize
    this.inbox = new InboxReader(store, lease.sessionId, {
      clock,
      applied: folded.inbox,
      queued: folded.queued,
      keys: folded.keys,
      found: lease.inbox,
      confirmHeld: () => this.#confirmHeld(),
    })
    this.inbox.startPolling()
    this.#link = folded.link
    this.#lease = new HeldLease(store, clock, lease, {
      getFailure: () => this.#failure,
      isReleasing: () => this.#isReleasing,
      onLost: (error) => this.#fail(error),
      onHeld: (isNew) => {
        if (isNew) this.#listener.onHeld()
        this.inbox.startPolling()
      },
      onReleased: () => {
        this.inbox.stopPolling()
        this.#listener.onReleased()
      },
      onInboxAnswer: (told) => this.inbox.noteAnswer(told),
    })
  }

  /** True while the run rests and any process may acquire the session. */
  get isResting(): boolean {
    return !this.#lease.isHeld
  }

  /** The number of the last record, written or pending. */
  get head(): number {
    return this.#head
  }

  /** Whether a write has failed. Nothing is written afterwards. */
  get hasFailed(): boolean {
    return this.#failure !== undefined
  }

  /** Whether the run can resume from its log after a failed write, because its start is durable. */
  get isResumable(): boolean {
    return this.hasFailed && this.#written >= this.#runStartedAt
  }

  /** Whether the run has no new record since it was resumed here. */
  get isJustResumed(): boolean {
    return this.#isJustResumed
  }

  /** Sets the listener for later changes of the log. */
  setListener(presence: LogListener): void {
    this.#listener = presence
    if (this.#lease.isHeld) presence.onHeld()
  }

  /** Calls the listener at most once, when a write fails. Nothing is written afterwards. */
  onFailure(listener: (failure: StoreError) => void): void {
    this.#onFailure = listener
  }

  /** Adds the initial state of a session that is new to the store. It is written with the first entry. */
  addInitialState(state: SessionState): void {
    if (state.messages.length > 0 || state.usage.totalTokens > 0 || state.terms) this.#initialState = state
  }

  /** Names the queued message that starts the next run. The start record contains it. */
  setQueued(message: number): void {
    this.#queued = message
    this.inbox.beginWith(message)
  }

  setEventCounter(told: () => number): void {
    this.#getEventNumber = told
  }

  append(entry: JournalEntry): void {
    if (entry.type === 'start' || entry.link !== undefined) this.#link = entry.link ?? null
    this.#isJustResumed = entry.type === 'event' && entry.event.type === 'RESUMED'
    if (entry.type === 'event') {
      this.write(entry)
      if (entry.event.inbox !== undefined) this.inbox.markApplied(entry.event.inbox, entry.event.key)
      return
    }
    if (this.#head === 0) this.write(createOpening(this.facts.current, this.#initialState))
    this.#runStartedAt = this.#head + 1
    this.write({
      type: 'start',
      input: toStartInput(entry.input),
      ...this.facts.beginRun(this.#runStartedAt),
      ...(this.#queued !== undefined && { queued: this.#queued }),
      ...toLinkField(this.#link),
    })
    this.inbox.markSaid(this.#queued, listClientIds(entry.input.input))
  }

  write(content: RecordContent): void {
    if (this.#failure) return
    if (content.type === 'snapshot') this.facts.repeat(content)
    if (content.type === 'opened') this.facts.markOpened()
    const entry = this.facts.nameFeatures(content)
    let record: RecordDraft
    try {
      record = draftRecord(this.#head + 1, this.#getRecordTime(entry), entry)
    } catch (error) {
      this.#fail(error)
      return
    }
    this.#head = record.seq
    this.#at = record.at
    this.#tailSize += record.data.length
    this.#pending.push(record)
    this.#mayRelease = false
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    queueMicrotask(() => {
      this.flush()?.catch(() => undefined)
    })
  }

  /** The time of a record, by the run's clock if the entry belongs to a run. Never earlier than the previous record. */
  #getRecordTime(entry: RecordContent): number {
    if (entry.type === 'snapshot') return this.#at
    if (entry.type === 'start' || entry.type === 'opened') return Math.max(this.#at, this.resumesAt)
    return (entry.type === 'event' ? entry.event.now : undefined) ?? this.#clock.now()
  }

  /** Writes a snapshot if it saves enough reading. While a run is working, session lists are updated at once. */
  onReached(run: FoldedRun): void {
    if (isWorkState(run.context.state)) this.markRunning(run.context)
    // The start record already contains the whole state.
    if (this.#head === this.#runStartedAt) return
    if (this.#tailSize < Math.max(minSnapshotChars, this.#snapshotSize / 4)) return
    const size = this.#tailSize
    this.write(createSnapshot(toMachineState(run), this.facts.current, this.inbox, this.#link))
    this.#snapshotSize = this.#tailSize - size
    this.#tailSize = 0
  }

  /** Marks the run as running in session lists until its next rest. */
  markRunning(context: AgentContext): void {
    if (this.#isListedAsRunning) return
    this.#isListedAsRunning = true
    this.setSummary(context)
  }

  /** Sets the session's list entry, from the next write on. */
  setSummary(context: AgentContext): void {
    this.#summary = createSummary(context, this.facts.current)
  }

  /** Sets the list entry of a fork that was never resumed. */
  setForkSummary(context: AgentContext): void {
    this.#summary = { ...createSummary(context, this.facts.current), unresumed: true }
  }

  /** Sets the list entry of a session without runs. */
  setFirstSummary(state: SessionState): void {
    this.#summary = createFirstSummary(state, this.facts.current)
  }

  flush(): Promise<void> | undefined {
    this.#isFlushDue = false
    if (this.#failure) return Promise.reject(this.#failure)
    if (this.#writing) return this.#writing.then(() => this.flush())
    if (this.#pending.length === 0 && this.#summary === undefined) return undefined
    try {
      const written = this.#writeAsHolder()
      if (!written) return undefined
      this.#writing = this.#failOnError(written, () => (this.#writing = undefined))
      return this.#writing
    } catch (error) {
      return Promise.reject(this.#fail(error))
    }
  }

  /** A rejection ends the log. `over` is called in any case. */
  async #failOnError(work: Promise<void>, over: () => void): Promise<void> {
    try {
      await work
    } catch (error) {
      throw this.#fail(error)
    } finally {
      over()
    }
  }

  /** Writes all pending records, then releases the session for the process that resumes it. */
  rest(context: AgentContext): Promise<void> | undefined {
    if (this.#failure) return Promise.reject(this.#failure)
    if (!this.#lease.isHeld && this.#pending.length === 0) return undefined
    // A run that still sleeps is already listed. Another write would set the time of its last record to now and restart
    // its sleep each time.
    const isNews = this.#head > this.#foundHead || this.#isListedAsRunning
    if (context.wakeAt === null || isNews) this.setSummary(context)
    this.#isListedAsRunning = false
    this.#mayRelease = true
    return this.flush()?.finally(() => this.#releaseAtRest()) ?? this.#releaseAtRest()
  }

  /** Releases the session, unless the run has continued or is about to write another rest. */
  #releaseAtRest(): Promise<void> | undefined {
    const isWritten = this.#writing === undefined && this.#summary === undefined
    return this.#mayRelease && isWritten ? this.#lease.release() : undefined
  }

  close(): Promise<void> | undefined {
    return this.flush()?.finally(() => this.#lease.release()) ?? this.#lease.release()
  }

  /**
   * Reacquires the session if no other process has written to it since. An answer and a write that need it at the same
   * time share one acquisition.
   */
  reacquire(): Promise<void> | undefined {
    if (this.#failure) return Promise.reject(this.#failure)
    if (this.#acquiring) return this.#acquiring
    if (this.#lease.isHeld) return undefined
    try {
      const by = { holder: this.#holder, clock: this.#clock, head: this.#last.seq }
      const lease = acquireLeaseAgain(this.store, this.sessionId, by)
      const taken =
        lease instanceof Promise ? lease.then((given) => this.#acceptLease(given)) : this.#acceptLease(lease)
      if (taken) this.#acquiring = this.#failOnError(taken, () => (this.#acquiring = undefined))
      return this.#acquiring
    } catch (error) {
      return Promise.reject(this.#fail(error))
    }
  }

  #acceptLease(lease: Lease): Promise<void> | undefined {
    this.#lease.setLease(lease)
    const end = this.store.read(this.sessionId, { from: Math.max(1, this.#last.seq) })
    if (end instanceof Promise) return end.then((records) => this.#checkNothingNew(records))
    this.#checkNothingNew(end)
    return undefined
  }

  /** A session that was deleted and created again can have the same number of records, so the checksums are compared. */
  #checkNothingNew(records: readonly LogRecord[]): void {
    const { seq, check } = this.#last
    if (records.length === (seq === 0 ? 0 : 1) && (records[0]?.check ?? '') === check) {
      this.inbox.noteAnswer({ inbox: this.#lease.lease.inbox ?? 0 })
      return
    }
    void this.#lease.release()
    throw takenOverError(this.sessionId)
  }

  /** An answer given during the rest may find the session already released. */
  #writeAsHolder(): Promise<void> | undefined {
    const ours = this.#lease.isHeld ? this.checkHeld() : this.reacquire()
    return ours ? ours.then(() => this.#write()) : this.#write()
  }

  #write(): Promise<void> | undefined {
    const told = this.#getEventNumber()
    const last = this.#pending.length - 1
    const records = this.#pending.map((draft, i) => sealDraft(draft, i === last ? told : undefined))
    const summary = this.#summary
    this.#pending = []
    this.#summary = undefined
    const end = records.at(-1)
    if (end) this.#last = { seq: end.seq, check: end.check }
    const settled = this.inbox.takeApplied()
    // Messages that have arrived are processed first, while the session is held.
    this.#isReleasing = this.#mayRelease && end !== undefined && !this.inbox.hasOpenMessages
    const isLast = this.#isReleasing
    const answer = appendWithAlarm(this.store, this.#lease.lease, records, { summary, isLast })
    const head = end?.seq ?? 0
    if (answer instanceof Promise) return answer.then((told) => this.#markWritten(head, settled, told))
    this.#markWritten(head, settled, answer)
    return undefined
  }

  #markWritten(head: number, settled: number[], told: Appended | void): void {
    this.#written = Math.max(this.#written, head)
    this.#isReleasing = false
    this.inbox.removeDurable(settled)
    if (told?.released) this.#lease.markReleased()
    this.inbox.noteAnswer(told)
    this.#listener.onWritten()
  }

  /** Confirms the lease, and renews it if it may be old. Undefined while it is fresh. */
  checkHeld(): Promise<void> | undefined {
    return this.#failure ? Promise.reject(this.#failure) : this.#lease.ensureHeld()
  }

  /** Resolves when all records are durable and the lease is still held. */
  #confirmHeld(): Promise<void> | undefined {
    return this.flush()?.then(() => this.#lease.confirmHeld()) ?? this.#lease.confirmHeld()
  }

  #fail(error: unknown): StoreError {
    if (this.#failure) return this.#failure
    this.#failure = toStoreError(this.sessionId, error)
    this.#pending = []
    this.inbox.close()
    void this.#lease.release()
    this.#onFailure(this.#failure)
    return this.#failure
  }
}
