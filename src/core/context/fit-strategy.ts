import type { Fit } from '../../../machines/agent/fit.js'
import type { Message } from '../../../machines/agent/messages.js'

/** A request that has outgrown the window, as a strategy sees it. */
export interface FitSituation {
  readonly messages: readonly Message[]
  /** Tokens of each message. */
  readonly sizes: readonly number[]
  /** Tokens of what is no message of the transcript: instructions, tools, nudges. */
  readonly fixed: number
  /** Tokens that a request may have. */
  readonly window: number
  /** The fit that the request has outgrown. What it left out never comes back. */
  readonly previous: Fit | null
  /** Tokens of a note, as a message. */
  readonly noteSize: (note: string) => number
}

/** How a transcript is shortened: a fit that makes the request as long as the window at most, or null: none does. */
export type FitStrategy = (situation: FitSituation) => Fit | null

/**
 * The fit of a strategy, checked against the real request: merged messages do not have exactly the sum of their tokens.
 * The next attempt gets a window that is smaller by the excess. Null: no fit is small enough.
 */
export function drawFit(
  strategy: FitStrategy,
  situation: FitSituation,
  sizeOf: (fit: Fit | null) => number,
): Fit | null {
  let { window } = situation
  for (;;) {
    const fit = strategy({ ...situation, window })
    if (fit === null) return null
    const excess = sizeOf(fit) - situation.window
    if (excess <= 0) return fit
    window -= Math.ceil(excess)
  }
}
