import { getAskReason, getExpiry, listApprovers, type Question } from './approvals.js'
import { findDueTime } from './expiry.js'
import type { AgentContext } from './context.js'
import { getAskingMessageId, isAnsweredBy, listOpenQuestions, toQuestionId } from './sub-agent-questions.js'
import type { PendingCall, RunInProgress, RunResult } from './run-result.js'
import { type BatchCall, type ChildQuestion, getCallFingerprint } from './batch-calls.js'
import { maskMessages } from './mask-uncleared.js'
import type { EmittedEvent } from './announcements.js'

/** The public result of a run at rest. */
export function toRunResult(context: AgentContext): RunResult {
  return toCurrentResult(context) as RunResult
}

/** The result of a run at any time. The cast is safe because the machine guarantees the fields of each state. */
export function toCurrentResult(context: AgentContext): RunResult | RunInProgress {
  const state = context.state ?? 'RUNNING'
  const resumable = state === 'PAUSED' || state === 'WAITING_FOR_INPUT'
  const wakeAt = findDueTime(context)
  const outputProblem = resumable ? null : findOutputProblem(context)
  return {
    state,
    reason: context.reason ?? 'internal',
    output: context.output,
    messages: maskMessages(context),
    usage: context.usage.run,
    steps: context.steps,
    ...(context.error !== null && { error: context.error }),
    ...(outputProblem !== null && { outputProblem }),
    ...(state === 'WAITING_FOR_INPUT' && { pending: listPendingCalls(context) }),
    ...(wakeAt !== null && { wakeAt }),
    resumable,
    sessionId: context.sessionId,
    runId: context.runId,
  } as unknown as RunResult | RunInProgress
}

/** The calls that a resting run waits for. */
export function listPendingCalls(context: AgentContext): PendingCall[] {
  return context.state === 'WAITING_FOR_INPUT' ? listCallQuestions(context) : []
}

/** All calls that can be answered now, whether the run rests or other calls still run. */
export function listAnswerableCalls(context: AgentContext): PendingCall[] {
  return canTakeAnswers(context) ? listCallQuestions(context) : []
}

/**
 * Finds the answerable call that an answer refers to. Does not build the whole list, because a batch can have thousands
 * of calls.
 */
export function findAnswerableCall(
  context: AgentContext,
  callId: string,
  needs: PendingCall['needs'],
): PendingCall | undefined {
  if (!canTakeAnswers(context)) return undefined
  for (const call of context.calls) {
    if (callId !== call.id && !callId.startsWith(`${call.id}/`)) continue
    const question = listQuestionsOfCall(context, call).find(
      (one) => one.callId === callId && isAnsweredBy(one.needs, needs),
    )
    if (question) return question
  }
  return undefined
}

function canTakeAnswers({ state }: AgentContext): boolean {
  return state === 'WAITING_FOR_INPUT' || state === 'WAITING_FOR_TOOL'
}

/** The calls' open questions, in any state. */
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
  const marks = { ...(interrupted && { interrupted }), ...(hosted && { hosted }), ...reason }
  return [
    { callId, name, arguments: text, needs, fingerprint, messageId: getAskingMessageId(context), ...marks },
  ]
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
    ...(approvals && { approvals }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(onExpiry && onExpiry !== 'reject' && { onExpiry }),
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

/**
 * Why a run ended without an output object. Null if the run has an output object, or if the agent has no output schema.
 */
export function findOutputProblem(context: AgentContext): string | null {
  const { features, response, reason, pendingAnswer, outputProblem } = context
  if (!features.structuredOutput) return null
  // The problem could reveal blocked or uncleared content.
  if (reason === 'shield' || pendingAnswer !== null) return noAnswerProblem
  return outputProblem ?? (response === 'answer' ? null : noAnswerProblem)
}

const noAnswerProblem =
  'The run ended without an answer that matches the output schema, so the output is the raw text.'

/**
 * The open requests to people, for calls of the run and of its sub-agents. Client calls are omitted, because the
 * client already has them.
 */
export function listRequests(context: AgentContext): EmittedEvent[] {
  return listCallQuestions(context).flatMap(({ needs, ...request }): EmittedEvent[] => {
    if (needs === 'client') return []
    const type = needs === 'approval' ? 'approval_requested' : 'elicitation_requested'
    return [{ ...request, type } as EmittedEvent]
  })
}

/** Whether an event is a request to people. */
export function isRequest<Event extends { type: string }>(
  event: Event,
): event is Extract<Event, { type: 'approval_requested' | 'elicitation_requested' }> {
  return event.type.endsWith('_requested')
}
