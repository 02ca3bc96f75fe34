import type { Fit } from '../../../machines/agent/fit.js'
import type { Situation, Strategy } from './situation.js'

/**
 * The fit that a strategy comes to, held against the request as it is sent: messages that are joined do not have quite
 * the sum of their tokens. What is too much is taken off the window of the next attempt. Null: none is small enough.
 */
export function drawFit(
  strategy: Strategy,
  situation: Situation,
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
