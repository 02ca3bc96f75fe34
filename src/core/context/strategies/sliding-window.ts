import { planGap } from '../plan-gap.js'
import type { Strategy } from '../situation.js'

/** The newest messages that fit; the model is not told what went before. */
export const slidingWindow: Strategy = (situation) => {
  const gap = planGap(situation, { keepFirst: false, note: 0 })
  return gap && { ...gap, note: null }
}
