import { omitUndefined, extendObject } from '../../../guards/lib/json.js'
import { type AgentContext, type AgentMachineEvent, getEventTime } from '../context.js'
import { toAction, toActionOn } from '../update-action.js'
import type { Emit } from '../announcements.js'
import { type ApprovalOutcome, createExpired, getExpiry, isApproved, isLate } from '../approvals.js'
import {
  addGrant,
  applyGrants,
  readNewGrant,
  toGrantedCall,
  changeGrants,
  findRevokedGrant,
  withoutGrants,
} from '../grants.js'
import { listLate, withExpiry } from '../due-times.js'
import type { Principal } from '../principal.js'
import { isInDoubt, isUnderWay, findResumedTools } from '../call-state.js'
import {
  listRequests,
  findAskedCall,
  getQuestionTerms,
  withApproval,
  withVote,
  isChildPaused,
  toQuestionId,
  withAnswer,
  findOwnApproval,
  withoutApproval,
} from '../questions.js'
import { type BatchCall, isRunnable, type ToolResult, toResult } from '../batch-calls.js'
import { rejectionPrefix } from '../screening.js'
import { spendForChild } from './spend-usage.js'
import {
  applyHandoff,
  closeOpenCalls,
  emitAfterScreening,
  settleCall,
  formatNotExecuted,
  maskUnclearedResults,
  applySkillChanges,
  withResults,
} from './update-transcript.js'

/** Grants are checked and counted in the same action, so neither can happen without the other. */
export const markStarted = toAction((context, event, emit) => {
  const now = getEventTime(event)
  const { granted, grants } = applyGrants(context, now)
  for (const [call, grant] of granted) {
    announceOutcome(context, call, 'granted', event, emit, grant.id)
    if (grant.uses === 0) emit({ type: 'grant_changed', grant, change: 'used_up' })
  }
  const calls = context.calls.map((call) => {
    const grant = granted.get(call)
    const startable = grant ? toGrantedCall(call, grant) : call
    return isRunnable(startable) && !isLate(call, now)
      ? extendObject(startable, { started: true as const })
      : call
  })
  return { calls, ...(granted.size > 0 && { grants }) }
})

export const recordResult = toActionOn('TOOL_RESULT', (context, event, emit) => {
  const spent = spendForChild(context, event, emit)
  const { callId, result } = event
  const { calls = context.calls } = spent ?? {}
  const isUncleared = context.features.resultShields
  return { ...spent, calls: settleCall(calls, callId, result, getEventTime(event), emit, isUncleared) }
})

/** Closes calls that were running when the process died, unless their tool is safe to run twice. */
export const closeInterruptedCalls = toAction((context, event, emit) => {
  const inDoubt = context.calls.filter((call) => isInDoubt(context, call, event))
  if (inDoubt.length === 0) return undefined
  if (context.config.toolCalls.onInterrupted === 'result') {
    const isMeant = (call: BatchCall): boolean => inDoubt.includes(call)
    return { calls: closeOpenCalls(context.calls, '', getEventTime(event), emit, isMeant) }
  }
  return {
    calls: context.calls.map((call) => {
      if (!inDoubt.includes(call)) return call
      const { started: _s, approvals: _v, approved: _a, expiresAt: _e, grant: _g, ...waiting } = call
      return {
        ...waiting,
        needs: 'approval' as const,
        interrupted: true as const,
        ...(call.interrupted && { interruptions: (call.interruptions ?? 1) + 1 }),
      }
    }),
  }
})

export const noteSkillChange = toActionOn('SKILL_CHANGED', (context, { callId, change }) =>
  noteOnCall(context, callId, { skill: change }),
)

export const noteHandle = toActionOn('HANDLE_SAVED', (context, { callId, handle }) =>
  noteOnCall(context, callId, { handle }),
)

export const noteHandoff = toActionOn('HANDED_OFF', (context, { callId, to, tools }) =>
  noteOnCall(context, callId, { handoff: { to, tools } }),
)

function noteOnCall({ calls }: AgentContext, callId: string, note: Partial<BatchCall>) {
  return {
    calls: calls.map((call) =>
      call.id === callId && call.result === undefined ? extendObject(call, note) : call,
    ),
  }
}

/** Updates the tools, because the resuming program may have different tools. */
export const noteTools = toAction((_context, event) => {
  const tools = findResumedTools(event)
  return tools && { tools }
})

/** Closes calls that started but never reported back. Their outcome is unknown. */
export const closeStartedCalls = toAction((context, event, emit) => {
  if (!context.calls.some(isUnderWay)) return undefined
  return { calls: closeOpenCalls(context.calls, '', getEventTime(event), emit, isUnderWay) }
})

/** Gives each call one result, in call order. Calls of a waiting state or of a paused sub-agent stay open. */
export const settleBatch = toAction((context, event, emit) => {
  if (context.calls.length === 0) return undefined
  const isPause =
    context.reason === 'paused' ||
    context.reason === 'sleeping' ||
    (context.reason === 'approval_expired' && context.pausing !== false)
  const exposed =
    context.reason === 'approval' ||
    context.reason === 'tool_output' ||
    (isPause && context.calls.some(isChildPaused))
  const closed = exposed
    ? context.calls
    : maskUnclearedResults(
        closeOpenCalls(context.calls, formatNotExecuted(context.reason), getEventTime(event), emit),
        getEventTime(event),
        emit,
      )
  const { calls, unemittedStep } = emitAfterScreening({ ...context, calls: closed }, emit)
  return {
    unemittedStep,
    calls: exposed ? calls : [],
    messages: withResults(context, closed),
    ...applySkillChanges(context, closed),
    ...(!exposed && applyHandoff(context, closed, emit)),
  }
})

/** Asks the open questions. A question's time limit starts when the question is first asked. */
export const askPeople = toAction((context, event, emit) => {
  const now = getEventTime(event)
  const calls = context.calls.map((call) => withExpiry(context, call, now))
  const isTimed = calls.some((call, i) => call !== context.calls[i])
  for (const request of listRequests(isTimed ? { ...context, calls } : context)) emit(request)
  return isTimed ? { calls } : undefined
})

/** Closes expired calls and questions. Sub-agents close their own calls. */
export const expireCalls = toAction((context, event, emit) => {
  const now = getEventTime(event)
  const late = listLate(context, now)
  const expire = (calls: BatchCall[], { call, question }: (typeof late)[number]): BatchCall[] => {
    if (question) return withAnswer(calls, toQuestionId(call, question), { type: 'expired' }) ?? calls
    // The question about an approved call has already ended.
    if (!call.approved) announceOutcome(context, call, 'expired', event, emit)
    const result = createExpired(getExpiry(call, context.expiry), call.approved === true)
    return settleCall(calls, call.id, result, now, emit)
  }
  const pauses = late.some((question) => getQuestionTerms(context, question).onExpiry === 'pause')
  return { calls: late.reduce(expire, context.calls), ...(pauses && { pausing: 'approval_expired' }) }
})

export const approve = toActionOn('APPROVE', (context, event, emit) => {
  const { arguments: edited, why, by } = event
  const found = findAskedCall(context, event.callId)
  if (found === undefined) return undefined
  // An approval can arrive before the question is asked, while other calls run.
  const target = { ...found, call: withExpiry(context, found.call, getEventTime(event)) }
  const at = context.calls.indexOf(found.call)
  const terms = getQuestionTerms(context, target)
  const { approvals } = withApproval(terms, event)
  if (!isApproved({ ...terms, approvals }, context.requesters))
    return { calls: withVote(context.calls.with(at, target.call), target, approvals) }
  const others = approvals.length > 1 ? approvals.slice(0, -1) : undefined
  const answer = { type: 'approve' as const, ...omitUndefined({ arguments: edited, why, by, others }) }
  const answered = withAnswer(context.calls, event.callId, answer)
  if (answered) return { calls: answered }
  const { call } = target
  const isRefused = call.hosted && edited !== undefined && edited !== call.arguments
  announceOutcome(context, call, isRefused ? 'rejected' : 'approved', event, emit, event.grant?.id)
  if (isRefused) {
    const result = toResult('rejected', 'Rejected by the user, who wants different arguments.')
    return { calls: settleCall(context.calls, event.callId, result, getEventTime(event), emit) }
  }
  // Records of uncleared content are marked `withheld`.
  const unchecked =
    context.features.callShields && event.withheld ? { unscreenedArguments: true as const } : {}
  const { client, approvals: _approvals, expiresAt, ...open } = call
  // A client starts its call as soon as it is approved.
  const time = expiresAt !== undefined && !client && { expiresAt }
  const openCall = { ...open, ...time, ...((terms.approvers || event.by) && { approvals }) }
  const free = { needs: client ? ('client' as const) : ('nobody' as const), approved: true as const }
  // Edited arguments invalidate earlier questions and policy decisions.
  const { questions: _questions, memo: _memo, ...fresh } = openCall
  const undecided = call.decisions && { undecided: true as const }
  const approved =
    edited === undefined
      ? { ...openCall, ...free }
      : { ...fresh, arguments: edited, edited: true as const, ...unchecked, ...undecided, ...free }
  const given = readNewGrant(context, event, { call: approved, approvals })
  if (given) emit({ type: 'grant_changed', grant: given, change: 'given' })
  return {
    calls: context.calls.with(at, approved),
    ...(given && { grants: addGrant(context, given, getEventTime(event)) }),
  }
})

function announceOutcome(
  { messages, batchAt }: AgentContext,
  { id: callId, name }: BatchCall,
  outcome: ApprovalOutcome,
  event: AgentMachineEvent,
  emit: Emit,
  grant?: string,
): void {
  const now = getEventTime(event)
  // The event that starts a granted call comes from someone else.
  const answer: { by?: Principal; why?: string; withheld?: true } = outcome === 'granted' ? {} : event
  const { by, why, withheld } = answer
  const isReviewed = why !== '' && !(withheld && outcome === 'rejected')
  emit({
    type: 'approval_decided',
    callId,
    name,
    outcome,
    ...omitUndefined({ by, why: isReviewed ? why : undefined, grant }),
    waitedMs: Math.max(0, now - (messages[batchAt]?.createdAt ?? now)),
  })
}

export const reject = toActionOn('REJECT', (context, event, emit) => {
  const { by, why } = event
  const answered = withAnswer(context.calls, event.callId, { type: 'reject', why, ...omitUndefined({ by }) })
  if (answered) return { calls: answered }
  const call = context.calls.find(({ id }) => id === event.callId)
  if (call) announceOutcome(context, call, 'rejected', event, emit)
  const result = toResult('rejected', why === '' ? 'Rejected by the user.' : `${rejectionPrefix}${why}`)
  // The model reads the reason, so shields screen it.
  const { calls } = context
  return { calls: settleCall(calls, event.callId, result, getEventTime(event), emit, event.withheld) }
})

export const acceptOutput = toActionOn('TOOL_OUTPUT', (context, event, emit) => {
  const { callId, isError, media, by } = event
  const content = typeof event.content === 'string' ? event.content : ''
  const answer = {
    type: 'output' as const,
    content,
    ...omitUndefined({ media, isError: isError || undefined, by }),
  }
  const answered = withAnswer(context.calls, callId, answer)
  if (answered) return { calls: answered }
  const result: ToolResult = isError
    ? { ...toResult('error', content), errorKind: 'failed' }
    : { ...toResult('ok', content), ...omitUndefined({ media }) }
  const { calls, features } = context
  return { calls: settleCall(calls, callId, result, getEventTime(event), emit, features.resultShields) }
})

export const takeGrant = toAction((context, event, emit) => {
  const grant = readNewGrant(context, event)
  if (grant === undefined) return undefined
  emit({ type: 'grant_changed', grant, change: 'given' })
  return { grants: changeGrants(context, event) }
})

export const revokeGrant = toAction((context, event, emit) => {
  const revoked = findRevokedGrant(context, event)
  if (revoked === undefined) return undefined
  emit({ type: 'grant_changed', grant: revoked, change: 'revoked' })
  return { grants: changeGrants(context, event) }
})

/** Ends the grant of a call that could not start, so that a person decides. */
export const endGrant = toActionOn('GRANT_ENDED', (context, { callId }) =>
  withoutGrants(context, [callId], { ungranted: true }),
)

/** Withdraws an approval. A call that was already approved waits for approval again. */
export const revokeApproval = toAction((context, event, emit) => {
  const own = findOwnApproval(context, event)
  if (own === undefined) return undefined
  const { call, question } = own
  const calls = withoutApproval(context.calls, own)
  if (!question) announceOutcome(context, call, 'revoked', event, emit)
  if (context.state === 'WAITING_FOR_INPUT')
    for (const request of listRequests({ ...context, calls: calls.filter(({ id }) => id === call.id) }))
      emit(request)
  return { calls }
})
