import { addApproval, type Approval, findAnswerFault } from './approvals.js'
import type { BatchCall, ChildQuestion } from './batch-calls.js'
import type { AgentContext } from './context.js'
import { type AgentMachineEvent, getEventTime } from './machine-events.js'
import type { PendingCall } from './run-result.js'
import { findQuestion } from './sub-agent-questions.js'
import { getApprovalTerms } from './to-result.js'

type Terms = Pick<PendingCall, 'approvers' | 'approvals'>
type Approve = Extract<AgentMachineEvent, { type: 'APPROVE' }>

/** The call that an answer names. With a question, the answer is for its sub-agent. */
export interface AskedCall {
  call: BatchCall
  question?: ChildQuestion
}

/** Searches the calls once, because there can be thousands. */
export function findAskedCall({ calls }: Pick<AgentContext, 'calls'>, callId: string): AskedCall | undefined {
  const call = calls.find(({ id }) => id === callId)
  return call ? { call } : findQuestion(calls, callId)
}

/** Who may approve a call or a question of its sub-agent, and who has. */
export function getQuestionTerms(context: AgentContext, { call, question }: AskedCall): Terms {
  return question ?? getApprovalTerms(context, call)
}

/** Why the answer of an event does not count, or null. */
export function findVoteFault(
  terms: Terms,
  event: AgentMachineEvent,
  { requesters }: Pick<AgentContext, 'requesters'>,
): ReturnType<typeof findAnswerFault> {
  if (event.type !== 'APPROVE' && event.type !== 'REJECT') return null
  const { type, by } = event
  const isEdit = type === 'APPROVE' && event.arguments !== undefined
  return findAnswerFault(terms, { type, by, isEdit }, requesters)
}

/** The question with the approval of an event. */
export function withApproval(terms: Terms, event: Approve): Terms & { approvals: readonly Approval[] } {
  const { by, why } = event
  const approval = { ...(by && { by }), at: getEventTime(event), ...(why !== undefined && { why }) }
  return { ...terms, approvals: addApproval(terms, approval, event.arguments !== undefined) }
}
