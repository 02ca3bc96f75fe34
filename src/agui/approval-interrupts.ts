import { formatWakeTime } from '../core/base/clock.js'
import { omitUndefined } from '../../guards/lib/json.js'
import type { AgentState, PendingCall, Reason, RunResult } from '../../machines/agent/run-result.js'
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

function createCallInterrupt(
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

export interface RunStatus extends Partial<Pick<RunResult, 'pending' | 'object' | 'messages'>> {
  state: AgentState
  reason: Reason | null
  error?: { message: string; code: string } | null
  wakeAt?: number | null
}

/** `owners`: the sub-agents of a stream, whose calls have other names there. */
export function listInterrupts(
  {
    state,
    messages = [],
    pending = [],
    wakeAt = null,
    reason,
    error,
  }: Partial<Omit<RunStatus, 'state'>> & Pick<SessionView, 'state'>,
  names = collectCallNames(messages),
  owners?: { getCallName(callId: string): string; findOwner(callId: string): string | undefined },
): AGUIInterrupt[] {
  if (state === 'PAUSED') {
    const [usual, prompt] =
      wakeAt === null
        ? ['paused', 'The run is paused. Resume it?']
        : ['sleeping', `The run is sleeping until ${formatWakeTime(wakeAt)}. Wake it now?`]
    const description = 'A message for the model before the run continues.'
    const pause: AGUIInterrupt = {
      id: toPauseId(messages.length),
      reason: 'paused',
      message: error?.message ?? prompt,
      responseSchema: { type: 'object', properties: { steer: { type: 'string', description } } },
      metadata: { statewright: { reason: reason ?? usual, ...(wakeAt !== null && { wakeAt }) } },
    }
    return [pause]
  }
  return pending
    .filter(({ needs }) => needs !== 'client')
    .map((call) => {
      const { callId } = call
      const name = names.getRequestName(callId)
      const toolCallId = owners?.getCallName(callId) ?? name
      return createCallInterrupt(toInterruptId(name, call), call, toolCallId, owners?.findOwner(callId))
    })
}
