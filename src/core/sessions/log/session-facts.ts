import type { AgentDefinition } from '../agent-definition.js'
import type { BranchStart, BranchTree } from '../branch-tree.js'
import type { FoldedSession } from '../fold-session.js'
import { hasTags, mergeTags, type SessionTags } from '../store/session-tags.js'
import { type SessionFacts, toDefinitionField, toTagsField } from './create-records.js'
import { listFeatures, type RecordContent } from './log-record.js'
type Snapshot = Extract<RecordContent, { type: 'snapshot' }>
type StartFields = Pick<Extract<RecordContent, { type: 'start' }>, 'definition' | 'tags' | 'branch'>

/** What a log brings to a session that is new to the store. */
export interface FirstFacts {
  name: string | undefined
  /** The session of the run that calls the sub-agent whose session this is. */
  parent?: string | undefined
  /** The agent that begins what runs here. */
  definition?: (() => AgentDefinition) | undefined
}

/** What one session is known by, as its log stands: its name, tags and parent, and the agent of its latest run. */
export class CurrentFacts {
  #facts: SessionFacts
  /** Tags that the log does not have yet. */
  #newTags: SessionTags = {}
  #branch: { start: BranchStart; add: (seq: number) => BranchTree } | undefined
  readonly #createDefinition: FirstFacts['definition']
  /** What the log uses so far. */
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

  /** @throws {UsageError} `invalid_option` for too many together */
  addTags(given: SessionTags, sessionId: string): void {
    const tags = mergeTags(this.#facts.tags, given, sessionId)
    if (hasTags(given)) this.#newTags = tags
    this.#facts = { ...this.#facts, tags }
  }

  /** The tags are in the record that opens the log. */
  markOpened(): void {
    this.#newTags = {}
  }

  /** The run that begins next begins a branch; `add`: what that makes of the branches, by the number of its record. */
  setBranch(start: BranchStart, add: (seq: number) => BranchTree): void {
    this.#branch = { start, add }
  }

  /** Adds the features to a record that no earlier record names. A snapshot names all, because reading may start there. */
  nameFeatures(entry: RecordContent): RecordContent {
    const used = listFeatures(entry)
    if (used.length === 0 && entry.type !== 'snapshot') return entry
    const news = used.filter((feature) => !this.#features.has(feature))
    if (news.length > 0) this.#features = new Set([...this.#features, ...news])
    if (news.length === 0 && (entry.type !== 'snapshot' || this.#features.size === 0)) return entry
    const needs = entry.type === 'snapshot' ? this.#features : new Set(news)
    return { ...entry, needs: [...needs].sort() }
  }

  /** A run begins: what its record, of this number, tells of it. */
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

  /** A snapshot says what it is known by from here on. */
  repeat({ definition, branches }: Snapshot): void {
    this.#facts = { ...this.#facts, definition: definition ?? null, ...(branches && { branches }) }
  }
}

/** Is told what happens to a session's log while this process holds the session. */
export interface LogListener {
  /** The session is ours. */
  onHeld(): void
  /** More of it is durable. */
  onWritten(): void
  /** The session is released. */
  onReleased(): void
}

export const noLogListener: LogListener = {
  onHeld: () => undefined,
  onWritten: () => undefined,
  onReleased: () => undefined,
}
