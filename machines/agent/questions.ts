import { omitUndefined } from '../../guards/lib/json.js'
import {
  addApproval,
  type Approval,
  findAnswerFault,
  getAskReason,
  getExpiry,
  listApprovers,
  type Question,
} from './approvals.js'
import type { EmittedEvent } from './announcements.js'
import {
  type BatchCall,
  type ChildQuestion,
  getCallFingerprint,
  type ChildAnswer,
  type ToolResult,
} from './batch-calls.js'
import { type AgentContext, type AgentMachineEvent, getEventTime } from './context.js'
import type { PendingCall } from './run-result.js'
import { isTerminalChild } from '../../guards/terminal-delegation.js'
import { formatMessageId } from './messages.js'

export function listPendingCalls(context: AgentContext): PendingCall[] {
  return context.state === 'WAITING_FOR_INPUT' ? listCallQuestions(context) : []
}

/** All calls that can be answered now, whether the run rests or other calls still run. */
export function listAnswerableCalls(context: AgentContext): PendingCall[] {
  return canTakeAnswers(context) ? listCallQuestions(context) : []
}

/** Does not build the whole list, because a batch can have thousands of calls. */
export function findAnswerableCall(
  context: AgentContext,
  callId: string,
  needs: PendingCall['needs'],
): PendingCall | undefined {
  if (!canTakeAnswers(context)) return undefined
  return context.calls
    .filter(({ id }) => callId === id || callId.startsWith(`${id}/`))
    .flatMap((call) => listQuestionsOfCall(context, call))
    .find((one) => one.callId === callId && isAnsweredBy(one.needs, needs))
}

function canTakeAnswers({ state }: AgentContext): boolean {
  return state === 'WAITING_FOR_INPUT' || state === 'WAITING_FOR_TOOL'
}

function listCallQuestions(context: AgentContext): PendingCall[] {
  return context.calls.flatMap((call) => listQuestionsOfCall(context, call))
}

function listQuestionsOfCall(context: AgentContext, call: BatchCall): PendingCall[] {
  const { id: callId, name, arguments: text, needs, interrupted, hosted } = call
  if (call.result !== undefined || needs === 'nobody' || call.unscreenedArguments || call.undecided) return []
  if (needs === 'child')
    return listOpenQuestions(call).map((question) => toParentQuestion(context, call, question))
  const fingerprint = getCallFingerprint(call)
  const reason = needs === 'approval' ? { ...getAskReason(call), ...getApprovalTerms(context, call) } : {}
  const messageId = getAskingMessageId(context)
  const marks = { ...omitUndefined({ interrupted, hosted }), ...reason }
  return [{ callId, name, arguments: text, needs, fingerprint, messageId, ...marks }]
}

/** Who may approve a call, who has already approved it, and the deadline. Empty if anyone may approve at any time. */
export function getApprovalTerms(
  { approvers: ofAgent, expiry }: Pick<AgentContext, 'approvers' | 'expiry'>,
  { approvals, expiresAt, ...call }: BatchCall,
): Question & Pick<PendingCall, 'onExpiry'> {
  const approvers = listApprovers(call, ofAgent)
  const { onExpiry } = expiresAt === undefined ? {} : getExpiry(call, expiry)
  return {
    ...(approvers.length > 0 && { approvers }),
    ...omitUndefined({ approvals, expiresAt, onExpiry: onExpiry === 'reject' ? undefined : onExpiry }),
  }
}

/** Converts a question from a sub-agent or from the call's tool to a question of this run, with this run's ids. */
function toParentQuestion(context: AgentContext, call: BatchCall, childQuestion: ChildQuestion): PendingCall {
  const { fromTool, ...question } = childQuestion
  return {
    ...question,
    callId: toQuestionId(call, question),
    messageId: getAskingMessageId(context, question),
    ...(!fromTool && { path: [call.name, ...(question.path ?? [])] }),
  } as PendingCall
}

/** Of the run and of its sub-agents. The client already has its calls. */
export function listRequests(context: AgentContext): EmittedEvent[] {
  return listCallQuestions(context).flatMap(({ needs, ...request }): EmittedEvent[] => {
    if (needs === 'client') return []
    const type = needs === 'approval' ? 'approval_requested' : 'elicitation_requested'
    return [{ ...request, type } as EmittedEvent]
  })
}

export function isRequest<Event extends { type: string }>(
  event: Event,
): event is Extract<Event, { type: 'approval_requested' | 'elicitation_requested' }> {
  return event.type.endsWith('_requested')
}

type Approve = Extract<AgentMachineEvent, { type: 'APPROVE' }>

/** Finds the call in a single pass, because there can be thousands of calls. */
export function findAskedCall({ calls }: Pick<AgentContext, 'calls'>, callId: string): AskedCall | undefined {
  const call = calls.find(({ id }) => id === callId)
  return call ? { call } : findQuestion(calls, callId)
}

export function getQuestionTerms(context: AgentContext, { call, question }: AskedCall): Question {
  return question ?? getApprovalTerms(context, call)
}

export function findVoteFault(
  terms: Question,
  event: AgentMachineEvent,
  { requesters }: Pick<AgentContext, 'requesters'>,
): ReturnType<typeof findAnswerFault> {
  const isVote = event.type === 'APPROVE' || event.type === 'REJECT'
  return isVote ? findAnswerFault(terms, event, requesters, getEventTime(event)) : null
}

export function withApproval(terms: Question, event: Approve): Question & { approvals: readonly Approval[] } {
  const { by, why } = event
  const approval = { ...omitUndefined({ by }), at: getEventTime(event), ...omitUndefined({ why }) }
  return { ...terms, approvals: addApproval(terms, approval, event.arguments !== undefined) }
}

export function withVote(
  calls: readonly BatchCall[],
  { call, question }: AskedCall,
  approvals: readonly Approval[],
): BatchCall[] {
  const voted = question ? withQuestion(call, question, { approvals }) : { ...call, approvals }
  return calls.with(calls.indexOf(call), voted)
}

interface OwnApproval extends AskedCall {
  others: readonly Approval[]
}

/** Undefined if the sender has not approved the call, or if it has started. */
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

/** The calls without the sender's approval. Only people decide such a call. No grant starts it. */
export function withoutApproval(
  calls: readonly BatchCall[],
  { call, question, others }: OwnApproval,
): BatchCall[] {
  if (question) return calls.with(calls.indexOf(call), withQuestion(call, question, { approvals: others }))
  const { approved: _approved, approvals: _approvals, ...open } = call
  const approvals = others.length > 0 ? { approvals: others } : {}
  return calls.with(calls.indexOf(call), { ...open, ...approvals, needs: 'approval', ungranted: true })
}

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

export function listOpenQuestions(call: BatchCall): ChildQuestion[] {
  return isChildAtRest(call) ? (call.questions ?? []).filter(({ answer }) => answer === undefined) : []
}

/** Finds a question by `callId`: the call's id, a slash, and the id within the sub-agent's run. */
function findQuestion(calls: readonly BatchCall[], callId: string): Required<AskedCall> | undefined {
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

/** For a sub-agent's question, the ids of the sub-agents' messages follow. */
export function getAskingMessageId({ batchNumber }: Pick<AgentContext, 'batchNumber'>, below?: PendingCall) {
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

function withQuestion(
  call: BatchCall,
  question: ChildQuestion,
  change: { answer: ChildAnswer } | { approvals: readonly Approval[] },
): BatchCall & { questions: ChildQuestion[] } {
  return {
    ...call,
    questions: call.questions?.map((one) => (one === question ? { ...one, ...change } : one)) ?? [],
  }
}

export function haltsBatch({ config }: Pick<AgentContext, 'config'>, { child }: ToolResult): boolean {
  return config.guardrails.terminalDelegation !== null && isTerminalChild(child)
}

export function findChildUsage(event: AgentMachineEvent) {
  return event.type === 'CHILD_USAGE' || event.type === 'TOOL_RESULT' ? (event.usage ?? null) : null
}
