import type { AgentContext, ControlEvent } from '../../machines/agent/context.js'
import { listAnswerableCalls } from '../../machines/agent/questions.js'
import { UsageError } from '../core/base/errors.js'
import type { AnswerOptions } from '../core/run/answer-events.js'
import { checkAnswer } from '../core/run/apply-message.js'
import type { AnswerMessage } from '../core/sessions/inbox/session-message.js'
import { isOfCall } from './approval-id.js'
import { toTurn } from './chat-turn.js'

export interface PageAnswers {
  answers: readonly AnswerMessage[]
  /** The id of the page message with the calls. Ids in other formats are ignored. */
  messageId?: string | undefined
}

/**
 * Returns the answers to apply. Pages repeat earlier answers with each new one, so the earlier answers are dropped if
 * there is a new one. No answer is applied if one is refused.
 * @throws {UsageError} `unknown_call`, `already_answered`, `stale_answer`, `invalid_answer`
 */
export function selectAnswers(
  context: AgentContext | undefined,
  { answers, messageId = '' }: PageAnswers,
): readonly AnswerMessage[] {
  const open = new Set((context ? listAnswerableCalls(context) : []).map(({ callId }) => callId))
  const isNew = (answer: AnswerMessage): boolean => open.has(answer.callId)
  const isKnown = (answer: AnswerMessage): boolean =>
    context?.calls.some(({ id }) => isOfCall(answer.callId, id)) ?? false
  const hasNew = answers.some(isNew)
  const selected = answers.filter((answer) => isNew(answer) || !hasNew || !isKnown(answer))
  for (const answer of selected) checkAnswer(context, answer)
  if (context && /^m\d+\.answer$/.test(messageId) && toTurn(context).messageId !== messageId)
    throw staleBranchError(messageId)
  return selected
}

export function staleBranchError(subject: string): UsageError {
  return new UsageError(
    'stale_answer',
    'The answer is for another branch of the chat. Reload the chat.',
    subject,
  )
}

const eventTypes = { approve: 'APPROVE', reject: 'REJECT', toolOutput: 'TOOL_OUTPUT' } as const

/** Whether an inbox event is a copy of this answer. Edited arguments must be equal. */
export function isAnswerTo(event: ControlEvent, answer: AnswerMessage): boolean {
  if (!('callId' in event) || event.type !== eventTypes[answer.type] || !isSameCall(answer, event))
    return false
  if (event.type !== 'APPROVE' || answer.type !== 'approve') return true
  const { editedInput } = answer
  return event.arguments === (editedInput === undefined ? undefined : JSON.stringify(editedInput))
}

export function isAnyOpen(context: AgentContext | undefined, answers: readonly AnswerMessage[]): boolean {
  const open = context ? listAnswerableCalls(context) : []
  return answers.some((answer) => open.some((call) => isSameCall(answer, call)))
}

type AnswerTarget = AnswerOptions & { callId: string }

export function isSameCall(answer: AnswerTarget, call: AnswerTarget): boolean {
  return answer.callId === call.callId && fitsCall(answer, call)
}

/** Whether the optional fingerprint and message id of an answer match the call. */
export function fitsCall({ fingerprint, messageId }: AnswerOptions, call: AnswerOptions): boolean {
  return (
    (fingerprint ?? call.fingerprint) === call.fingerprint && (messageId ?? call.messageId) === call.messageId
  )
}
