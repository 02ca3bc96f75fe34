import type { Fit, Gap } from '../../../machines/agent/fit.js'
import { type Demands, planGap } from './plan-gap.js'
import type { Situation } from './situation.js'

/** A fit whose note depends on what it leaves out; null when there is no room for one. */
export function withNote(
  situation: Situation,
  { keepFirst }: Pick<Demands, 'keepFirst'>,
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
