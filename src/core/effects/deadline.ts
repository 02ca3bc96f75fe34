import { fromCallback } from 'xstate'
import type { AgentMachineEvent } from '../../../machines/agent/events.js'
import { agentOf } from '../live/live.js'

/** Sends DEADLINE once the absolute time has come; stopped, it never does. */
export const deadline = fromCallback<AgentMachineEvent, { at: number }>(({ input, sendBack, self }) => {
  const { clock } = agentOf(self).live
  let timer: unknown
  const wait = (): void => {
    const left = input.at - clock.now()
    // Timers of the platform have a longest delay; a later deadline takes several.
    if (left <= 0) sendBack({ type: 'DEADLINE' })
    else timer = clock.setTimeout(wait, left)
  }
  wait()
  return () => {
    clock.clearTimeout(timer)
  }
})
