import type { SnapshotFrom } from 'xstate'
import type { agentMachine } from '../../../machines/agent.machine.js'
import type { AgentInput } from '../../../machines/agent/context.js'
import type { ActorEvent, AgentMachineEvent } from '../../../machines/agent/machine-events.js'
import { StatewrightError, describeError } from '../base/errors.js'

/**
 * An entry of a run's journal. The first entry is the run's input, and the others are its events. Folding them with
 * `transition()` restores the run's state.
 */
export type JournalEntry = (
  | { type: 'start'; input: AgentInput }
  | { type: 'event'; event: AgentMachineEvent }
) & {
  /** The telemetry link of the run, for the process that continues the run. */
  link?: string
}

/**
 * The write-ahead log of one run.
 * @example
 * const entries: string[] = []
 * const journal: Journal = {
 *   append: (entry) => void entries.push(JSON.stringify(entry)),
 *   flush: () => undefined, // or a promise: nothing starts before it settles
 * }
 * agent.run('Go.', { journal })
 */
export interface Journal {
  /** Called before the entry is applied. Never throws. */
  append(entry: JournalEntry): void
  /**
   * Resolves when all appended entries are durable. Returns undefined if they already are. Effects start only after
   * that. A rejection ends the run in ERROR (`store_error`).
   */
  flush(): Promise<void> | undefined
  /**
   * Resolves when the session lease is confirmed. Returns undefined if it is known to be valid. Called before each tool
   * call. A rejection ends the run in ERROR (`store_error`).
   */
  checkHeld?(): Promise<void> | undefined
  /**
   * Whether an entry could not be made durable. If so, the run stops in this process and can be resumed from its last
   * durable entry.
   */
  readonly hasFailed?: boolean
  /** Sets a function that returns the number of the run's last event. */
  setEventCounter?(countEvents: () => number): void
  /** The time when a run from another process resumes. Defaults to the current time. */
  readonly resumesAt?: number | undefined
  /** Called with the state after the last entry. */
  onReached?(snapshot: SnapshotFrom<typeof agentMachine>): void
}

/**
 * Creates a journal that keeps the entries of one run in memory, for tests and for inspection after a run.
 * @example
 * const journal = memoryJournal()
 * await agent.run('What changed?', { journal }).result
 * console.log(journal.entries.length)
 */
export function memoryJournal(): Journal & { readonly entries: readonly JournalEntry[] } {
  const entries: JournalEntry[] = []
  return {
    entries,
    append: (entry) => {
      entries.push(entry)
    },
    flush: () => undefined,
  }
}

/** The event that ends a run whose log cannot be written. */
export function createStoreFailedEvent(error: unknown): Extract<ActorEvent, { type: 'STORE_FAILED' }> {
  const code = error instanceof StatewrightError ? error.code : 'store_error'
  return { type: 'STORE_FAILED', failure: { code, message: describeError(error) } }
}

/** The optional `link` field of a record, set if telemetry provides a link. */
export function toLinkField(link: string | null | undefined): { link?: string } {
  return typeof link === 'string' ? { link } : {}
}
