import type { PendingCall } from '../../machines/agent/run-result.js'
import type { Json } from '../../machines/agent/json.js'
import type { Conversation } from '../web/chats.js'
import { callNamesOf } from './messages.js'
import type { AGUIInterrupt } from './protocol.js'

/**
 * The id by which a pending call is answered: of the call as the page names it, and of what it would do. Nobody can
 * answer with it what was asked before or after.
 */
export function interruptId(toolCallId: string, { fingerprint }: Pick<PendingCall, 'fingerprint'>): string {
  return `${toolCallId}~${fingerprint}`
}

/** The id by which a session that rests is let go on: of how far it has come. */
export function pauseId(messages: number): string {
  return `paused~${messages}`
}

export function approvalInterrupt(
  id: string,
  call: PendingCall,
  toolCallId: string,
  subagentRunId: string | undefined,
): AGUIInterrupt {
  const { name, path = [], interrupted } = call
  const who = [...path, name].join(' › ')
  return {
    id,
    reason: 'tool_call',
    message: interrupted
      ? `${who} was running when its process died, and may have had its effect already. Shall it run again?`
      : `Shall ${who} run?`,
    toolCallId,
    ...(subagentRunId !== undefined && { subagentRunId }),
    responseSchema: approvalAnswer,
    metadata: {
      statewright: { name, arguments: call.arguments, ...(path.length > 0 && { path: [...path] }) },
    },
  }
}

const approvalAnswer: Record<string, Json> = {
  type: 'object',
  properties: {
    approved: { type: 'boolean' },
    editedArgs: { type: 'object', description: 'Replaces the arguments of the call.' },
    reason: { type: 'string', description: 'Why it was refused; the model reads it.' },
  },
  required: ['approved'],
}

export function pauseInterrupt(id: string, reason: string, message: string | undefined): AGUIInterrupt {
  return {
    id,
    reason: 'paused',
    message: message ?? 'The run is paused. Shall it go on?',
    responseSchema: {
      type: 'object',
      properties: { steer: { type: 'string', description: 'What the model is told before it goes on.' } },
    },
    metadata: { statewright: { reason } },
  }
}

/** What a session waits for, as its log has it. */
export function interruptsOf({ messages, pending, state }: Conversation): AGUIInterrupt[] {
  if (state === 'PAUSED') return [pauseInterrupt(pauseId(messages.length), 'paused', undefined)]
  const names = callNamesOf(messages)
  return pending
    .filter(({ needs }) => needs === 'approval')
    .map((call) => {
      const name = names.asking(call.callId)
      return approvalInterrupt(interruptId(name, call), call, name, undefined)
    })
}
