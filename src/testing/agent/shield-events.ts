import type { AgentContext } from '../../../machines/agent/context.js'
import type { Screening, ShieldAction } from '../../../machines/agent/screening.js'
import { listUnclearedCalls, listUnclearedInput } from '../../../machines/agent/uncleared-input.js'
import { createDoneActorEvent } from '../explore-options.js'
import { type Events, stampEvent } from './stamp-event.js'

/** The verdicts of shields on the current messages and calls. */
export function listShieldEvents(context: AgentContext): Events {
  const messages = listUnclearedInput(context)
  const allowed = messages.map(({ content }, index) => ({
    ...createScreening('allow', typeof content === 'string' ? content : ''),
    index,
    part: null,
  }))
  const open = listUnclearedCalls(context)
  const unscreened = context.calls.filter((call) => call.unscreened)
  const results = (action: ShieldAction) =>
    unscreened.map(({ id }) => ({ ...createScreening(action, 'What it may say.'), callId: id }))
  return {
    ...(messages.length > 0 && {
      'input allowed': stampEvent(createDoneActorEvent('inputShields', allowed)),
    }),
    ...createCallsAllowed(context),
    ...(open.length > 0 && {
      'calls refused': stampEvent(
        createDoneActorEvent(
          'callShields',
          open.map(({ id }) => ({ ...createScreening('block', 'Not that.'), callId: id })),
        ),
      ),
      'calls redacted': stampEvent(
        createDoneActorEvent(
          'callShields',
          open.map(({ id }) => ({ ...createScreening('redact', '{"n":0}'), callId: id })),
        ),
      ),
    }),
    ...(unscreened.length > 0 && {
      'results allowed': stampEvent(createDoneActorEvent('resultShields', results('allow'))),
      'results withheld': stampEvent(createDoneActorEvent('resultShields', results('block'))),
    }),
  }
}

/** The verdict that every current call may run. */
export function createCallsAllowed(context: AgentContext): Events {
  const allowed = listUnclearedCalls(context).map((call) => ({
    ...createScreening('allow', call.arguments),
    callId: call.id,
  }))
  return { 'calls allowed': stampEvent(createDoneActorEvent('callShields', allowed)) }
}

/** The verdict of one shield. */
export function createScreening(action: ShieldAction, content: string): Screening {
  const message = action === 'block' ? content : null
  return { action, message, content, findings: [{ shield: 'own', action, message, durationMs: 1 }] }
}
