import { findDueTime } from '../../../../machines/agent/due-times.js'
import type { AgentContext, SessionState, ControlEvent } from '../../../../machines/agent/context.js'
import { isWorkState } from '../../../../machines/agent/run-result.js'
import { createOpening, createSnapshot, toStartInput, type SessionFacts } from './create-records.js'
import { type Journal, type JournalEntry, toLinkField } from '../journal.js'
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
 * A snapshot needs this many characters since the last one, and a quarter of its size: reading folds a fifth at most.
 */
const minSnapshotChars = 64_000

interface SessionLogParts extends WriteAheadLogParts {
  folded: FoldedSession
  resumesAt: number
  /** The name of a session that is new to the store. */
  name: string | undefined
  /** For a sub-agent, the session of the run that calls it. */
  parent?: string | undefined
  /** The agent that starts runs in this session. */
  definition?: (() => AgentDefinition) | undefined
}

/** The write-ahead log of an agent's session, written by one run. */
export class SessionLog extends WriteAheadLog<ControlEvent> implements Journal {
  /** The time when the run starts or resumes in this process. */
  readonly resumesAt: number
  /** The identity of the session at the current end of its log, and the agent of its latest run. */
  facts: SessionFacts
  /** Tags that are not in the log yet. */
  #newTags: SessionTags = {}
  #branch: { start: BranchStart; add: (seq: number) => BranchTree } | undefined
  readonly #createDefinition: SessionLogParts['definition']
  /** The features that the log uses so far. */
  #features: ReadonlySet<string>
  /** The last record when the session was acquired. */
  readonly #foundHead: number
  /** Number of the start record if the run started in this process, or 0 if the run is older. */
  #runStartedAt = 0
  #snapshotSize: number
  #tailSize: number
  #initialState: SessionState | undefined
  /** The queued message that starts the run. */
  #queued: number | undefined
  isJustResumed = false
  /** Whether session lists show the run as running. */
  #isListedAsRunning = false
  #link: string | null

  constructor(parts: SessionLogParts) {
    const { folded, resumesAt } = parts
    super(parts, folded, agentInbox)
    this.resumesAt = resumesAt
    const { name = parts.name, parent = parts.parent, tags, runs, definition, branches } = folded
    this.facts = { name, tags, parent, runs, definition, branches }
    this.#createDefinition = parts.definition
    this.#features = folded.features
    this.#foundHead = folded.head
    this.#snapshotSize = folded.snapshotSize
    this.#tailSize = folded.tailSize
    this.#link = folded.link
  }

  /** Whether the run can be resumed from its log after a failed write, because its start is durable. */
  get isResumable(): boolean {
    return this.hasFailed && this.lastWritten >= this.#runStartedAt
  }

  /** The state of a session that is new to the store, written with the first entry. */
  addInitialState(state: SessionState): void {
    if (state.messages.length > 0 || state.usage.totalTokens > 0 || state.terms) this.#initialState = state
  }

  /** @throws {UsageError} `invalid_option` if the session would have too many tags */
  addTags(added: SessionTags): void {
    const tags = mergeTags(this.facts.tags, added, this.sessionId)
    if (hasTags(added)) this.#newTags = tags
    this.facts = { ...this.facts, tags }
  }

  /** The next run starts a branch. `add` returns the branches for the number of its start record. */
  setBranch(start: BranchStart, add: (seq: number) => BranchTree): void {
    this.#branch = { start, add }
  }

  /** The queued message that starts the next run. The start record contains its number. */
  setQueued(message: number): void {
    this.#queued = message
    this.inbox.beginWith(message)
  }

  setEventCounter(countEvents: () => number): void {
    this.countEvents = countEvents
  }

  append(entry: JournalEntry): void {
    if (entry.type === 'start' || entry.link !== undefined) this.#link = entry.link ?? null
    this.isJustResumed = entry.type === 'event' && entry.event.type === 'RESUMED'
    if (entry.type === 'event') {
      this.write(entry)
      if (entry.event.inbox !== undefined) this.inbox.markApplied(entry.event.inbox, entry.event.key)
      return
    }
    if (this.head === 0) this.write(createOpening(this.facts, this.#initialState))
    this.#runStartedAt = this.head + 1
    const definition = this.#createDefinition?.() ?? null
    const [tags, branch] = [this.#newTags, this.#branch]
    const branches = branch && { branches: branch.add(this.#runStartedAt) }
    this.facts = { ...this.facts, runs: this.facts.runs + 1, definition, ...branches }
    this.#newTags = {}
    this.#branch = undefined
    this.write({
      type: 'start',
      input: toStartInput(entry.input),
      ...(definition && { definition }),
      ...(hasTags(tags) && { tags }),
      ...(branch && { branch: branch.start }),
      ...(this.#queued !== undefined && { queued: this.#queued }),
      ...toLinkField(this.#link),
    })
    this.inbox.markSaid(this.#queued, listClientIds(entry.input.input))
  }

  write(content: RecordContent): void {
    if (this.hasFailed) return
    if (content.type === 'snapshot') {
      const { definition = null, branches } = content
      this.facts = { ...this.facts, definition, ...(branches && { branches }) }
    }
    // The record that opens the log contains the tags.
    if (content.type === 'opened') this.#newTags = {}
    const entry = this.#nameFeatures(content)
    const record = this.addRecord((seq) => draftRecord(seq, this.#getRecordTime(entry), entry))
    if (record) this.#tailSize += record.data.length
  }

  /** Lists the features that no earlier record lists, or all in a snapshot, because reading may start there. */
  #nameFeatures(entry: RecordContent): RecordContent {
    const used = listFeatures(entry)
    if (used.length === 0 && entry.type !== 'snapshot') return entry
    const news = used.filter((feature) => !this.#features.has(feature))
    if (news.length > 0) this.#features = new Set([...this.#features, ...news])
    if (news.length === 0 && (entry.type !== 'snapshot' || this.#features.size === 0)) return entry
    const needs = entry.type === 'snapshot' ? this.#features : new Set(news)
    return { ...entry, needs: [...needs].sort() }
  }

  /** On the run's clock if the entry belongs to a run. Never earlier than the previous record. */
  #getRecordTime(entry: RecordContent): number {
    if (entry.type === 'snapshot') return this.lastTime
    return entry.type === 'event'
      ? (entry.event.now ?? this.clock.now())
      : Math.max(this.lastTime, this.resumesAt)
  }

  /** Writes a snapshot if it saves enough reading. Session lists show an active run immediately. */
  onReached(run: FoldedRun): void {
    if (isWorkState(run.context.state)) this.markRunning(run.context)
    // The start record already contains the whole state.
    if (this.head === this.#runStartedAt) return
    if (this.#tailSize < Math.max(minSnapshotChars, this.#snapshotSize / 4)) return
    const size = this.#tailSize
    const { applied: inbox, queued, keys } = this.inbox
    this.write(createSnapshot(toMachineState(run), { ...this.facts, inbox, queued, keys, link: this.#link }))
    this.#snapshotSize = this.#tailSize - size
    this.#tailSize = 0
  }

  markRunning(context: AgentContext): void {
    if (this.#isListedAsRunning) return
    this.#isListedAsRunning = true
    this.setSummary(context)
  }

  /** Sets the session's list entry, from the next write on. `isFork`: the run was never resumed in this fork. */
  setSummary(context: AgentContext, isFork = false): void {
    const summary = createSummary(context, this.facts)
    this.summary = isFork ? { ...summary, unresumed: true } : summary
  }

  setFirstSummary(state: SessionState): void {
    this.summary = createFirstSummary(state, this.facts)
  }

  /** Writes all pending records, then releases the session. */
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
