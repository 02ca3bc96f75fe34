import { findDueTime } from '../../../../machines/agent/expiry.js'
import type { AgentContext, SessionState } from '../../../../machines/agent/context.js'
import type { ControlEvent } from '../../../../machines/agent/machine-events.js'
import { isWorkState } from '../../../../machines/agent/run-result.js'
import {
  createOpening,
  createSnapshot,
  toStartInput,
  type SessionFacts,
  toDefinitionField,
  toTagsField,
} from './create-records.js'
import { type Journal, type JournalEntry, toLinkField } from '../journal.js'
import { InboxReader } from '../inbox/inbox-reader.js'
import { agentInbox } from '../inbox/session-message.js'
import { listClientIds } from '../inbox/queued-message.js'
import { draftRecord, type RecordContent, listFeatures } from './log-record.js'
import { type FoldedRun, toMachineState, type FoldedSession } from '../fold-session.js'
import { createFirstSummary, createSummary } from '../session-summary.js'
import { WriteAheadLog, type WriteAheadLogParts } from './write-ahead-log.js'
import type { AgentDefinition } from '../agent-definition.js'
import type { BranchStart, BranchTree } from '../branch-tree.js'
import { hasTags, mergeTags, type SessionTags } from '../store/session-tags.js'

/**
 * A snapshot is written once the records since the last snapshot reach this many characters and a quarter of that
 * snapshot's size. Reading then folds at most a fifth of a log, and the cost of snapshots stays proportional to new
 * records.
 */
const minSnapshotChars = 64_000

interface SessionLogParts extends FirstFacts, WriteAheadLogParts {
  folded: FoldedSession
  resumesAt: number
}

/** The write-ahead log of an agent's session, written by one run. */
export class SessionLog extends WriteAheadLog<ControlEvent> implements Journal {
  readonly inbox: InboxReader<ControlEvent>
  /** The time when the run starts or resumes in this process. */
  readonly resumesAt: number
  /** The identity of the session. */
  readonly facts: CurrentFacts
  /** The last record when the session was acquired. */
  readonly #foundHead: number
  /** Number of the start record if the run started in this process, or 0 if the run is older. */
  #runStartedAt = 0
  #snapshotSize: number
  #tailSize: number
  #initialState: SessionState | undefined
  /** The queued message that starts the run. */
  #queued: number | undefined
  #isJustResumed = false
  /** Whether session lists show the run as running. */
  #isListedAsRunning = false
  #getEventNumber = (): number | undefined => undefined
  #link: string | null

  constructor(parts: SessionLogParts) {
    const { store, lease, folded, clock, resumesAt } = parts
    super(parts, folded)
    this.resumesAt = resumesAt
    this.facts = new CurrentFacts(folded, parts)
    this.#foundHead = folded.head
    this.#snapshotSize = folded.snapshotSize
    this.#tailSize = folded.tailSize
    this.inbox = new InboxReader(store, lease.sessionId, {
      clock,
      format: agentInbox,
      applied: folded.inbox,
      queued: folded.queued,
      keys: folded.keys,
      found: lease.inbox,
      confirmHeld: () => this.confirmHeld(),
    })
    this.inbox.startPolling()
    this.#link = folded.link
  }

  /** Whether the run can be resumed from its log after a failed write, because its start is durable. */
  get isResumable(): boolean {
    return this.hasFailed && this.lastWritten >= this.#runStartedAt
  }

  /** Whether the run has not written a record since it was resumed in this process. */
  get isJustResumed(): boolean {
    return this.#isJustResumed
  }

  /** Adds the initial state of a session that is new to the store. The state is written with the first entry. */
  addInitialState(state: SessionState): void {
    if (state.messages.length > 0 || state.usage.totalTokens > 0 || state.terms) this.#initialState = state
  }

  /** Sets the queued message that starts the next run. The number of this message is stored in the start record. */
  setQueued(message: number): void {
    this.#queued = message
    this.inbox.beginWith(message)
  }

  setEventCounter(countEvents: () => number): void {
    this.#getEventNumber = countEvents
  }

  protected override getEventNumber(): number | undefined {
    return this.#getEventNumber()
  }

  append(entry: JournalEntry): void {
    if (entry.type === 'start' || entry.link !== undefined) this.#link = entry.link ?? null
    this.#isJustResumed = entry.type === 'event' && entry.event.type === 'RESUMED'
    if (entry.type === 'event') {
      this.write(entry)
      if (entry.event.inbox !== undefined) this.inbox.markApplied(entry.event.inbox, entry.event.key)
      return
    }
    if (this.head === 0) this.write(createOpening(this.facts.current, this.#initialState))
    this.#runStartedAt = this.head + 1
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
    if (this.hasFailed) return
    if (content.type === 'snapshot') this.facts.repeat(content)
    if (content.type === 'opened') this.facts.markOpened()
    const entry = this.facts.nameFeatures(content)
    const record = this.addRecord((seq) => draftRecord(seq, this.#getRecordTime(entry), entry))
    if (record) this.#tailSize += record.data.length
  }

  /**
   * The time of a record. Uses the run's clock if the entry belongs to a run. Never earlier than the previous record.
   */
  #getRecordTime(entry: RecordContent): number {
    if (entry.type === 'snapshot') return this.lastTime
    if (entry.type === 'start' || entry.type === 'opened') return Math.max(this.lastTime, this.resumesAt)
    return (entry.type === 'event' ? entry.event.now : undefined) ?? this.clock.now()
  }

  /** Writes a snapshot if it saves enough reading. While a run is active, session lists are updated immediately. */
  onReached(run: FoldedRun): void {
    if (isWorkState(run.context.state)) this.markRunning(run.context)
    // The start record already contains the whole state.
    if (this.head === this.#runStartedAt) return
    if (this.#tailSize < Math.max(minSnapshotChars, this.#snapshotSize / 4)) return
    const size = this.#tailSize
    this.write(createSnapshot(toMachineState(run), this.facts.current, this.inbox, this.#link))
    this.#snapshotSize = this.#tailSize - size
    this.#tailSize = 0
  }

  /** Marks the run as running in session lists until it settles. */
  markRunning(context: AgentContext): void {
    if (this.#isListedAsRunning) return
    this.#isListedAsRunning = true
    this.setSummary(context)
  }

  /** Sets the session's list entry, from the next write on. */
  setSummary(context: AgentContext): void {
    this.setListEntry(createSummary(context, this.facts.current))
  }

  /** Sets the list entry of a fork that was never resumed. */
  setForkSummary(context: AgentContext): void {
    this.setListEntry({ ...createSummary(context, this.facts.current), unresumed: true })
  }

  /** Sets the list entry of a session without runs. */
  setFirstSummary(state: SessionState): void {
    this.setListEntry(createFirstSummary(state, this.facts.current))
  }

  /** Writes all pending records, then releases the session for the process that resumes it. */
  rest(context: AgentContext): Promise<void> | undefined {
    if (this.failure) return Promise.reject(this.failure)
    if (this.isResting && !this.hasPending) return undefined
    // A run that still sleeps is already listed. Writing again would set the time of its last record to now and thus
    // restart its sleep each time.
    const isNews = this.head > this.#foundHead || this.#isListedAsRunning
    if (findDueTime(context) === null || isNews) this.setSummary(context)
    this.#isListedAsRunning = false
    return this.writeRest()
  }
}

type Snapshot = Extract<RecordContent, { type: 'snapshot' }>
type StartFields = Pick<Extract<RecordContent, { type: 'start' }>, 'definition' | 'tags' | 'branch'>

/** The facts about a session that is new to the store. */
interface FirstFacts {
  name: string | undefined
  /** For a sub-agent, the session of the run that calls it. */
  parent?: string | undefined
  /** The agent that starts runs in this session. */
  definition?: (() => AgentDefinition) | undefined
}

/**
 * The identity of one session at the current end of its log: its name, tags and parent, and the agent of its latest
 * run.
 */
class CurrentFacts {
  #facts: SessionFacts
  /** Tags that are not in the log yet. */
  #newTags: SessionTags = {}
  #branch: { start: BranchStart; add: (seq: number) => BranchTree } | undefined
  readonly #createDefinition: FirstFacts['definition']
  /** The features that the log uses so far. */
  #features: ReadonlySet<string>

  constructor(
    { name, tags, parent, runs, definition, branches, features }: FoldedSession,
    first: FirstFacts,
  ) {
    this.#features = features
    this.#facts = {
      name: name ?? first.name,
      tags,
      parent: parent ?? first.parent,
      runs,
      definition,
      branches,
    }
    this.#createDefinition = first.definition
  }

  get current(): SessionFacts {
    return this.#facts
  }

  get tags(): SessionTags {
    return this.#facts.tags
  }

  /** @throws {UsageError} `invalid_option` if the session would have too many tags */
  addTags(added: SessionTags, sessionId: string): void {
    const tags = mergeTags(this.#facts.tags, added, sessionId)
    if (hasTags(added)) this.#newTags = tags
    this.#facts = { ...this.#facts, tags }
  }

  /** Called when the record that opens the log has written the tags. */
  markOpened(): void {
    this.#newTags = {}
  }

  /** Makes the next run start a branch. `add` returns the new branches for the number of the run's start record. */
  setBranch(start: BranchStart, add: (seq: number) => BranchTree): void {
    this.#branch = { start, add }
  }

  /**
   * Adds the features that no earlier record lists to this record. A snapshot lists all features, because reading may
   * start there.
   */
  nameFeatures(entry: RecordContent): RecordContent {
    const used = listFeatures(entry)
    if (used.length === 0 && entry.type !== 'snapshot') return entry
    const news = used.filter((feature) => !this.#features.has(feature))
    if (news.length > 0) this.#features = new Set([...this.#features, ...news])
    if (news.length === 0 && (entry.type !== 'snapshot' || this.#features.size === 0)) return entry
    const needs = entry.type === 'snapshot' ? this.#features : new Set(news)
    return { ...entry, needs: [...needs].sort() }
  }

  /** The fields that these facts add to the start record of a run. `seq` is the number of that record. */
  beginRun(seq: number): StartFields {
    const definition = this.#createDefinition?.() ?? null
    const tags = this.#newTags
    const branch = this.#branch
    this.#facts = {
      ...this.#facts,
      runs: this.#facts.runs + 1,
      definition,
      ...(branch && { branches: branch.add(seq) }),
    }
    this.#newTags = {}
    this.#branch = undefined
    return {
      ...toDefinitionField(definition),
      ...toTagsField(tags),
      ...(branch && { branch: branch.start }),
    }
  }

  /** Restores the facts that a snapshot record contains. */
  repeat({ definition, branches }: Snapshot): void {
    this.#facts = { ...this.#facts, definition: definition ?? null, ...(branches && { branches }) }
  }
}
