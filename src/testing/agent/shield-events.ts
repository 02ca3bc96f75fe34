import type { AgentContext } from '../../../machines/agent/context.js'
import type { Screening, ShieldAction } from '../../../machines/agent/screening.js'
import { listUnclearedCalls, listUnclearedInput } from '../../../machines/agent/uncleared-input.js'
import { createDoneActorEvent } from '../space.js'
import { at, type Events } from './at.js'

/** What shields say of the messages and calls at hand. */
export function ofShields(context: AgentContext): Events {
  const messages = listUnclearedInput(context)
  const allowed = messages.map(({ content }, index) => ({
    ...screening('allow', typeof content === 'string' ? content : ''),
    index,
    part: null,
  }))
  const open = listUnclearedCalls(context)
  const unscreened = context.calls.filter((call) => call.unscreened)
  const results = (action: ShieldAction) =>
    unscreened.map(({ id }) => ({ ...screening(action, 'What it may say.'), callId: id }))
  return {
    ...(messages.length > 0 && { 'input allowed': at(createDoneActorEvent('inputShields', allowed)) }),
    ...callsAllowed(context),
    ...(open.length > 0 && {
      'calls refused': at(
        createDoneActorEvent(
          'callShields',
          open.map(({ id }) => ({ ...screening('block', 'Not that.'), callId: id })),
        ),
      ),
      'calls redacted': at(
        createDoneActorEvent(
          'callShields',
          open.map(({ id }) => ({ ...screening('redact', '{"n":0}'), callId: id })),
        ),
      ),
    }),
    ...(unscreened.length > 0 && {
      'results allowed': at(createDoneActorEvent('resultShields', results('allow'))),
      'results withheld': at(createDoneActorEvent('resultShields', results('block'))),
    }),
  }
}

export function callsAllowed(context: AgentContext): Events {
  const allowed = listUnclearedCalls(context).map((call) => ({
    ...screening('allow', call.arguments),
    callId: call.id,
  }))
  return { 'calls allowed': at(createDoneActorEvent('callShields', allowed)) }
}

export function screening(action: ShieldAction, content: string): Screening {
  const message = action === 'block' ? content : null
  return { action, message, content, findings: [{ shield: 'own', action, message, durationMs: 1 }] }
}
