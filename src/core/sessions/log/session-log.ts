import type { AgentContext, SessionState } from '../../../../machines/agent/context.js'
import type { Clock } from '../../base/clock.js'
import { type Journal, type JournalEntry, linked } from '../journal.js'
import { InboxReader } from '../inbox/inbox-reader.js'
import type { Appended, Lease, LogRecord, SessionStore, SessionSummary } from '../store/store.js'
import { takenOver, unwritable } from '../store/refusals.js'
import type { StoreError } from '../store/store-error.js'
import type { AgentDefinition } from '../definition.js'
import { leaseMs } from './heartbeat.js'
import { HeldLease } from './held-lease.js'
import { nobodyPresent, type Presence } from './presence.js'
import { acquireLease } from './lease.js'
import { type RecordContent, logVersion, type StartInput } from './record-content.js'
import { type Draft, draftRecord, sealDraft } from './log-record.js'
import { type FoldedRun, machineStateOf, type Standing } from '../standing.js'
import { summaryOf } from '../summary.js'

/**
 * A snapshot is taken when so many characters have come since the last one, and a quarter of its size: reading a log
 * folds a fifth of it at most, and what snapshots cost stays in proportion to what is new.
 */
const snapshotAfter = 64_000

export interface SessionLogParts {
  store: SessionStore
  lease: Lease
  standing: Standing
  clock: Clock
  /** Who writes, in words for people. */
  holder: string
  /** The name of a session that does not exist yet. */
  name: string | undefined
  /** The agent that begins what runs here. */
  definition?: (() => AgentDefinition) | undefined
  /** See `resumedTime`. */
  resumesAt?: number | undefined
}

/**
 * The log of one session, written ahead by one run. What is appended is gathered and becomes durable with the next
 * `flush()`, or at the end of the present turn of the event loop. Between two rests the session is ours alone; at a
 * rest anybody may take it over.
 */
export class SessionLog implements Journal {
  readonly sessionId: string
  /** What people and programs have left for the session, wherever they are. */
  readonly inbox: InboxReader
  readonly store: SessionStore
  /** The time at which a run goes on that another process has left, by the clock of that process. */
  readonly resumesAt: number | undefined
  /** The time of the last record. */
  #at: number
  readonly #clock: Clock
  readonly #holder: string
  readonly #name: string | undefined
  readonly #beginner: (() => AgentDefinition) | undefined
  /** The agent that began the run. */
  #definition: AgentDefinition | null
  readonly #lease: HeldLease
  /** True from a rest until the next entry: an answer can come while the rest is still being written. */
  #mayRelease = false
  /** A write is under way that gives the session free: the lease may be gone before its answer is here. */
  #isLeaving = false
  #head: number
  /** The last record that was written, by its checksum: the log is ours as long as it still ends with it. */
  #last: { seq: number; check: string }
  /** The last record that is known to be durable. */
  #written: number
  /** The record with which the run began here; 0: it was there before. */
  #begunAt = 0
  #runs: number
  #snapshotSize: number
  #tailSize: number
  #brought: SessionState | undefined
  #pending: Draft[] = []
  #summary: SessionSummary | undefined
  #isDue = false
  #isJustResumed = false
  /** Whether a list of sessions knows that the run is under way. */
  #isTold = false
  /** The session is being taken again. */
  #waking: Promise<void> | undefined
  /** The write that is under way; the next one begins after it. */
  #writing: Promise<void> | undefined
  #failure: StoreError | undefined
  #presence = nobodyPresent
  #onFailure = (_failure: StoreError): void => undefined
  #told = (): number | undefined => undefined
  #link: string | null

  constructor({ store, lease, standing, clock, holder, name, definition, resumesAt }: SessionLogParts) {
    this.resumesAt = resumesAt
    this.#at = standing.at
    this.sessionId = lease.sessionId
    this.store = store
    this.#clock = clock
    this.#holder = holder
    this.#name = standing.name ?? name
    this.#beginner = definition
    this.#definition = standing.definition
    this.#head = standing.head
    this.#written = standing.head
    this.#last = { seq: standing.head, check: standing.check }
    this.#runs = standing.runs
    this.#snapshotSize = standing.snapshotSize
    this.#tailSize = standing.tailSize
    this.inbox = new InboxReader(store, lease.sessionId, {
      clock,
      applied: standing.inbox,
      keys: standing.keys,
      found: lease.inbox,
    })
    this.inbox.hold()
    this.#link = standing.link
    this.#lease = new HeldLease(store, clock, lease, {
      failure: () => this.#failure,
      isLeaving: () => this.#isLeaving,
      lost: (error) => this.#fail(error),
      held: (isNew) => {
        if (isNew) this.#presence.held()
        this.inbox.hold()
      },
      letGo: () => {
        this.inbox.letGo()
        this.#presence.released()
      },
      heard: (told) => this.inbox.heard(told),
    })
  }

  /** True between a rest and what wakes the run: anybody may write to the session. */
  get isResting(): boolean {
    return !this.#lease.isHeld
  }

  /** The number of the last record, written or about to be. */
  get head(): number {
    return this.#head
  }

  /** Whether something could not be written: nothing is written since. */
  get hasFailed(): boolean {
    return this.#failure !== undefined
  }

  /** Whether the run goes on from its log, although something could not be written: its beginning is durable. */
  get goesOn(): boolean {
    return this.hasFailed && this.#written >= this.#begunAt
  }

  /** Whether nothing has come of the run since it was resumed here. */
  get isJustResumed(): boolean {
    return this.#isJustResumed
  }

  /** Told of what becomes of the log from now on. */
  onPresence(presence: Presence): void {
    this.#presence = presence
    if (this.#lease.isHeld) presence.held()
  }

  /** Told at most once, when something could not be written: nothing is written from then on. */
  onFailure(listener: (failure: StoreError) => void): void {
    this.#onFailure = listener
  }

  /** What a session brings that is new to the store; written with its first entry. */
  bring(state: SessionState): void {
    if (state.messages.length > 0 || state.usage.totalTokens > 0) this.#brought = state
  }

  setEventCounter(told: () => number): void {
    this.#told = told
  }

  append(entry: JournalEntry): void {
    if (entry.type === 'start' || entry.link !== undefined) this.#link = entry.link ?? null
    this.#isJustResumed = entry.type === 'event' && entry.event.type === 'RESUMED'
    if (entry.type === 'event') {
      this.write(entry)
      if (entry.event.inbox !== undefined) this.inbox.applies(entry.event.inbox, entry.event.key)
      return
    }
    const { messages: _m, usage: _u, guardrails: _g, warnedOfBudget: _w, fit: _f, ...input } = entry.input
    this.#runs += 1
    if (this.#head === 0) this.write(this.#opening())
    this.#definition = this.#beginner?.() ?? null
    this.#begunAt = this.#head + 1
    this.write({ type: 'start', input: input satisfies StartInput, ...this.#defined, ...linked(this.#link) })
  }

  get #defined(): { definition?: AgentDefinition } {
    return this.#definition === null ? {} : { definition: this.#definition }
  }

  #opening(): RecordContent {
    const named = this.#name === undefined ? {} : { name: this.#name }
    return { type: 'opened', version: logVersion, ...named, ...(this.#brought && { state: this.#brought }) }
  }

  write(entry: RecordContent): void {
    if (this.#failure) return
    if (entry.type === 'snapshot') this.#definition = entry.definition ?? null
    let record: Draft
    try {
      record = draftRecord(this.#head + 1, this.#timeOf(entry), entry)
    } catch (error) {
      this.#fail(error)
      return
    }
    this.#head = record.seq
    this.#at = record.at
    this.#tailSize += record.data.length
    this.#pending.push(record)
    this.#mayRelease = false
    if (this.#isDue) return
    this.#isDue = true
    queueMicrotask(() => {
      this.flush()?.catch(() => undefined)
    })
  }

  /** By the time of the run, where the entry is of a run. */
  #timeOf(entry: RecordContent): number {
    if (entry.type === 'snapshot') return this.#at
    return (entry.type === 'event' ? entry.event.now : undefined) ?? this.#clock.now()
  }

  /** Keeps the state that the last entry led to, where that saves enough reading. */
  onReached(run: FoldedRun): void {
    if (this.#tailSize < Math.max(snapshotAfter, this.#snapshotSize / 4)) return
    const size = this.#tailSize
    this.write({
      type: 'snapshot',
      version: logVersion,
      ...(this.#name !== undefined && { name: this.#name }),
      runs: this.#runs,
      ...this.#defined,
      ...(this.inbox.applied > 0 && { inbox: this.inbox.applied }),
      ...(this.inbox.keys.length > 0 && { keys: [...this.inbox.keys] }),
      state: machineStateOf(run),
      ...linked(this.#link),
    })
    this.#snapshotSize = this.#tailSize - size
    this.#tailSize = 0
  }

  /** The run is under way: a list of sessions says so until its next rest. */
  begun(context: AgentContext): void {
    if (this.#isTold) return
    this.#isTold = true
    this.describe(context)
  }

  /** What a list of sessions tells of this one, from the next write on. */
  describe(context: AgentContext): void {
    this.#summary = summaryOf(context, { name: this.#name, runs: this.#runs, definition: this.#definition })
  }

  flush(): Promise<void> | undefined {
    this.#isDue = false
    if (this.#failure) return Promise.reject(this.#failure)
    if (this.#writing) return this.#after(this.#writing)
    if (this.#pending.length === 0 && this.#summary === undefined) return undefined
    try {
      const written = this.#writeAsHolder()
      if (!written) return undefined
      this.#writing = this.#orFail(written, () => (this.#writing = undefined))
      return this.#writing
    } catch (error) {
      return Promise.reject(this.#fail(error))
    }
  }

  /** What fails ends the log; `over` is called in any case. */
  async #orFail(work: Promise<void>, over: () => void): Promise<void> {
    try {
      await work
    } catch (error) {
      throw this.#fail(error)
    } finally {
      over()
    }
  }

  /** Everything is durable, and the session free for whoever goes on. */
  rest(context: AgentContext): Promise<void> | undefined {
    if (this.#failure) return Promise.reject(this.#failure)
    if (!this.#lease.isHeld && this.#pending.length === 0) return undefined
    this.#isTold = false
    this.describe(context)
    this.#mayRelease = true
    return this.flush()?.finally(() => this.#releaseAtRest()) ?? this.#releaseAtRest()
  }

  /** Unless the run has gone on meanwhile, or rests anew and tells of it first. */
  #releaseAtRest(): Promise<void> | undefined {
    const isWritten = this.#writing === undefined && this.#summary === undefined
    return this.#mayRelease && isWritten ? this.#lease.release() : undefined
  }

  close(): Promise<void> | undefined {
    return this.flush()?.finally(() => this.#lease.release()) ?? this.#lease.release()
  }

  /**
   * The session is ours again, if no other process has written to it since. An answer and a write may ask for it at the same
   * time: it is taken once.
   */
  wake(): Promise<void> | undefined {
    if (this.#failure) return Promise.reject(this.#failure)
    if (this.#waking) return this.#waking
    if (this.#lease.isHeld) return undefined
    try {
      const lease = acquireLease(this.store, this.sessionId, { holder: this.#holder, ttlMs: leaseMs })
      const taken = lease instanceof Promise ? lease.then((given) => this.#take(given)) : this.#take(lease)
      if (taken) this.#waking = this.#orFail(taken, () => (this.#waking = undefined))
      return this.#waking
    } catch (error) {
      return Promise.reject(this.#fail(error))
    }
  }

  #take(lease: Lease): Promise<void> | undefined {
    this.#lease.hold(lease)
    const end = this.store.read(this.sessionId, { from: Math.max(1, this.#last.seq) })
    if (end instanceof Promise) return end.then((records) => this.#checkNothingNew(records))
    this.#checkNothingNew(end)
    return undefined
  }

  /** A session that was deleted and made anew can have as many records: they are others. */
  #checkNothingNew(records: readonly LogRecord[]): void {
    const { seq, check } = this.#last
    if (records.length === (seq === 0 ? 0 : 1) && (records[0]?.check ?? '') === check) {
      this.inbox.heard({ inbox: this.#lease.lease.inbox ?? 0 })
      return
    }
    void this.#lease.release()
    throw takenOver(this.sessionId)
  }

  #after(writing: Promise<void>): Promise<void> {
    return writing.then(() => this.flush())
  }

  /** An answer that was given in the very moment of the rest comes when the session is free already. */
  #writeAsHolder(): Promise<void> | undefined {
    const ours = this.#lease.isHeld ? this.checkHeld() : this.wake()
    return ours ? ours.then(() => this.#write()) : this.#write()
  }

  #write(): Promise<void> | undefined {
    const told = this.#told()
    const last = this.#pending.length - 1
    const records = this.#pending.map((draft, i) => sealDraft(draft, i === last ? told : undefined))
    const summary = this.#summary
    this.#pending = []
    this.#summary = undefined
    const end = records.at(-1)
    if (end) this.#last = { seq: end.seq, check: end.check }
    const settled = this.inbox.settling()
    // Whatever has come is answered first, while the session is ours.
    this.#isLeaving = this.#mayRelease && end !== undefined && !this.inbox.isOwed
    const answer = this.#isLeaving
      ? this.store.append(this.#lease.lease, records, summary, { release: true })
      : this.store.append(this.#lease.lease, records, summary)
    const head = end?.seq ?? 0
    if (answer instanceof Promise) return answer.then((told) => this.#kept(head, settled, told))
    this.#kept(head, settled, answer)
    return undefined
  }

  #kept(head: number, settled: number[], told: Appended | void): void {
    this.#written = Math.max(this.#written, head)
    this.#isLeaving = false
    this.inbox.durable(settled)
    if (told?.released) this.#lease.letGo()
    this.inbox.heard(told)
    this.#presence.written()
  }

  /** The session is known to be ours: a lease that may be old is renewed. Undefined while it is fresh. */
  checkHeld(): Promise<void> | undefined {
    return this.#failure ? Promise.reject(this.#failure) : this.#lease.held()
  }

  #fail(error: unknown): StoreError {
    if (this.#failure) return this.#failure
    this.#failure = unwritable(this.sessionId, error)
    this.#pending = []
    this.inbox.close()
    void this.#lease.release()
    this.#onFailure(this.#failure)
    return this.#failure
  }
}
