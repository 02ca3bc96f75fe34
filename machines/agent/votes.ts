import { addApproval, type Approval, findAnswerFault, type Question } from './approvals.js'
import type { BatchCall } from './batch-calls.js'
import type { AgentContext } from './context.js'
import { type AgentMachineEvent, getEventTime } from './machine-events.js'
import { type AskedCall, findQuestion, withQuestion } from './sub-agent-questions.js'
import { getApprovalTerms } from './to-result.js'

type Approve = Extract<AgentMachineEvent, { type: 'APPROVE' }>

/** Finds the call in a single pass, because there can be thousands. */
export function findAskedCall({ calls }: Pick<AgentContext, 'calls'>, callId: string): AskedCall | undefined {
  const call = calls.find(({ id }) => id === callId)
  return call ? { call } : findQuestion(calls, callId)
}

/** Who may approve a call or a question of its sub-agent, and who already has. */
export function getQuestionTerms(context: AgentContext, { call, question }: AskedCall): Question {
  return question ?? getApprovalTerms(context, call)
}

/** Why an event's answer is not accepted, or null. */
export function findVoteFault(
  terms: Question,
  event: AgentMachineEvent,
  { requesters }: Pick<AgentContext, 'requesters'>,
): ReturnType<typeof findAnswerFault> {
  const isVote = event.type === 'APPROVE' || event.type === 'REJECT'
  return isVote ? findAnswerFault(terms, event, requesters, getEventTime(event)) : null
}

/** The question with the event's approval added. */
export function withApproval(terms: Question, event: Approve): Question & { approvals: readonly Approval[] } {
  const { by, why } = event
  const approval = { ...(by && { by }), at: getEventTime(event), ...(why !== undefined && { why }) }
  return { ...terms, approvals: addApproval(terms, approval, event.arguments !== undefined) }
}

/** Adds the approvals to a question that needs more of them. */
export function withVote(
  calls: readonly BatchCall[],
  { call, question }: AskedCall,
  approvals: readonly Approval[],
): BatchCall[] {
  const voted = question ? withQuestion(call, question, { approvals }) : { ...call, approvals }
  return calls.with(calls.indexOf(call), voted)
}
