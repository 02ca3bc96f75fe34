import type { AgentContext, SessionState } from '../../../../machines/agent/context.js'
import { type Clock, elapsedOn } from '../../base/clock.js'
import { type Journal, type JournalEntry, linked } from '../journal.js'
import { InboxReader } from '../inbox/inbox-reader.js'
import type { Appended, Lease, LogRecord, SessionStore, SessionSummary } from '../store/store.js'
import { takenOver, unwritable } from '../store/refusals.js'
import { StoreError } from '../store/store-error.js'
import type { AgentDefinition } from '../definition.js'
import { heartbeats, type LeaseHolder, leaseMs } from './heartbeat.js'
import { nobodyPresent, type Presence } from './presence.js'
import { acquireLease, beingReleased, releaseLease } from './lease.js'
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
 * `flushed()`, or at the end of the present turn of the event loop. Between two rests the session is ours alone; at a
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
  #lease: Lease
  /** When the lease was last known to last for a full `leaseMs`. */
  #renewedAt: number
  #isHeld = true
  /** True from a rest until the next entry: an answer can come while the rest is still being written. */
  #mayRelease = false
  /** A write is under way that gives the session free: the lease may be gone before its answer is here. */
  #isLeaving = false
  readonly #heartbeat: ReturnType<typeof heartbeats.of>
  readonly #beats: LeaseHolder
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
  /** The lease is being renewed: before a write or a call. */
  #renewing: Promise<void> | undefined
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
    this.#lease = lease
    this.#renewedAt = elapsedOn(clock)
    this.#heartbeat = heartbeats.of(store, clock)
    this.#beats = {
      lease: () => this.#lease,
      renewed: (renewed) => this.#renewed(renewed),
      failed: (kept, error) => this.#notRenewed(kept, error),
    }
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
    this.#heartbeat.add(this.#beats)
  }

  /** True between a rest and what wakes the run: anybody may write to the session. */
  get isResting(): boolean {
    return !this.#isHeld
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
    if (this.#isHeld) presence.held()
  }

  /** Told at most once, when something could not be written: nothing is written from then on. */
  onFailure(listener: (failure: StoreError) => void): void {
    this.#onFailure = listener
  }

  /** What a session brings that is new to the store; written with its first entry. */
  bring(state: SessionState): void {
    if (state.messages.length > 0 || state.usage.totalTokens > 0) this.#brought = state
  }

  counting(told: () => number): void {
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
      this.flushed()?.catch(() => undefined)
    })
  }

  /** By the time of the run, where the entry is of a run. */
  #timeOf(entry: RecordContent): number {
    if (entry.type === 'snapshot') return this.#at
    return (entry.type === 'event' ? entry.event.now : undefined) ?? this.#clock.now()
  }

  /** Keeps the state that the last entry led to, where that saves enough reading. */
  reached(run: FoldedRun): void {
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

  flushed(): Promise<void> | undefined {
    this.#isDue = false
    if (this.#failure) return Promise.reject(this.#failure)
    if (this.#writing) return this.#after(this.#writing)
    if (this.#pending.length === 0 && this.#summary === undefined) return undefined
    try {
      const written = this.#writeAsHolder()
      if (!written) return undefined
      this.#writing = this.#settled(written)
      return this.#writing
    } catch (error) {
      return Promise.reject(this.#fail(error))
    }
  }

  async #settled(written: Promise<void>): Promise<void> {
    try {
      await written
    } catch (error) {
      throw this.#fail(error)
    } finally {
      this.#writing = undefined
    }
  }

  /** Everything is durable, and the session free for whoever goes on. */
  rest(context: AgentContext): Promise<void> | undefined {
    if (this.#failure) return Promise.reject(this.#failure)
    if (!this.#isHeld && this.#pending.length === 0) return undefined
    this.#isTold = false
    this.describe(context)
    this.#mayRelease = true
    return this.flushed()?.finally(() => this.#releaseAtRest()) ?? this.#releaseAtRest()
  }

  /** Unless the run has gone on meanwhile, or rests anew and tells of it first. */
  #releaseAtRest(): Promise<void> | undefined {
    const isWritten = this.#writing === undefined && this.#summary === undefined
    return this.#mayRelease && isWritten ? this.#release() : undefined
  }

  close(): Promise<void> | undefined {
    return this.flushed()?.finally(() => this.#release()) ?? this.#release()
  }

  /**
   * The session is ours again, if no other process has written to it since. An answer and a write may ask for it at the same
   * time: it is taken once.
   */
  wake(): Promise<void> | undefined {
    if (this.#failure) return Promise.reject(this.#failure)
    if (this.#waking) return this.#waking
    if (this.#isHeld) return undefined
    try {
      const lease = acquireLease(this.store, this.sessionId, { holder: this.#holder, ttlMs: leaseMs })
      const taken = lease instanceof Promise ? lease.then((given) => this.#take(given)) : this.#take(lease)
      if (taken) this.#waking = this.#woken(taken)
      return this.#waking
    } catch (error) {
      return Promise.reject(this.#fail(error))
    }
  }

  async #woken(taken: Promise<void>): Promise<void> {
    try {
      await taken
    } catch (error) {
      throw this.#fail(error)
    } finally {
      this.#waking = undefined
    }
  }

  #take(lease: Lease): Promise<void> | undefined {
    this.#hold(lease)
    const end = this.store.read(this.sessionId, { from: Math.max(1, this.#last.seq) })
    if (end instanceof Promise) return end.then((records) => this.#checkNothingNew(records))
    this.#checkNothingNew(end)
    return undefined
  }

  /** A session that was deleted and made anew can have as many records: they are others. */
  #checkNothingNew(records: readonly LogRecord[]): void {
    const { seq, check } = this.#last
    if (records.length === (seq === 0 ? 0 : 1) && (records[0]?.check ?? '') === check) {
      this.inbox.heard({ inbox: this.#lease.inbox ?? 0 })
      return
    }
    void this.#release()
    throw takenOver(this.sessionId)
  }

  #after(writing: Promise<void>): Promise<void> {
    return writing.then(() => this.flushed())
  }

  /** An answer that was given in the very moment of the rest comes when the session is free already. */
  #writeAsHolder(): Promise<void> | undefined {
    const ours = this.#isHeld ? this.held() : this.wake()
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
      ? this.store.append(this.#lease, records, summary, { release: true })
      : this.store.append(this.#lease, records, summary)
    const head = end?.seq ?? 0
    if (answer instanceof Promise) return answer.then((told) => this.#kept(head, settled, told))
    this.#kept(head, settled, answer)
    return undefined
  }

  #kept(head: number, settled: number[], told: Appended | void): void {
    this.#written = Math.max(this.#written, head)
    this.#isLeaving = false
    this.inbox.durable(settled)
    if (told?.released) this.#letGo()
    this.inbox.heard(told)
    this.#presence.written()
  }

  /** A process that has slept for long may still be the only one that wants the session. */
  #isLeaseOld(): boolean {
    return elapsedOn(this.#clock) - this.#renewedAt > leaseMs / 2
  }

  /** The session is known to be ours: a lease that may be old is renewed. Undefined while it is fresh. */
  held(): Promise<void> | undefined {
    if (this.#failure) return Promise.reject(this.#failure)
    if (this.#renewing) return this.#renewing
    if (!this.#isHeld || !this.#isLeaseOld()) return undefined
    const lease = this.#lease
    try {
      const renewed = this.store.renew(lease, leaseMs)
      if (renewed instanceof Promise) return (this.#renewing = this.#renewedLater(lease, renewed))
      this.#renewed(renewed)
    } catch (error) {
      this.#notRenewed(lease, error)
    }
    return this.#failure && Promise.reject(this.#failure)
  }

  async #renewedLater(lease: Lease, renewed: Promise<Lease>): Promise<void> {
    try {
      this.#renewed(await renewed)
    } catch (error) {
      this.#notRenewed(lease, error)
    } finally {
      this.#renewing = undefined
    }
    if (this.#failure) throw this.#failure
  }

  #hold(lease: Lease): void {
    this.#lease = lease
    this.#renewedAt = elapsedOn(this.#clock)
    if (!this.#isHeld) this.#presence.held()
    this.#isHeld = true
    this.inbox.hold()
    this.#heartbeat.add(this.#beats)
  }

  /** Another lease may have come in between, after a rest. */
  #renewed(lease: Lease): void {
    if (this.#isHeld && this.#lease.token === lease.token) this.#hold(lease)
  }

  #notRenewed({ token }: Lease, error: unknown): void {
    if (!this.#isHeld || this.#isLeaving || this.#lease.token !== token) return
    const isOver = elapsedOn(this.#clock) - this.#renewedAt >= leaseMs
    const isLost = error instanceof StoreError && error.code === 'lease_lost'
    // While the lease lasts, a store that is away for a moment costs nothing.
    if (isLost || isOver) this.#fail(error)
  }

  #release(): Promise<void> | undefined {
    if (!this.#isHeld) return beingReleased(this.store, this.sessionId)
    this.#letGo()
    return releaseLease(this.store, this.#lease, this.#clock, (told) => this.inbox.heard(told))
  }

  #letGo(): void {
    this.#isHeld = false
    this.#heartbeat.remove(this.#beats)
    this.inbox.letGo()
    this.#presence.released()
  }

  #fail(error: unknown): StoreError {
    if (this.#failure) return this.#failure
    this.#failure = unwritable(this.sessionId, error)
    this.#pending = []
    void this.#release()
    this.#onFailure(this.#failure)
    return this.#failure
  }
}
