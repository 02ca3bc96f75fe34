import type { Fit, Gap } from '../../../../machines/agent/fit.js'
import { listLeftOut } from '../gap.js'
import { formatGapMarker } from '../gap-marker.js'
import { type GapDemands, planGap } from '../plan-gap.js'
import type { FitSituation, FitStrategy } from '../fit-strategy.js'

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
