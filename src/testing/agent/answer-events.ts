import type { AgentContext } from '../../../machines/agent/context.js'
import { listAnswerableCalls } from '../../../machines/agent/to-result.js'
import { at, type Events } from './at.js'

export function ofPeople(context: AgentContext): Events {
  const openThatNeeds = (needs: string): string =>
    listAnswerableCalls(context).find((call) => call.needs === needs)?.callId ?? 'nobody'
  const callId = openThatNeeds('approval')
  const clientCallId = openThatNeeds('client')
  if (context.state === 'WAITING_FOR_TOOL') return ofTheHasty(callId, clientCallId, context.features)
  // As the journal marks it.
  const unheard = { ...(looksAtReasons(context.features) && { withheld: true as const }) }
  return {
    approve: at({ type: 'APPROVE', callId }),
    'approve an edit': at({
      type: 'APPROVE',
      callId,
      arguments: '{"n":2}',
      // As the journal marks it.
      ...(context.features.callShields && { withheld: true }),
    }),
    'approve what the client runs': at({ type: 'APPROVE', callId: clientCallId }),
    reject: at({ type: 'REJECT', callId, why: 'No.', ...unheard }),
    'reject what the client runs': at({ type: 'REJECT', callId: clientCallId, why: 'No.' }),
    'hand in output': at({ type: 'TOOL_OUTPUT', callId: clientCallId, content: 'Picked.' }),
    'hand in for an approval': at({ type: 'TOOL_OUTPUT', callId, content: 'Picked.' }),
    reply: at({ type: 'REPLY', messages: [{ content: 'And now?' }] }),
  }
}

/** Why a person refuses a call is what a person says, and what the call returns. */
function looksAtReasons({ inputShields, resultShields }: AgentContext['features']): boolean {
  return inputShields || resultShields
}

/** Answers that come while other calls are carried out. Where nobody is asked, they are nobody's. */
function ofTheHasty(callId: string, clientCallId: string, features: AgentContext['features']): Events {
  return {
    'approve meanwhile': at({ type: 'APPROVE', callId }),
    'reject meanwhile': at({
      type: 'REJECT',
      callId,
      why: 'No.',
      ...(looksAtReasons(features) && { withheld: true }),
    }),
    'hand in output meanwhile': at({ type: 'TOOL_OUTPUT', callId: clientCallId, content: 'Picked.' }),
    ...(features.callShields && {
      'approve an edit meanwhile': at({ type: 'APPROVE', callId, arguments: '{"n":2}', withheld: true }),
    }),
  }
}
