import { fromPromise } from 'xstate'
import { agentOf } from '../live/live.js'

/** Waits until an absolute time, or until it is stopped. */
export const backOff = fromPromise<void, { until: number }>(({ input, signal, self }) => {
  const { clock } = agentOf(self).live
  return new Promise((resolve) => {
    const timer = clock.setTimeout(resolve, Math.max(0, input.until - clock.now()))
    signal.addEventListener('abort', () => {
      clock.clearTimeout(timer)
    })
  })
})
