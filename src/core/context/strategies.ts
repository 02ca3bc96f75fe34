import type { Fit, Gap } from '../../../machines/agent/fit.js'
import { type FitSituation, formatGapMarker, type GapDemands, listLeftOut, planGap } from './gap.js'

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

/** Leaves nothing out: a request that does not fit is not sent. */
export const fitNothing = (): null => null

/** The newest messages that fit; the model is not told what went before. */
export const fitSlidingWindow: FitStrategy = (situation) => {
  const gap = planGap(situation, { keepFirst: false, note: 0 })
  return gap && { ...gap, note: null }
}

/**
 * The first user message and the newest ones, with a marker in place of what was dropped. In a window that is too small
 * for that the first message goes, then the marker.
 */
export const fitCompact: FitStrategy = (situation) => {
  const marked = (keepFirst: boolean) =>
    fitWithNote(situation, { keepFirst }, (gap) => formatGapMarker(listLeftOut(situation.messages, gap)))
  return marked(true) ?? marked(false) ?? fitSlidingWindow(situation)
}

/** A fit whose note depends on what it leaves out; null when there is no room for one. */
export function fitWithNote(
  situation: FitSituation,
  { keepFirst }: Pick<GapDemands, 'keepFirst'>,
  noteOn: (gap: Gap) => string,
): Fit | null {
  // Each attempt reserves what the note before turned out to need.
  let reserved = 1
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const gap = planGap(situation, { keepFirst, note: reserved })
    if (gap === null) return null
    const note = noteOn(gap)
    const size = situation.noteSize(note)
    if (size <= reserved) return { ...gap, note }
    reserved = size
  }
  return null
}

/** Notes grow by a digit or a name when more is left out: two attempts are the rule. */
const maxAttempts = 6
