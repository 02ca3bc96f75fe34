import type { SnapshotFrom } from 'xstate'
import type { agentMachine } from '../../../machines/agent.machine.js'
import type { AgentInput } from '../../../machines/agent/context.js'
import type { ActorEvent, AgentMachineEvent } from '../../../machines/agent/machine-events.js'
import { StatewrightError, describeError } from '../base/errors.js'

/** What a run is made of: its input, then its events. Folding them with `transition()` gives its state again. */
export type JournalEntry = (
  | { type: 'start'; input: AgentInput }
  | { type: 'event'; event: AgentMachineEvent }
) & {
  /** Where the run begins to work and is measured: what its telemetry wants to find when another process goes on. */
  link?: string
}

/**
 * A write-ahead log of one run.
 *
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
   * Settles once everything appended so far is durable; undefined when it already is. No effect starts before it. A
   * rejection ends the run in ERROR (`store_error`).
   */
  flush(): Promise<void> | undefined
  /**
   * Settles once the run is known to be ours still; undefined while that is certain. Asked before each call of a tool: no
   * call starts before it. A rejection ends the run in ERROR (`store_error`).
   */
  checkHeld?(): Promise<void> | undefined
  /** Whether an entry could not be made durable: the run ends here, and goes on from what was kept. */
  readonly hasFailed?: boolean
  /** Given a way to ask for the number of the run's last event. */
  setEventCounter?(told: () => number): void
  /** The time at which a run goes on that another process has left. Default: by the clock. */
  readonly resumesAt?: number | undefined
  /** Told the state that the last entry has led to. */
  onReached?(snapshot: SnapshotFrom<typeof agentMachine>): void
}

/**
 * Keeps the entries of one run in memory: for tests, and to look at a run afterwards.
 *
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

/** What ends a run whose log can not be written. */
export function createStoreFailedEvent(error: unknown): Extract<ActorEvent, { type: 'STORE_FAILED' }> {
  const code = error instanceof StatewrightError ? error.code : 'store_error'
  return { type: 'STORE_FAILED', failure: { code, message: describeError(error) } }
}

/** What goes with a record that telemetry has given a link for. */
export function toLinkField(link: string | null | undefined): { link?: string } {
  return typeof link === 'string' ? { link } : {}
}
