import type { AgentDefinition } from '../agent-definition.js'
import type { BranchStart, BranchTree } from '../branch-tree.js'
import type { FoldedSession } from '../fold-session.js'
import { hasTags, mergeTags, type SessionTags } from '../store/session-tags.js'
import { type SessionFacts, toDefinitionField, toTagsField } from './create-records.js'
import { listFeatures, type RecordContent } from './log-record.js'
type Snapshot = Extract<RecordContent, { type: 'snapshot' }>
type StartFields = Pick<Extract<RecordContent, { type: 'start' }>, 'definition' | 'tags' | 'branch'>

/** The facts about a session that is new to the store. */
export interface FirstFacts {
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
export class CurrentFacts {
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
