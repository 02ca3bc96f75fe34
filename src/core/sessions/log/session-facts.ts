import type { AgentDefinition } from '../agent-definition.js'
import type { FoldedSession } from '../fold-session.js'
import { hasTags, mergeTags, type SessionTags } from '../store/session-tags.js'
import { type SessionFacts, toDefinitionField, toTagsField } from './create-records.js'
import type { RecordContent } from './record-content.js'

type StartFields = Pick<Extract<RecordContent, { type: 'start' }>, 'definition' | 'tags'>

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
  readonly #createDefinition: FirstFacts['definition']

  constructor({ name, tags, parent, runs, definition }: FoldedSession, first: FirstFacts) {
    this.#facts = { name: name ?? first.name, tags, parent: parent ?? first.parent, runs, definition }
    this.#createDefinition = first.definition
  }

  get current(): SessionFacts {
    return this.#facts
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

  /** A run begins: what its record tells of it. */
  beginRun(): StartFields {
    const definition = this.#createDefinition?.() ?? null
    const tags = this.#newTags
    this.#facts = { ...this.#facts, runs: this.#facts.runs + 1, definition }
    this.#newTags = {}
    return { ...toDefinitionField(definition), ...toTagsField(tags) }
  }

  setDefinition(definition: AgentDefinition | null): void {
    this.#facts = { ...this.#facts, definition }
  }
}
