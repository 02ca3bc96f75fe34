import { fromCallback, fromPromise } from 'xstate'
import type { AgentMachineEvent } from '../../../machines/agent/machine-events.js'
import { getAgent } from '../live/runtime.js'

/** Waits until an absolute time, or until it is stopped. */
export const backOff = fromPromise<void, { until: number }>(({ input, signal, self }) => {
  const { clock, time } = getAgent(self).runtime
  return new Promise((resolve) => {
    let timer: unknown
    const wait = (): void => {
      // A run that is restored may come after the time.
      const asked = Math.max(0, input.until - time.now())
      timer = clock.setTimeout(() => {
        const left = input.until - time.now()
        // Timers of the platform may fire early, and have a longest delay: what is left is waited for, too. A clock that stands still
        // while its timers fire would be waited for without end.
        if (left > 0 && (left < asked || left <= 1)) wait()
        else resolve()
      }, asked)
    }
    wait()
    signal.addEventListener('abort', () => {
      clock.clearTimeout(timer)
    })
  })
})

/** Sends DEADLINE once the absolute time has come; stopped, it never does. */
export const deadline = fromCallback<AgentMachineEvent, { at: number }>(({ input, sendBack, self }) => {
  const { clock, time } = getAgent(self).runtime
  let timer: unknown
  const wait = (): void => {
    const left = input.at - time.now()
    // Timers of the platform have a longest delay; a later deadline takes several.
    if (left <= 0) sendBack({ type: 'DEADLINE' })
    else timer = clock.setTimeout(wait, left)
  }
  wait()
  return () => {
    clock.clearTimeout(timer)
  }
})
