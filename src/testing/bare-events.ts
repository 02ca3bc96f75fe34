import type { AnyEventObject, AnyStateMachine } from 'xstate'
import { describeEventType } from '../core/chart/state-labels.js'
import { createDoneActorEvent, createErrorActorEvent } from './explore-options.js'
import { listTransitions } from '../core/chart/transitions.js'

/**
 * Every event that the machine declares, once and without a payload, under the name that people use. What comes by
 * itself (`after`, `always`, wildcards) is left out.
 */
export function createBareEvents(machine: AnyStateMachine): Record<string, AnyEventObject> {
  const types = new Set(listTransitions(machine).map(({ declared }) => declared.event))
  const events: Record<string, AnyEventObject> = {}
  for (const type of types) {
    if (type === '' || type.includes('*') || type.startsWith('xstate.after.')) continue
    events[describeEventType(type)] = createBareEvent(type)
  }
  return events
}

function createBareEvent(type: string): AnyEventObject {
  const [, ending, actor = ''] = /^xstate\.(done|error)\.actor\.(.+)$/.exec(type) ?? []
  if (ending === 'done') return createDoneActorEvent(actor)
  return ending === 'error' ? createErrorActorEvent(actor) : { type }
}
