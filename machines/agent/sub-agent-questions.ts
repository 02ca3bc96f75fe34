import { isTerminalChild } from '../../guards/terminal-delegation.js'
import type { Approval } from './approvals.js'
import type { AgentContext } from './context.js'
import type { AgentMachineEvent } from './machine-events.js'
import type { PendingCall } from './run-result.js'
import { formatMessageId } from './messages.js'
import type { BatchCall, ChildAnswer, ChildQuestion, ToolResult } from './batch-calls.js'

/** Whether the call's sub-agent rests. The sub-agent waits for answers or, without questions, for a pause to end. */
export function isChildAtRest({ needs, result }: BatchCall): boolean {
  return needs === 'child' && result === undefined
}

export function isChildPaused(call: BatchCall): boolean {
  return isChildAtRest(call) && (call.questions ?? []).length === 0
}

/** Whether an answer of this type matches the question. Elicitations are answered like client calls. */
export function isAnsweredBy(needs: string, who: string): boolean {
  return needs === who || (needs === 'elicitation' && who === 'client')
}

/** The call that an answer refers to. If `question` is set, the answer is for the call's sub-agent or tool. */
export interface AskedCall {
  call: BatchCall
  question?: ChildQuestion
}

/** The unanswered questions from a call's sub-agent, or from its tool. */
export function listOpenQuestions(call: BatchCall): ChildQuestion[] {
  return isChildAtRest(call) ? (call.questions ?? []).filter(({ answer }) => answer === undefined) : []
}

/** Finds a question by `callId`: the call's id, a slash, and the id within the sub-agent's run. */
export function findQuestion(
  calls: readonly BatchCall[],
  callId: string,
): { call: BatchCall; question: ChildQuestion } | undefined {
  // Most ids belong to the run's own calls, and there can be thousands of calls.
  if (!callId.includes('/')) return undefined
  for (const call of calls) {
    const question = listOpenQuestions(call).find((one) => toQuestionId(call, one) === callId)
    if (question) return { call, question }
  }
  return undefined
}

export function toQuestionId(call: BatchCall, { callId }: PendingCall): string {
  return `${call.id}/${callId}`
}

/**
 * The id of the message with the current batch. For a sub-agent's question, it is followed by the ids of the
 * sub-agents' messages.
 */
export function getAskingMessageId(
  { batchNumber }: Pick<AgentContext, 'batchNumber'>,
  below?: PendingCall,
): string {
  const id = formatMessageId(batchNumber)
  return below?.messageId === undefined ? id : `${id}/${below.messageId}`
}

/** The calls after one question is answered. A sub-agent continues once all its questions are answered. */
export function withAnswer(
  calls: readonly BatchCall[],
  callId: string,
  answer: ChildAnswer,
): BatchCall[] | undefined {
  const found = findQuestion(calls, callId)
  if (found === undefined) return undefined
  const answered = withQuestion(found.call, found.question, { answer })
  // An approved call that can expire must not wait for the other questions.
  const isUrgent = answer.type === 'approve' && found.question.expiresAt !== undefined
  const isAnswered = isUrgent || answered.questions.every((one) => one.answer !== undefined)
  const next = isAnswered ? { ...answered, needs: 'nobody' as const } : answered
  return calls.with(calls.indexOf(found.call), next)
}

/** The call with a changed question from its sub-agent. */
export function withQuestion(
  call: BatchCall,
  question: ChildQuestion,
  change: { answer: ChildAnswer } | { approvals: readonly Approval[] },
): BatchCall & { questions: ChildQuestion[] } {
  const questions = (call.questions ?? []).map((one) => (one === question ? { ...one, ...change } : one))
  return { ...call, questions }
}

/** Whether a result ends the batch immediately because the call's sub-agent failed permanently. */
export function haltsBatch({ config }: Pick<AgentContext, 'config'>, { child }: ToolResult): boolean {
  return config.guardrails.terminalDelegation !== null && isTerminalChild(child)
}

/** The sub-agent usage that an event reports. */
export function findChildUsage(event: AgentMachineEvent) {
  return event.type === 'CHILD_USAGE' || event.type === 'TOOL_RESULT' ? (event.usage ?? null) : null
}
