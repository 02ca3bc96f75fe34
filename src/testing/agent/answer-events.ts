import type { AgentContext } from '../../../machines/agent/context.js'
import { listAnswerableCalls } from '../../../machines/agent/to-result.js'
import { stampEvent, type Events } from './stamp-event.js'

export function listAnswerEvents(context: AgentContext): Events {
  const openThatNeeds = (needs: string): string =>
    listAnswerableCalls(context).find((call) => call.needs === needs)?.callId ?? 'nobody'
  const callId = openThatNeeds('approval')
  const clientCallId = openThatNeeds('client')
  if (context.state === 'WAITING_FOR_TOOL') return listEarlyAnswers(callId, clientCallId, context.features)
  // As the log marks it.
  const unheard = { ...(hasReasonShields(context.features) && { withheld: true as const }) }
  return {
    approve: stampEvent({ type: 'APPROVE', callId }),
    'approve an edit': stampEvent({
      type: 'APPROVE',
      callId,
      arguments: '{"n":2}',
      // As the log marks it.
      ...(context.features.callShields && { withheld: true }),
    }),
    'approve what the client runs': stampEvent({ type: 'APPROVE', callId: clientCallId }),
    reject: stampEvent({ type: 'REJECT', callId, why: 'No.', ...unheard }),
    'reject what the client runs': stampEvent({ type: 'REJECT', callId: clientCallId, why: 'No.' }),
    'hand in output': stampEvent({ type: 'TOOL_OUTPUT', callId: clientCallId, content: 'Picked.' }),
    'hand in for an approval': stampEvent({ type: 'TOOL_OUTPUT', callId, content: 'Picked.' }),
    reply: stampEvent({ type: 'REPLY', messages: [{ content: 'And now?' }] }),
  }
}

/** The reason of a rejection is user input, and becomes the result of the call: both kinds of shields screen it. */
function hasReasonShields({ inputShields, resultShields }: AgentContext['features']): boolean {
  return inputShields || resultShields
}

/** Answers that arrive while other calls run. Without a pending call, they match none. */
function listEarlyAnswers(callId: string, clientCallId: string, features: AgentContext['features']): Events {
  return {
    'approve meanwhile': stampEvent({ type: 'APPROVE', callId }),
    'reject meanwhile': stampEvent({
      type: 'REJECT',
      callId,
      why: 'No.',
      ...(hasReasonShields(features) && { withheld: true }),
    }),
    'hand in output meanwhile': stampEvent({ type: 'TOOL_OUTPUT', callId: clientCallId, content: 'Picked.' }),
    ...(features.callShields && {
      'approve an edit meanwhile': stampEvent({
        type: 'APPROVE',
        callId,
        arguments: '{"n":2}',
        withheld: true,
      }),
    }),
  }
}
