import type { AgentInput } from '../../machines/agent/context.js'
import type { AgentMachineEvent } from '../../machines/agent/events.js'

/** What a run is made of: its input, then its events. Folding them with `transition()` gives its state again. */
export type JournalEntry = { type: 'start'; input: AgentInput } | { type: 'event'; event: AgentMachineEvent }

/** A write-ahead log of one run. */
export interface Journal {
  /** Called before the entry is applied. Never throws. */
  append(entry: JournalEntry): void
  /** Settles once everything appended so far is durable; undefined when it already is. No effect starts before it. */
  flushed(): Promise<void> | undefined
}

/** Keeps the entries of one run in memory: for tests, and to look at a run afterwards. */
export function memoryJournal(): Journal & { readonly entries: readonly JournalEntry[] } {
  const entries: JournalEntry[] = []
  return {
    entries,
    append: (entry) => {
      entries.push(entry)
    },
    flushed: () => undefined,
  }
}
