import type { EmittedEvent } from './announcements.js'
import type { AgentContext } from './context.js'
import { listCallQuestions } from './to-result.js'

/** The open requests to people: for the run's own calls, and for those of its sub-agents. A client knows its calls. */
export function listRequests(context: AgentContext): EmittedEvent[] {
  return listCallQuestions(context).flatMap(({ needs, ...asked }): EmittedEvent[] => {
    if (needs === 'client') return []
    const type = needs === 'approval' ? 'approval_requested' : 'elicitation_requested'
    return [{ ...asked, type } as EmittedEvent]
  })
}

/** Whether an event asks people something. */
export function isRequest<Event extends { type: string }>(
  event: Event,
): event is Extract<Event, { type: 'approval_requested' | 'elicitation_requested' }> {
  return event.type.endsWith('_requested')
}
