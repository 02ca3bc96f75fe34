import type { AgentContext } from '../../../machines/agent/context.js'
import { readElicitationAnswer } from '../sessions/elicitation-answer.js'
import type { AnswerMessage, SessionMessage } from '../sessions/inbox/session-message.js'
import { formatResult } from '../tools/tool-content.js'
import { readSender } from '../sessions/principal.js'
import { checkVote, getAwaitedCall } from './answer-events.js'
import type { Run } from './run.js'

export type MessageTarget = Pick<
  Run,
  'cancel' | 'pause' | 'resume' | 'steer' | 'reply' | 'approve' | 'reject' | 'addToolOutput'
>

/** A message for a run, as opposed to the session or the next turn. */
export type RunMessage = Exclude<SessionMessage, { type: 'message' | 'grant' | 'revoke' }>

/** Applies a message to a run in this process. @throws like the run's method */
export function applyMessage(run: MessageTarget, message: RunMessage): void {
  switch (message.type) {
    case 'cancel':
      return run.cancel(message.why, message)
    case 'pause':
      return run.pause(message)
    case 'resume':
      return run.resume(message)
    case 'steer':
      return run.steer(message.text, message)
    case 'reply':
      return run.reply(message.input, message)
    case 'approve':
      return run.approve(message.callId, message.editedInput as never, message)
    case 'reject':
      return run.reject(message.callId, message.why, message)
    default:
      return run.addToolOutput(message.callId, toOutputValue(message), message)
  }
}

/** The value for `run.addToolOutput`. A failed output becomes an Error. */
function toOutputValue({ value, isError }: { value: unknown; isError?: boolean }): unknown {
  if (isError !== true || value instanceof Error) return value
  return new Error(formatResult(value, Infinity).content)
}

/**
 * Checks an answer without changing anything.
 * @throws {UsageError} `unknown_call`, `already_answered`, `stale_answer`, `invalid_answer`, `not_an_approver`
 */
export function checkAnswer(context: AgentContext | undefined, answer: AnswerMessage): void {
  const isOutput = answer.type === 'toolOutput'
  const call = getAwaitedCall(context, answer.callId, isOutput ? 'client' : 'approval', answer)
  if (isOutput) {
    if (call.elicitation) readElicitationAnswer(call.elicitation, answer.value)
    return
  }
  const type = answer.type === 'approve' ? 'APPROVE' : 'REJECT'
  const edited = answer.type === 'approve' ? { arguments: answer.editedInput } : {}
  checkVote({ type, ...edited, ...readSender(answer, answer.type) }, call, context as AgentContext, 0)
}
