import type { Fit, Gap } from '../../../machines/agent/fit.js'
import { type FitSituation, formatGapMarker, type GapDemands, listLeftOut, planGap } from './gap.js'

export type FitStrategy = (situation: FitSituation) => Fit | null

/** Merged messages differ from the sum of their tokens, so each attempt has a window smaller by the excess. */
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

/** Omits nothing. A request that does not fit is not sent. */
export const fitNothing = (): null => null

export const fitSlidingWindow: FitStrategy = (situation) => {
  const gap = planGap(situation, { keepFirst: false, note: 0 })
  return gap && { ...gap, note: null }
}

/** If the window is too small, drops the first message, then the marker. */
export const fitCompact: FitStrategy = (situation) => {
  const marked = (keepFirst: boolean) =>
    fitWithNote(situation, { keepFirst }, (gap) => formatGapMarker(listLeftOut(situation.messages, gap)))
  return marked(true) ?? marked(false) ?? fitSlidingWindow(situation)
}

/** Creates a fit whose note depends on the gap. Returns null if the note does not fit. */
export function fitWithNote(
  situation: FitSituation,
  { keepFirst }: Pick<GapDemands, 'keepFirst'>,
  noteOn: (gap: Gap) => string,
): Fit | null {
  // Each attempt reserves the size of the previous note.
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

/** A note grows by a digit or a name when more messages are omitted, so two attempts usually suffice. */
const maxAttempts = 6
