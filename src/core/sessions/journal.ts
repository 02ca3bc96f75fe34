import type { SnapshotFrom } from 'xstate'
import type { agentMachine } from '../../../machines/agent.machine.js'
import type { AgentInput, ActorEvent, AgentMachineEvent } from '../../../machines/agent/context.js'
import { StatewrightError, describeError } from '../base/errors.js'

/** The first entry is the run's input, the others its events. `transition()` folds them to its state. */
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
   * Resolves when all entries are durable; undefined if they are. Only then do effects start. A rejection ends the
   * run (`store_error`).
   */
  flush(): Promise<void> | undefined
  /** Confirms the lease before a tool call, unless it is fresh. A rejection ends the run (`store_error`). */
  checkHeld?(): Promise<void> | undefined
  /** Whether an entry is not durable. The run then stops here and can be resumed from the last durable one. */
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

export function createStoreFailedEvent(error: unknown): Extract<ActorEvent, { type: 'STORE_FAILED' }> {
  const code = error instanceof StatewrightError ? error.code : 'store_error'
  return { type: 'STORE_FAILED', failure: { code, message: describeError(error) } }
}

export function toLinkField(link: string | null | undefined): { link?: string } {
  return typeof link === 'string' ? { link } : {}
}
