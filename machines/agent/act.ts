import { enqueueActions } from 'xstate'
import type { Announcement } from './announcements.js'
import type { AgentContext } from './context.js'
import type { AgentMachineEvent } from './events.js'

/**
 * A step of the machine's bookkeeping: from context and event to what changes. `tell` announces it to the world.
 * Pure and total: no clock, no randomness, never throws.
 */
export type Update<Params = undefined> = (
  context: AgentContext,
  event: AgentMachineEvent,
  tell: (announcement: Announcement) => void,
  params: Params,
) => Partial<AgentContext> | undefined

/** An update as an action of the chart. */
export function act<Params = undefined>(update: Update<Params>) {
  return enqueueActions<
    AgentContext,
    AgentMachineEvent,
    Params,
    AgentMachineEvent,
    never,
    never,
    never,
    never,
    Announcement
  >(({ context, event, enqueue }, params) => {
    const patch = update(context, event, (announcement) => enqueue.emit(announcement), params)
    if (patch !== undefined) enqueue.assign(patch)
  })
}
