import { formatWakeTime } from '../core/base/clock.js'
import type { PendingCall } from '../../machines/agent/run-result.js'
import type { Json } from '../../machines/agent/json.js'
import { toApprovalId } from '../web/approval-id.js'
import type { SessionView } from '../web/chat-service.js'
import { collectCallNames } from './agui-messages.js'
import type { AGUIInterrupt } from './protocol.js'

/** The id by which a pending call is answered, with the page's name of the call. */
export function toInterruptId(
  toolCallId: string,
  { fingerprint, messageId }: Pick<PendingCall, 'fingerprint' | 'messageId'>,
): string {
  return toApprovalId({ callId: toolCallId, messageId, fingerprint })
}

/** The id by which a paused session is resumed: it contains the length of the transcript. */
export function toPauseId(messages: number): string {
  return `paused~${messages}`
}

function createApprovalInterrupt(
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
      ? `${who} was running when its process ended, and may have had its effect already. Run it again?`
      : `Run ${who}?`,
    toolCallId,
    ...(subagentRunId !== undefined && { subagentRunId }),
    responseSchema: approvalAnswerSchema,
    metadata: {
      statewright: { name, arguments: call.arguments, ...(path.length > 0 && { path: [...path] }) },
    },
  }
}

/** What the server of a tool asks a person. Its answer has an `action`, and for a form the `content`. */
function createElicitationInterrupt(
  id: string,
  { name, path = [], elicitation }: Extract<PendingCall, { needs: 'elicitation' }>,
  toolCallId: string,
  subagentRunId: string | undefined,
): AGUIInterrupt {
  const { server, message, mode, url, schema } = elicitation
  const shown = { server, mode, ...(url !== undefined && { url }) }
  return {
    id,
    reason: 'elicitation',
    message: `${server} asks: ${message}`,
    toolCallId,
    ...(subagentRunId !== undefined && { subagentRunId }),
    responseSchema: {
      type: 'object',
      properties: {
        action: { type: 'string', enum: ['accept', 'decline', 'cancel'] },
        ...(schema && { content: schema as unknown as Json }),
      },
      required: ['action'],
    },
    metadata: { statewright: { name, ...shown, ...(path.length > 0 && { path: [...path] }) } },
  }
}

/** The interrupt of a question to a person. */
export function createCallInterrupt(
  id: string,
  call: PendingCall,
  toolCallId: string,
  subagentRunId: string | undefined,
): AGUIInterrupt {
  return call.needs === 'elicitation'
    ? createElicitationInterrupt(id, call, toolCallId, subagentRunId)
    : createApprovalInterrupt(id, call, toolCallId, subagentRunId)
}

const approvalAnswerSchema: Record<string, Json> = {
  type: 'object',
  properties: {
    approved: { type: 'boolean' },
    editedArgs: { type: 'object', description: 'Replaces the arguments of the call.' },
    reason: { type: 'string', description: 'Why it was refused; the model reads it.' },
  },
  required: ['approved'],
}

/** Why a run rests in PAUSED, and until when, where it sleeps. */
interface Pause {
  reason: string
  message?: string | undefined
  wakeAt: number | null
}

export function createPauseInterrupt(id: string, { reason, message, wakeAt }: Pause): AGUIInterrupt {
  const what =
    wakeAt === null
      ? 'The run is paused. Resume it?'
      : `The run sleeps until ${formatWakeTime(wakeAt)}. Wake it now?`
  return {
    id,
    reason: 'paused',
    message: message ?? what,
    responseSchema: {
      type: 'object',
      properties: {
        steer: { type: 'string', description: 'A message for the model before the run goes on.' },
      },
    },
    metadata: { statewright: { reason, ...(wakeAt !== null && { wakeAt }) } },
  }
}

/** The open interrupts of a session, from its log. */
export function listInterrupts({ messages, pending, state, wakeAt }: SessionView): AGUIInterrupt[] {
  const reason = wakeAt === null ? 'paused' : 'sleeping'
  if (state === 'PAUSED') return [createPauseInterrupt(toPauseId(messages.length), { reason, wakeAt })]
  const names = collectCallNames(messages)
  return pending
    .filter(({ needs }) => needs !== 'client')
    .map((call) => {
      const name = names.getQuestionName(call.callId)
      return createCallInterrupt(toInterruptId(name, call), call, name, undefined)
    })
}
