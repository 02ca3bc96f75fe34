import { recoverEmptyAnswer, recoverTruncation, repairOutput } from '../../guards/unusable-answer.js'
import { canRetry } from '../../guards/retry.js'
import { isAtStepCap as atStepCap } from '../../guards/call-caps.js'
import { findEndingCall, isInDoubt, isUnderWay } from './call-state.js'
import { findBudgetWait, findLaterResume } from './actions/sleep.js'
import { isApproved, isLate, type Question } from './approvals.js'
import type { AgentContext } from './context.js'
import { findRevokedGrant, hasGrantedCalls, readNewGrant } from './grants.js'
import {
  findAskedCall,
  findOwnApproval,
  findVoteFault,
  getQuestionTerms,
  withApproval,
  type AskedCall,
  findChildUsage,
  getAskingMessageId,
  haltsBatch,
  isAnsweredBy,
  isChildPaused,
  listOpenQuestions,
} from './questions.js'
import { listLate } from './expiry.js'
import { type AgentMachineEvent, getEventTime } from './machine-events.js'
import { type ModelActorError, classifyResponse } from './model-response.js'
import { type BatchCall, findOpenCallIndex, getCallFingerprint, isRunnable } from './batch-calls.js'
import { findNextPlan } from './step-plan.js'
import { countAttempts, isNewRefusal, isRefusedQuestion, readRefusal } from './refusals.js'
import { type InputScreening, toList } from './screening.js'
import { addToTotals, findBudgetReason, isNearBudget } from './budget-totals.js'
import type { Usage } from './usage.js'
import { listUnclearedInput } from './mask-uncleared.js'

/** The guards of the chart. They are pure functions of context and event and never throw. */
interface ConditionScope {
  context: AgentContext
  event: AgentMachineEvent
}

export const hasInputShields = ({ context }: ConditionScope): boolean => context.features.inputShields
export const hasCallShields = ({ context }: ConditionScope): boolean => context.features.callShields
/** Whether memory must be searched, which happens once per user message. */
export const hasRetrieval = ({ context }: ConditionScope): boolean =>
  context.features.retrieval && context.retrieved === null
export const hasContextFitting = ({ context }: ConditionScope): boolean => context.features.fitting
/** Whether the step needs a plan, which is requested once and used for all attempts at the step. */
export const asksForPlan = ({ context }: ConditionScope): boolean =>
  context.features.prepareStep === true && findNextPlan(context) === null
export const isInteractive = ({ context }: ConditionScope): boolean => context.config.interactive

export const hasUnclearedInput = ({ context }: ConditionScope): boolean =>
  listUnclearedInput(context).length > 0

/** A shield blocks the content, or its screening is missing. Shields fail closed. */
export const isBlocked = ({ context, event }: ConditionScope): boolean => {
  const output = 'output' in event ? (event.output as unknown) : null
  if (event.type !== 'xstate.done.actor.inputShields') return isBlockVerdict(output)
  const screenings = toList(output) as readonly InputScreening[]
  return (
    screenings.some(isBlockVerdict) ||
    listUnclearedInput(context).some((_, i) => !screenings.some(({ index }) => index === i))
  )
}

function isBlockVerdict(screening: unknown): boolean {
  const { action, content } = (screening ?? {}) as { action?: unknown; content?: unknown }
  return action === 'block' || typeof action !== 'string' || typeof content !== 'string'
}

export const needsOutputScreening = ({ context, event }: ConditionScope): boolean => {
  if (event.type !== 'xstate.done.actor.model' && event.type !== 'xstate.done.actor.conclusion') return false
  const { text, refusal } = event.output.response
  return context.features.outputShields && (text !== '' || (refusal !== null && refusal !== ''))
}

export const isConclusion = ({ context }: ConditionScope): boolean => context.reason !== null

// Limits.

export const isClockRunning = ({ context }: ConditionScope): boolean => context.timeLeft === null

export const isPastDeadline = ({ context, event }: ConditionScope): boolean =>
  context.timeLeft === null && context.deadline !== null && getEventTime(event) >= context.deadline

export const isPausing = ({ context }: ConditionScope): boolean => context.pausing !== false

export const isAsleep = ({ context, event }: ConditionScope): boolean =>
  context.wakeAt !== null && getEventTime(event) < context.wakeAt

export const isForLater = ({ event }: ConditionScope): boolean => findLaterResume(event) !== null

export const isAtStepCap = ({ context }: ConditionScope): boolean =>
  atStepCap(context.steps, context.config.limits.maxSteps)

export const concludesAtStepCap = (scope: ConditionScope): boolean => canConclude(scope) && isAtStepCap(scope)

export const isOverCallCap = ({ context }: ConditionScope): boolean => context.callCounts?.isOver === true

export const concludesAtCallCap = (scope: ConditionScope): boolean =>
  canConclude(scope) && isOverCallCap(scope)

const canConclude = (scope: ConditionScope): boolean =>
  scope.context.config.limits.onLimit === 'conclude' && !isBudgetSpent(scope)

export const isStoppedByCap = ({ context: { reason } }: ConditionScope): boolean =>
  reason === 'max_steps' || reason === 'max_tool_calls'

export const isBudgetSpent = ({ context }: ConditionScope): boolean => findBudgetReason(context) !== null

/** The response used up the budget, and the settings allow neither its answer nor its batch to finish. */
export const isOverBudget = (scope: ConditionScope): boolean => {
  const { response, config } = scope.context
  if (!isBudgetSpent(scope)) return false
  if (response === 'calls') return !config.budget.finishBatch
  const natural =
    (response === 'answer' && !isInvalid(scope)) || response === 'refusal' || response === 'filtered'
  return !(natural && config.budget.onOvershoot === 'complete')
}

export const asksWithinBudget = ({ context, event }: ConditionScope): boolean => {
  if (event.type !== 'xstate.done.actor.model') return false
  const { response } = event.output
  return classifyResponse(response) === 'calls' && !exceedsBudget(context, response.usage)
}

/** Whether this further usage exceeds the budget. */
const exceedsBudget = (context: AgentContext, usage: Usage): boolean =>
  findBudgetReason({ config: context.config, ...addToTotals(context, usage) }) !== null

/** Only the reserve is left, and the settings spend it on a concluding request. */
export const concludesNearBudget = ({ context }: ConditionScope): boolean =>
  context.config.limits.onNearBudget === 'conclude' && isNearBudget(context)

export const isStoppedByBudget = ({ context: { reason } }: ConditionScope): boolean =>
  reason === 'token_budget' || reason === 'cost_limit'

// Failed requests.

export const waitsForBudget = ({ event }: ConditionScope): boolean => findBudgetWait(event) !== null

/** The run's limit or a shared budget refused the model request or memory search, so nothing was sent. */
export const isRefusedByBudget = ({ event }: ConditionScope): boolean => {
  if (event.type !== 'xstate.error.actor.model' && event.type !== 'xstate.error.actor.retrieval') return false
  const { code } = (event.error as Partial<ModelActorError> | null) ?? {}
  return code === 'token_budget' || code === 'shared_budget'
}

/** A failed attempt used up the budget. A request that is too long cannot be retried. */
export const isSpentByFailure = (scope: ConditionScope): boolean => {
  const failure = readModelFailure(scope)
  if (failure?.usage == null || failure.kind === 'context_overflow') return false
  return exceedsBudget(scope.context, failure.usage)
}

export const isSpentBySummary = ({ context, event }: ConditionScope): boolean =>
  event.type === 'xstate.done.actor.fitting' &&
  event.output.usage !== null &&
  exceedsBudget(context, event.output.usage)

export const mayRetry = (scope: ConditionScope): boolean => {
  const failure = readModelFailure(scope)
  const { rateLimits, config } = scope.context
  const attempt = countAttempts(scope.context)
  return failure !== null && canRetry({ ...failure, attempt, rateLimits }, config.retry)
}

/** Each refusal counts once, so the number of attempts is limited. */
export const maySendWithout = ({ context, event }: ConditionScope): boolean => {
  const refusal = readRefusal(event)
  return refusal !== null && isNewRefusal(context.refusals ?? [], refusal) && !isRefusedQuestion(refusal)
}

export const isBackingOff = ({ context, event }: ConditionScope): boolean =>
  context.attempt > 1 && getEventTime(event) < context.backOffUntil

/** A pending pause takes precedence over the back-off. */
export const pausesRetry = (scope: ConditionScope): boolean => isPausing(scope) && mayRetry(scope)

function readModelFailure({ event }: ConditionScope): ModelActorError | null {
  if (event.type !== 'xstate.error.actor.model') return null
  const error: unknown = event.error
  return typeof error === 'object' && error !== null && 'kind' in error ? (error as ModelActorError) : null
}

export const hasCalls = ({ context }: ConditionScope): boolean => context.response === 'calls'
export const isTruncatedCall = ({ context }: ConditionScope): boolean => context.response === 'truncatedCalls'
const isTruncated = ({ context }: ConditionScope): boolean => context.response === 'truncated'

export const mayContinue = (scope: ConditionScope): boolean =>
  (isTruncated(scope) || isTruncatedCall(scope)) &&
  recoverTruncation(scope.context.recoveries, scope.context.config.guardrails.maxTokensRecoveries) ===
    'continue'

export const mayReprompt = (scope: ConditionScope): boolean => decideEmptyAnswer(scope) === 'reprompt'
export const mayRetryEmptyAnswer = (scope: ConditionScope): boolean => decideEmptyAnswer(scope) === 'retry'
export const isEmpty = (scope: ConditionScope): boolean => decideEmptyAnswer(scope) === 'give_up'

/** The answer does not match the output schema. Refusals and truncated answers are not checked. */
export const isInvalid = ({ context: { response, outputProblem } }: ConditionScope): boolean =>
  outputProblem !== null && (response === 'answer' || response === 'empty')
export const mayRepair = (scope: ConditionScope): boolean =>
  isInvalid(scope) &&
  repairOutput(scope.context.outputRepairs, scope.context.config.completion.maxOutputRepairs) === 'ask_again'

function decideEmptyAnswer({ context }: ConditionScope): ReturnType<typeof recoverEmptyAnswer> {
  if (context.response !== 'empty') return 'accept'
  const { lastBatchFailed, reprompts, emptyRetries } = context
  const facts = { afterFailure: lastBatchFailed, reprompts, retries: emptyRetries }
  return recoverEmptyAnswer(facts, context.config.guardrails.emptyAnswer)
}

export const isHalted = ({ context }: ConditionScope): boolean => context.verdict !== null
/** Whether user guards check the calls. The guards are skipped if all calls are refused or only load tools. */
export const consultsOnCalls = ({ context: { features, calls } }: ConditionScope): boolean =>
  features.userGuards && calls.some((call) => call.result === undefined && !call.unloaded)
/** Guards, `stopWhen`, or the output schema for a result that is the answer. Not if all calls only load tools. */
export const consultsOnResults = ({ context }: ConditionScope): boolean => {
  const { userGuards, stopWhen, structuredOutput } = context.features
  const asks = userGuards || stopWhen === true || (structuredOutput && findEndingCall(context) !== undefined)
  return asks && !context.calls.every((call) => call.unloaded)
}

export const userGuardHalts = ({ event }: ConditionScope): boolean =>
  (event.type === 'xstate.done.actor.callGuards' || event.type === 'xstate.done.actor.resultGuards') &&
  event.output.findings.some(({ action }) => action === 'halt')

export const isAnswered = ({ context, event }: ConditionScope): boolean =>
  findEndingCall(context) !== undefined ||
  (event.type === 'xstate.done.actor.resultGuards' && event.output.stops === true)

/** Like `isAnswered`, for an answer that shields must clear first. */
export const hasResultToClear = (scope: ConditionScope): boolean =>
  scope.context.features.outputShields && isAnswered(scope)

export const pausesOnHalt = ({ context }: ConditionScope): boolean => context.verdict?.onHalt === 'pause'

/** The guard asks for a concluding request, and the limits on steps and budget allow it. */
export const concludesOnHalt = (scope: ConditionScope): boolean =>
  pausesOnHalt(scope)
    ? scope.context.verdict?.lastWords !== undefined && !isBudgetSpent(scope) && !isAtStepCap(scope)
    : canConclude(scope)

export const hasSteering = ({ context }: ConditionScope): boolean => context.steering.length > 0

export const hasRunnableCalls = ({ context, event }: ConditionScope): boolean =>
  context.calls.some((call) => isRunnable(call) && !isLate(call, getEventTime(event))) ||
  hasGrantedCalls(context, getEventTime(event))
export const startsCalls = ({ context, event }: ConditionScope): boolean => {
  const grant = readNewGrant(context, event)
  return grant !== undefined && hasGrantedCalls({ ...context, grants: [grant] }, getEventTime(event))
}
export const revokesApproval = ({ context, event }: ConditionScope): boolean =>
  findOwnApproval(context, event) !== undefined
export const revokesGrant = ({ context, event }: ConditionScope): boolean =>
  findRevokedGrant(context, event) !== undefined
export const hasLateCalls = ({ context, event }: ConditionScope): boolean =>
  listLate(context, getEventTime(event)).length > 0
export const cancelsOnExpiry = ({ context, event }: ConditionScope): boolean =>
  listLate(context, getEventTime(event)).some(
    (question) => getQuestionTerms(context, question).onExpiry === 'cancel',
  )
/** Edited arguments are screened and decided on like the model's own. */
export const hasCallsToScreen = ({ context }: ConditionScope): boolean =>
  context.calls.some((call) => (call.unscreenedArguments || call.undecided) && call.result === undefined)
export const hasResultsToScreen = ({ context }: ConditionScope): boolean =>
  context.calls.some((call) => call.unscreenedResult)
export const hasCallsToApprove = (scope: ConditionScope): boolean =>
  countMissingAnswers(scope, 'approval') > 0
export const hasClientCalls = (scope: ConditionScope): boolean => countMissingAnswers(scope, 'client') > 0

export const hasPausedChildren = ({ context }: ConditionScope): boolean => context.calls.some(isChildPaused)

export const isSpentByChild = (scope: ConditionScope): boolean => {
  const usage = findChildUsage(scope.event)
  return usage !== null && isOpenCall(scope) && exceedsBudget(scope.context, usage)
}

/** A sub-agent failed permanently, so the batch ends without its other calls. */
export const isTerminalDelegation = (scope: ConditionScope): boolean =>
  scope.event.type === 'TOOL_RESULT' && haltsBatch(scope.context, scope.event.result) && isOpenCall(scope)

export const isAllInDoubt = ({ context, event }: ConditionScope): boolean => {
  const underWay = context.calls.filter(isUnderWay)
  return underWay.length > 0 && underWay.every((call) => isInDoubt(context, call, event))
}

export const isOpenCall = ({ context, event }: ConditionScope): boolean =>
  'callId' in event && findOpenCallIndex(context.calls, event.callId) >= 0

export const isLastOfBatch = (scope: ConditionScope): boolean =>
  !scope.context.features.resultShields &&
  !hasResultsToScreen(scope) &&
  hasExactlyOne(scope.context.calls, (call) => call.result === undefined) &&
  isOpenCall(scope)

export const isLastResult = (scope: ConditionScope): boolean =>
  hasExactlyOne(scope.context.calls, (call) => call.started === true && call.result === undefined) &&
  isOpenCall(scope)

export const awaitsApproval = (scope: ConditionScope): boolean => findAwaitedVote(scope) !== undefined
export const awaitsOutput = (scope: ConditionScope): boolean => findAwaitedCall(scope, 'client') !== undefined

/**
 * The answer settles the last open question, approves a call that can expire, or gives a grant. If several approvals
 * are required, one answer may not be enough.
 */
export const isLastApproval = (scope: ConditionScope): boolean => {
  const terms = findAwaitedVote(scope)
  if (terms === undefined) return false
  const { context, event } = scope
  if (event.type === 'APPROVE') {
    if (!isApproved(withApproval(terms, event), context.requesters)) return false
    if (terms.expiresAt !== undefined || event.grant !== undefined) return true
  }
  return countMissingAnswers(scope, 'approval') === 1
}

export const isLastOutput = (scope: ConditionScope): boolean =>
  awaitsOutput(scope) && countMissingAnswers(scope, 'client') === 1

function findAwaitedVote(scope: ConditionScope): Question | undefined {
  const { context, event } = scope
  const target = findAwaitedCall(scope, 'approval')
  const terms = target && getQuestionTerms(context, target)
  return terms && findVoteFault(terms, event, context) === null ? terms : undefined
}

/** The open call that an answer refers to. */
function findAwaitedCall({ context, event }: ConditionScope, needs: string): AskedCall | undefined {
  const target = 'callId' in event ? findAskedCall(context, event.callId) : undefined
  if (target === undefined) return undefined
  const { call, question } = target
  const isOpen = question
    ? isAnsweredBy(question.needs, needs)
    : call.result === undefined && call.needs === needs && !call.unscreenedArguments && !call.undecided
  if (!isOpen) return undefined
  // Some providers reuse call ids in each step, and a late answer must not match the wrong call.
  const { fingerprint, messageId } = event as { fingerprint?: string; messageId?: string }
  if (messageId !== undefined && messageId !== getAskingMessageId(context, question)) return undefined
  if (fingerprint === undefined) return target
  return fingerprint === (question ? question.fingerprint : getCallFingerprint(call)) ? target : undefined
}

function countMissingAnswers({ context }: ConditionScope, needs: string): number {
  let count = 0
  for (let at = context.calls.length - 1; at >= 0 && count < 2; at--) {
    const call = context.calls[at]
    if (call?.needs === needs && call.result === undefined) count += 1
    else if (call) count += listOpenQuestions(call).filter((one) => isAnsweredBy(one.needs, needs)).length
  }
  return Math.min(count, 2)
}

/** Later calls tend to finish later, so each of thousands of results inspects only a few calls. */
function hasExactlyOne(calls: readonly BatchCall[], isIt: (call: BatchCall) => boolean): boolean {
  const last = calls.findLastIndex(isIt)
  return last >= 0 && calls.findLastIndex((call, at) => at < last && isIt(call)) < 0
}
