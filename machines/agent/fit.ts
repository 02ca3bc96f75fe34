import type { Usage } from './usage.js'

/** How a transcript that outgrows the model's window is shortened for it. */
export type ContextStrategy = 'sliding_window' | 'compact' | 'summarize' | 'none'

/**
 * What requests leave out of the transcript: the messages from `head` up to `from`, but for those in `kept`. Indices
 * into the transcript, which itself keeps everything, so a fit can be drawn anew at any time.
 */
export interface Gap {
  /** How many messages are kept from the beginning. */
  head: number
  /** The index of the first message after the gap. */
  from: number
  /** User messages in between that stay, ascending: what a turn that outgrows the window is about. Absent: none. */
  keep?: number[]
}

export interface Fit extends Gap {
  /** The text that the model reads in place of the gap: a marker or a summary. Null: none. */
  note: string | null
  /**
   * The first `length` characters of the note are the model's summary of what this gap left out: it can be smaller than
   * the fit's own after a summary that failed. Absent: nothing was summed up.
   */
  summary?: Gap & { length: number }
}

/** What the fitting actor resolves with. */
export interface CompactionOutput {
  /** Null: everything fits. */
  fit: Fit | null
  /** How the fit was made: a summary that failed falls back to `compact`. */
  strategy: ContextStrategy
  /** Tokens of the request as it was, and as it is now. */
  before: number
  after: number
  /** What a summary cost. */
  usage: Usage | null
  /** What did not work as configured, in one sentence. */
  warning: string | null
}

/** How many messages a gap leaves out. */
export function countDropped(gap: Gap | null): number {
  return gap === null ? 0 : gap.from - gap.head - (gap.keep?.length ?? 0)
}
