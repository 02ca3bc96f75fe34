import { addApproval, type Approval, findAnswerFault } from './approvals.js'
import type { AgentContext } from './context.js'
import { type AgentMachineEvent, getEventTime } from './machine-events.js'
import type { PendingCall } from './run-result.js'
import { findQuestion } from './sub-agent-questions.js'
import { getApprovalTerms } from './to-result.js'

type Terms = Pick<PendingCall, 'approvers' | 'approvals'>
type Approve = Extract<AgentMachineEvent, { type: 'APPROVE' }>

/** Who may approve a call or a question of its sub-agent, and who has. Undefined for an unknown call. */
export function findQuestionTerms(context: AgentContext, callId: string): Terms | undefined {
  const call = context.calls.find(({ id }) => id === callId)
  return call ? getApprovalTerms(context, call) : findQuestion(context.calls, callId)?.question
}

/** Why the answer of an event does not count, or null. */
export function findVoteFault(
  context: AgentContext,
  event: AgentMachineEvent,
): ReturnType<typeof findAnswerFault> {
  if (event.type !== 'APPROVE' && event.type !== 'REJECT') return null
  const { type, by, callId } = event
  const isEdit = type === 'APPROVE' && event.arguments !== undefined
  return findAnswerFault(findQuestionTerms(context, callId) ?? {}, { type, by, isEdit }, context.requesters)
}

/** The question with the approval of an event. */
export function withApproval<Question extends Terms>(
  question: Question,
  event: Approve,
): Question & { approvals: readonly Approval[] } {
  const { by, why } = event
  const approval = { ...(by && { by }), at: getEventTime(event), ...(why !== undefined && { why }) }
  return { ...question, approvals: addApproval(question, approval, event.arguments !== undefined) }
}
