import { addApproval, type Approval, findAnswerFault, type Question } from './approvals.js'
import type { BatchCall } from './batch-calls.js'
import type { AgentContext } from './context.js'
import { type AgentMachineEvent, getEventTime } from './machine-events.js'
import { getCallFingerprint } from './batch-calls.js'
import { type AskedCall, findQuestion, getAskingMessageId, withQuestion } from './sub-agent-questions.js'
import { getApprovalTerms } from './to-result.js'

type Approve = Extract<AgentMachineEvent, { type: 'APPROVE' }>

/** Finds the call in a single pass, because there can be thousands of calls. */
export function findAskedCall({ calls }: Pick<AgentContext, 'calls'>, callId: string): AskedCall | undefined {
  const call = calls.find(({ id }) => id === callId)
  return call ? { call } : findQuestion(calls, callId)
}

/** Who may approve a call or a question of its sub-agent, and who has already approved it. */
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

/** Adds the approvals to a question that needs more approvals. */
export function withVote(
  calls: readonly BatchCall[],
  { call, question }: AskedCall,
  approvals: readonly Approval[],
): BatchCall[] {
  const voted = question ? withQuestion(call, question, { approvals }) : { ...call, approvals }
  return calls.with(calls.indexOf(call), voted)
}

interface OwnApproval extends AskedCall {
  /** The approvals by other people. */
  others: readonly Approval[]
}

/**
 * The call whose approval an event withdraws. Undefined if the sender has not approved the call, or if the call has
 * started.
 */
export function findOwnApproval(context: AgentContext, event: AgentMachineEvent): OwnApproval | undefined {
  if (event.type !== 'REVOKE' || !('callId' in event)) return undefined
  const { callId, by, fingerprint, messageId } = event
  const asked = findAskedCall(context, callId)
  if (asked === undefined) return undefined
  const { call, question } = asked
  const known = question?.fingerprint ?? getCallFingerprint(call)
  if (![undefined, known].includes(fingerprint)) return undefined
  if (![undefined, getAskingMessageId(context, question)].includes(messageId)) return undefined
  const { needs, approved, result, started, grant } = call
  const isOpen = needs === 'approval' || (needs === 'nobody' && approved === true)
  if (!question && (!isOpen || result !== undefined || started || grant !== undefined)) return undefined
  // An approval without a sender is not stored.
  const { approvals = approved && !question ? [{ at: 0 }] : [] } = question ?? call
  const others = approvals.filter((one) => one.by?.id !== by?.id)
  return others.length < approvals.length ? { ...asked, others } : undefined
}

/** The calls without the sender's approval. Only people decide such a call: an older grant does not start it. */
export function withoutApproval(
  calls: readonly BatchCall[],
  { call, question, others }: OwnApproval,
): BatchCall[] {
  if (question) return calls.with(calls.indexOf(call), withQuestion(call, question, { approvals: others }))
  const { approved: _approved, approvals: _approvals, ...open } = call
  const approvals = others.length > 0 ? { approvals: others } : {}
  return calls.with(calls.indexOf(call), { ...open, ...approvals, needs: 'approval', ungranted: true })
}
