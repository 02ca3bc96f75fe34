import type { Usage } from './usage.js'

/** How to trim a transcript that exceeds the model's window. */
export type ContextStrategy = 'sliding_window' | 'compact' | 'summarize' | 'none'

/**
 * The range of messages that requests omit: from `head` up to `from`, except `keep`. All values are indices into the
 * transcript. The transcript itself stays complete, so a fit can be recomputed at any time.
 */
export interface Gap {
  /** Number of messages kept at the start. */
  head: number
  /** Index of the first message after the gap. */
  from: number
  /** Indices of user messages kept in the gap, ascending: the task of a turn that is longer than the window. */
  keep?: number[]
}

export interface Fit extends Gap {
  /** The text that replaces the gap (a marker or a summary), or null. */
  note: string | null
  /** The first `length` characters of the note summarize this gap, smaller than the fit's after a failed summary. */
  summary?: Gap & { length: number }
}

/** Output of the fitting actor. */
export interface CompactionOutput {
  /** The new fit. Null if everything fits. */
  fit: Fit | null
  /** The strategy that was used. A failed summary falls back to `compact`. */
  strategy: ContextStrategy
  /** Tokens of the request before and after trimming. */
  before: number
  after: number
  usage: Usage | null
  /** A sentence about a setting that could not be applied, or null. */
  warning: string | null
}

export function countDropped(gap: Gap | null): number {
  return gap === null ? 0 : gap.from - gap.head - (gap.keep?.length ?? 0)
}
