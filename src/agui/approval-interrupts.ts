import { formatWakeTime } from '../core/base/clock.js'
import { omitUndefined } from '../../guards/lib/json.js'
import type { PendingCall } from '../../machines/agent/run-result.js'
import type { Json } from '../../machines/agent/json.js'
import { getCallTitle, toApprovalId } from '../web/approval-id.js'
import type { SessionView } from '../web/chat-service.js'
import { collectCallNames } from './agui-messages.js'
import type { AGUIInterrupt } from './protocol.js'

/** The id of a pending call's interrupt. `toolCallId` is the page's name for the call. */
export function toInterruptId(
  toolCallId: string,
  { fingerprint, messageId }: Pick<PendingCall, 'fingerprint' | 'messageId'>,
): string {
  return toApprovalId({ callId: toolCallId, messageId, fingerprint })
}

/** The id of a pause. It contains the length of the transcript. */
export const toPauseId = (messages: number): string => `paused~${messages}`

export function createCallInterrupt(
  id: string,
  call: PendingCall,
  toolCallId: string,
  subagentRunId: string | undefined,
): AGUIInterrupt {
  const { name, path = [], interrupted, reason, expiresAt } = call
  const head = { id, toolCallId, ...omitUndefined({ subagentRunId }) }
  const called = path.length > 0 ? { name, path: [...path] } : { name }
  if (call.needs === 'elicitation') {
    const { server, message, mode, url, schema } = call.elicitation
    const properties: Record<string, Json> = {
      action: { type: 'string', enum: ['accept', 'decline', 'cancel'] },
      ...(schema && { content: schema as unknown as Json }),
    }
    return {
      ...head,
      reason: 'elicitation',
      message: `${server} asks: ${message}`,
      responseSchema: { type: 'object', properties, required: ['action'] },
      metadata: { statewright: { ...called, server, mode, ...omitUndefined({ url }) } },
    }
  }
  const title = getCallTitle(call)
  return {
    ...head,
    reason: 'tool_call',
    message: interrupted
      ? `${title} was running when its process ended, and may already have taken effect. Run it again?`
      : `Run ${title}?${reason === undefined ? '' : ` ${reason}`}`,
    ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
    responseSchema: approvalAnswerSchema,
    metadata: { statewright: { ...called, arguments: call.arguments, ...omitUndefined({ reason }) } },
  }
}

const approvalAnswerSchema: Record<string, Json> = {
  type: 'object',
  properties: {
    approved: { type: 'boolean' },
    editedArgs: { type: 'object', description: "Replaces the call's arguments." },
    reason: { type: 'string', description: 'The reason for a rejection. The model reads it.' },
  },
  required: ['approved'],
}

export function createPauseInterrupt(
  id: string,
  { reason, message, wakeAt }: { reason: string; message?: string | undefined; wakeAt: number | null },
): AGUIInterrupt {
  const prompt =
    wakeAt === null
      ? 'The run is paused. Resume it?'
      : `The run is sleeping until ${formatWakeTime(wakeAt)}. Wake it now?`
  const description = 'A message for the model before the run continues.'
  return {
    id,
    reason: 'paused',
    message: message ?? prompt,
    responseSchema: { type: 'object', properties: { steer: { type: 'string', description } } },
    metadata: { statewright: { reason, ...(wakeAt !== null && { wakeAt }) } },
  }
}

export function listInterrupts({ messages, pending, state, wakeAt }: SessionView): AGUIInterrupt[] {
  const reason = wakeAt === null ? 'paused' : 'sleeping'
  if (state === 'PAUSED') return [createPauseInterrupt(toPauseId(messages.length), { reason, wakeAt })]
  const names = collectCallNames(messages)
  return pending
    .filter(({ needs }) => needs !== 'client')
    .map((call) => {
      const name = names.getRequestName(call.callId)
      return createCallInterrupt(toInterruptId(name, call), call, name, undefined)
    })
}
