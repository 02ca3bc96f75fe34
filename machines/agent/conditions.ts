import { recoverEmptyAnswer } from '../../guards/unusable-answer.js'
import { canRetry } from '../../guards/retry.js'
import { isAtStepCap as atStepCap } from '../../guards/call-caps.js'
import { findEndingCall, isInDoubt, isUnderWay } from './call-state.js'
import { findBudgetWait, findLaterResume } from './actions/sleep.js'
import { isApproved, isLate, type Question } from './approvals.js'
import { type AgentContext, type AgentMachineEvent, getEventTime } from './context.js'
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
import { listLate } from './due-times.js'
import { type ModelActorError, classifyResponse } from './model-response.js'
import { type BatchCall, findOpenCallIndex, getCallFingerprint, isRunnable } from './batch-calls.js'
import { findNextPlan } from './step-plan.js'
import { countAttempts, isNewRefusal, isRefusedQuestion, readRefusal } from './refusals.js'
import { isBlockVerdict, isInputBlocked, toList } from './screening.js'
import { addToTotals, findBudgetReason, isNearBudget } from './budget-totals.js'
import type { Usage } from './usage.js'
import { listUnclearedInput } from './mask-uncleared.js'

/** The guards of the chart. They are pure functions of context and event and never throw. */
type Condition = (scope: ConditionScope) => boolean

interface ConditionScope {
  context: AgentContext
  event: AgentMachineEvent
}

export const hasInputShields: Condition = ({ context }) => context.features.inputShields
export const hasCallShields: Condition = ({ context }) => context.features.callShields
/** Whether memory must be searched, which happens once per user message. */
export const hasRetrieval: Condition = ({ context }) =>
  context.features.retrieval && context.retrieved === null
export const hasContextFitting: Condition = ({ context }) => context.features.fitting
/** Whether the step needs a plan, which is requested once and used for all attempts at the step. */
export const asksForPlan: Condition = ({ context }) =>
  context.features.prepareStep === true && findNextPlan(context) === null
export const isInteractive: Condition = ({ context }) => context.config.interactive

export const hasUnclearedInput: Condition = ({ context }) => listUnclearedInput(context).length > 0

/**
 * A shield blocks the content, or its screening is missing. Shields fail closed. Carried-over steering is withheld if it
 * is blocked, and the run goes on, because its user message is a different one.
 */
export const isBlocked: Condition = ({ context, event }) => {
  const output = 'output' in event ? (event.output as unknown) : null
  if (event.type !== 'xstate.done.actor.inputShields') return isBlockVerdict(output)
  return listUnclearedInput(context).some(
    ({ data }, i) => data?.['reason'] !== 'undelivered' && isInputBlocked(toList(output), i),
  )
}

export const needsOutputScreening: Condition = ({ context, event }) => {
  if (event.type !== 'xstate.done.actor.model' && event.type !== 'xstate.done.actor.conclusion') return false
  const { text, refusal } = event.output.response
  return context.features.outputShields && (text !== '' || (refusal !== null && refusal !== ''))
}

export const isConclusion: Condition = ({ context }) => context.reason !== null

// Limits.

export const isClockRunning: Condition = ({ context }) => context.timeLeft === null

export const isPastDeadline: Condition = ({ context, event }) =>
  context.timeLeft === null && context.deadline !== null && getEventTime(event) >= context.deadline

export const isPausing: Condition = ({ context }) => context.pausing !== false

export const isAsleep: Condition = ({ context, event }) =>
  context.wakeAt !== null && getEventTime(event) < context.wakeAt

export const isForLater: Condition = ({ event }) => findLaterResume(event) !== null

export const isAtStepCap: Condition = ({ context }) =>
  atStepCap(context.steps, context.config.limits.maxSteps)

export const concludesAtStepCap: Condition = (scope) => canConclude(scope) && isAtStepCap(scope)

export const isOverCallCap: Condition = ({ context }) => context.callCounts?.isOver === true

export const concludesAtCallCap: Condition = (scope) => canConclude(scope) && isOverCallCap(scope)

const canConclude: Condition = (scope) =>
  scope.context.config.limits.onLimit === 'conclude' && !isBudgetSpent(scope)

export const isStoppedByCap: Condition = ({ context: { reason } }) =>
  reason === 'max_steps' || reason === 'max_tool_calls'

export const isBudgetSpent: Condition = ({ context }) => findBudgetReason(context) !== null

/** The response used up the budget, and the settings allow neither its answer nor its batch to finish. */
export const isOverBudget: Condition = (scope) => {
  const { response, config } = scope.context
  if (!isBudgetSpent(scope)) return false
  if (response === 'calls') return !config.budget.finishBatch
  const natural =
    (response === 'answer' && !isInvalid(scope)) || response === 'refusal' || response === 'filtered'
  return !(natural && config.budget.onOvershoot === 'complete')
}

export const asksWithinBudget: Condition = ({ context, event }) => {
  if (event.type !== 'xstate.done.actor.model') return false
  const { response } = event.output
  return classifyResponse(response) === 'calls' && !exceedsBudget(context, response.usage)
}

const exceedsBudget = (context: AgentContext, usage: Usage): boolean =>
  findBudgetReason({ config: context.config, ...addToTotals(context, usage) }) !== null

/** Only the reserve is left, and the settings spend it on a concluding request. */
export const concludesNearBudget: Condition = ({ context }) =>
  context.config.limits.onNearBudget === 'conclude' && isNearBudget(context)

export const isStoppedByBudget: Condition = ({ context: { reason } }) =>
  reason === 'token_budget' || reason === 'cost_limit'

// Failed requests.

export const waitsForBudget: Condition = ({ event }) => findBudgetWait(event) !== null

/** The run's limit or a shared budget refused the model request or memory search, so nothing was sent. */
export const isRefusedByBudget: Condition = ({ event }) => {
  if (event.type !== 'xstate.error.actor.model' && event.type !== 'xstate.error.actor.retrieval') return false
  const { code } = (event.error as Partial<ModelActorError> | null) ?? {}
  return code === 'token_budget' || code === 'shared_budget'
}

/** A failed attempt used up the budget. A request that is too long cannot be retried. */
export const isSpentByFailure: Condition = (scope) => {
  const failure = readModelFailure(scope)
  if (failure?.usage == null || failure.kind === 'context_overflow') return false
  return exceedsBudget(scope.context, failure.usage)
}

export const isSpentBySummary: Condition = ({ context, event }) =>
  event.type === 'xstate.done.actor.fitting' &&
  event.output.usage !== null &&
  exceedsBudget(context, event.output.usage)

export const mayRetry: Condition = (scope) => {
  const failure = readModelFailure(scope)
  const { rateLimits, config } = scope.context
  const attempt = countAttempts(scope.context)
  return failure !== null && canRetry({ ...failure, attempt, rateLimits }, config.retry)
}

/** Each refusal counts once, so the number of attempts is limited. */
export const maySendWithout: Condition = ({ context, event }) => {
  const refusal = readRefusal(event)
  return refusal !== null && isNewRefusal(context.refusals ?? [], refusal) && !isRefusedQuestion(refusal)
}

export const isBackingOff: Condition = ({ context, event }) =>
  context.attempt > 1 && getEventTime(event) < context.backOffUntil

/** A pending pause takes precedence over the back-off. */
export const pausesRetry: Condition = (scope) => isPausing(scope) && mayRetry(scope)

function readModelFailure({ event }: ConditionScope): ModelActorError | null {
  if (event.type !== 'xstate.error.actor.model') return null
  const error: unknown = event.error
  return typeof error === 'object' && error !== null && 'kind' in error ? (error as ModelActorError) : null
}

export const hasCalls: Condition = ({ context }) => context.response === 'calls'
export const isTruncatedCall: Condition = ({ context }) => context.response === 'truncatedCalls'

export const mayContinue: Condition = ({ context: { response, recoveries, config } }) =>
  (response === 'truncated' || response === 'truncatedCalls') &&
  recoveries < config.guardrails.maxTokensRecoveries

export const mayReprompt: Condition = (scope) => decideEmptyAnswer(scope) === 'reprompt'
export const mayRetryEmptyAnswer: Condition = (scope) => decideEmptyAnswer(scope) === 'retry'
export const isEmpty: Condition = (scope) => decideEmptyAnswer(scope) === 'give_up'

/** The answer does not match the output schema. Refusals and truncated answers are not checked. */
export const isInvalid: Condition = ({ context: { response, outputProblem } }) =>
  outputProblem !== null && (response === 'answer' || response === 'empty')
export const mayRepair: Condition = (scope) =>
  isInvalid(scope) && scope.context.outputRepairs < scope.context.config.completion.maxOutputRepairs

function decideEmptyAnswer({ context }: ConditionScope): ReturnType<typeof recoverEmptyAnswer> {
  if (context.response !== 'empty') return 'accept'
  const { lastBatchFailed, reprompts, emptyRetries } = context
  const facts = { afterFailure: lastBatchFailed, reprompts, retries: emptyRetries }
  return recoverEmptyAnswer(facts, context.config.guardrails.emptyAnswer)
}

export const isHalted: Condition = ({ context }) => context.verdict !== null
/** Whether user guards check the calls. The guards are skipped if all calls are refused or only load tools. */
export const consultsOnCalls: Condition = ({ context: { features, calls } }) =>
  features.userGuards && calls.some((call) => call.result === undefined && !call.unloaded)
/** Guards, `stopWhen`, or the output schema for a result that is the answer. Not if all calls only load tools. */
export const consultsOnResults: Condition = ({ context }) => {
  const { userGuards, stopWhen, structuredOutput } = context.features
  const asks = userGuards || stopWhen === true || (structuredOutput && findEndingCall(context) !== undefined)
  return asks && !context.calls.every((call) => call.unloaded)
}

export const userGuardHalts: Condition = ({ event }) =>
  (event.type === 'xstate.done.actor.callGuards' || event.type === 'xstate.done.actor.resultGuards') &&
  event.output.findings.some(({ action }) => action === 'halt')

export const isAnswered: Condition = ({ context, event }) =>
  findEndingCall(context) !== undefined ||
  (event.type === 'xstate.done.actor.resultGuards' && event.output.stops === true)

/** Like `isAnswered`, for an answer that shields must clear first. */
export const hasResultToClear: Condition = (scope) =>
  scope.context.features.outputShields && isAnswered(scope)

export const pausesOnHalt: Condition = ({ context }) => context.verdict?.onHalt === 'pause'

/** The guard asks for a concluding request, and the limits on steps and budget allow it. */
export const concludesOnHalt: Condition = (scope) =>
  pausesOnHalt(scope)
    ? scope.context.verdict?.lastWords !== undefined && !isBudgetSpent(scope) && !isAtStepCap(scope)
    : canConclude(scope)

export const hasSteering: Condition = ({ context }) => context.steering.length > 0

export const hasRunnableCalls: Condition = ({ context, event }) =>
  context.calls.some((call) => isRunnable(call) && !isLate(call, getEventTime(event))) ||
  hasGrantedCalls(context, getEventTime(event))
export const startsCalls: Condition = ({ context, event }) => {
  const grant = readNewGrant(context, event)
  return grant !== undefined && hasGrantedCalls({ ...context, grants: [grant] }, getEventTime(event))
}
export const revokesApproval: Condition = ({ context, event }) =>
  findOwnApproval(context, event) !== undefined
export const revokesGrant: Condition = ({ context, event }) => findRevokedGrant(context, event) !== undefined
export const hasLateCalls: Condition = ({ context, event }) =>
  listLate(context, getEventTime(event)).length > 0
export const cancelsOnExpiry: Condition = ({ context, event }) =>
  listLate(context, getEventTime(event)).some(
    (question) => getQuestionTerms(context, question).onExpiry === 'cancel',
  )
/** Edited arguments are screened and decided on like the model's own. */
export const hasCallsToScreen: Condition = ({ context }) =>
  context.calls.some((call) => (call.unscreenedArguments || call.undecided) && call.result === undefined)
export const hasResultsToScreen: Condition = ({ context }) =>
  context.calls.some((call) => call.unscreenedResult)
export const hasCallsToApprove: Condition = (scope) => countMissingAnswers(scope, 'approval') > 0
export const hasClientCalls: Condition = (scope) => countMissingAnswers(scope, 'client') > 0

export const hasPausedChildren: Condition = ({ context }) => context.calls.some(isChildPaused)

export const isSpentByChild: Condition = (scope) => {
  const usage = findChildUsage(scope.event)
  return usage !== null && isOpenCall(scope) && exceedsBudget(scope.context, usage)
}

/** A sub-agent failed permanently, so the batch ends without its other calls. */
export const isTerminalDelegation: Condition = (scope) =>
  scope.event.type === 'TOOL_RESULT' && haltsBatch(scope.context, scope.event.result) && isOpenCall(scope)

export const isAllInDoubt: Condition = ({ context, event }) => {
  const underWay = context.calls.filter(isUnderWay)
  return underWay.length > 0 && underWay.every((call) => isInDoubt(context, call, event))
}

export const isOpenCall: Condition = ({ context, event }) =>
  'callId' in event && findOpenCallIndex(context.calls, event.callId) >= 0

export const isLastOfBatch: Condition = (scope) =>
  !scope.context.features.resultShields &&
  !hasResultsToScreen(scope) &&
  hasExactlyOne(scope.context.calls, (call) => call.result === undefined) &&
  isOpenCall(scope)

export const isLastResult: Condition = (scope) =>
  hasExactlyOne(scope.context.calls, (call) => call.started === true && call.result === undefined) &&
  isOpenCall(scope)

export const awaitsApproval: Condition = (scope) => findAwaitedVote(scope) !== undefined
export const awaitsOutput: Condition = (scope) => findAwaitedCall(scope, 'client') !== undefined

/** The last open question, a call that can expire, or a grant. Of several approvers, one may not be enough. */
export const isLastApproval: Condition = (scope) => {
  const terms = findAwaitedVote(scope)
  if (terms === undefined) return false
  const { context, event } = scope
  if (event.type === 'APPROVE') {
    if (!isApproved(withApproval(terms, event), context.requesters)) return false
    if (terms.expiresAt !== undefined || event.grant !== undefined) return true
  }
  return countMissingAnswers(scope, 'approval') === 1
}

export const isLastOutput: Condition = (scope) =>
  awaitsOutput(scope) && countMissingAnswers(scope, 'client') === 1

function findAwaitedVote(scope: ConditionScope): Question | undefined {
  const { context, event } = scope
  const target = findAwaitedCall(scope, 'approval')
  const terms = target && getQuestionTerms(context, target)
  return terms && findVoteFault(terms, event, context) === null ? terms : undefined
}

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
