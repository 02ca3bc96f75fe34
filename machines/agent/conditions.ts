import { recoverEmptyAnswer } from '../../guards/empty-answer.js'
import { repairOutput } from '../../guards/invalid-output.js'
import { mayRetry as mayTryAgain } from '../../guards/retry.js'
import { isAtStepCap as atStepCap } from '../../guards/step-cap.js'
import { recoverTruncation } from '../../guards/truncation.js'
import type { AgentContext } from './context.js'
import { childUsageOf, haltsBatch, isPaused, messageOf, openQuestions, questionOf } from './delegation.js'
import { isInDoubt, isUnderWay, toolsIn } from './in-doubt.js'
import { type AgentMachineEvent, timeOf } from './events.js'
import { kindOf, type ModelActorError } from './response.js'
import { findOpenCall, fingerprintOf, isRunnable, type BatchCall } from './results.js'
import { type InputScreening, listed } from './screening.js'
import { budgetReason, spent } from './totals.js'
import { unscreenedInput } from './unscreened.js'

/** The named guards of the chart. Pure and total: they read context and event, and never throw. */
interface Scope {
  context: AgentContext
  event: AgentMachineEvent
}

// Features: substates that a configuration does not use are bypassed.

export const hasInputShields = ({ context }: Scope): boolean => context.features.inputShields
export const hasCallShields = ({ context }: Scope): boolean => context.features.callShields
/** Memory is asked once for each user message. */
export const hasRetrieval = ({ context }: Scope): boolean =>
  context.features.retrieval && context.retrieved === null
export const fitsContext = ({ context }: Scope): boolean => context.features.fitting
export const hasUserGuards = ({ context }: Scope): boolean => context.features.userGuards
export const isInteractive = ({ context }: Scope): boolean => context.config.interactive

/** Steering is what a user says, too. */
export const hasUnscreenedInput = ({ context }: Scope): boolean => unscreenedInput(context).length > 0

/** One of the shields says `block`, or nothing has been said of a content: shields fail closed. */
export const isBlocked = ({ context, event }: Scope): boolean => {
  const output = 'output' in event ? (event.output as unknown) : null
  if (event.type !== 'xstate.done.actor.inputShields') return isBlock(output)
  const screenings = listed(output) as readonly InputScreening[]
  return (
    screenings.some(isBlock) ||
    unscreenedInput(context).some((_, i) => !screenings.some(({ index }) => index === i))
  )
}

function isBlock(screening: unknown): boolean {
  const { action, content } = (screening ?? {}) as { action?: unknown; content?: unknown }
  return action === 'block' || typeof action !== 'string' || typeof content !== 'string'
}

/** Words of the model, and shields that have to clear them. */
export const isHeld = ({ context, event }: Scope): boolean => {
  if (event.type !== 'xstate.done.actor.model' && event.type !== 'xstate.done.actor.conclusion') return false
  const { text, refusal } = event.output.response
  return context.features.outputShields && (text !== '' || (refusal !== null && refusal !== ''))
}

/** The answer is the last word of a run that was stopped. */
export const isConclusion = ({ context }: Scope): boolean => context.reason !== null

// Limits.

export const isClockRunning = ({ context }: Scope): boolean => context.timeLeft === null

export const isPastDeadline = ({ context, event }: Scope): boolean =>
  context.timeLeft === null && context.deadline !== null && timeOf(event) >= context.deadline

export const isPausing = ({ context }: Scope): boolean => context.pausing

export const isAtStepCap = ({ context }: Scope): boolean =>
  atStepCap(context.steps, context.config.limits.maxSteps)

export const concludesAtStepCap = (scope: Scope): boolean => concludes(scope) && isAtStepCap(scope)

/** A last request is not made with a budget that is spent. */
const concludes = (scope: Scope): boolean =>
  scope.context.config.limits.onLimit === 'conclude' && !isBudgetSpent(scope)

export const isStoppedByStepCap = ({ context }: Scope): boolean => context.reason === 'max_steps'

export const isBudgetSpent = ({ context }: Scope): boolean => budgetReason(context) !== null

/** The budget right after a response: a natural end may be let through, a batch may be finished first. */
export const isOverBudget = (scope: Scope): boolean => {
  const { response, config } = scope.context
  if (!isBudgetSpent(scope)) return false
  if (response === 'calls') return !config.budget.finishBatch
  const natural =
    (response === 'answer' && !isInvalid(scope)) || response === 'refusal' || response === 'filtered'
  return !(natural && config.budget.onOvershoot === 'complete')
}

/** The usual step: a response that asks for calls, and money is left. Nothing else need be known of it. */
export const asksWithinBudget = ({ context, event }: Scope): boolean => {
  if (event.type !== 'xstate.done.actor.model') return false
  const { response } = event.output
  if (kindOf(response) !== 'calls') return false
  return budgetReason({ config: context.config, ...spent(context, response.usage) }) === null
}

// Failed requests.

export const isRefusedByBudget = (scope: Scope): boolean => failureOf(scope)?.code === 'token_budget'

/** A failed attempt can cost tokens, too: no other follows when they were the last. One that is too long has no other. */
export const isSpentByFailure = (scope: Scope): boolean => {
  const failure = failureOf(scope)
  if (failure?.usage == null || failure.kind === 'context_overflow') return false
  return budgetReason({ ...scope.context, ...spent(scope.context, failure.usage) }) !== null
}

/** A summary is a model's answer, too: it can be the one that uses the budget up. */
export const isSpentBySummary = ({ context, event }: Scope): boolean => {
  if (event.type !== 'xstate.done.actor.fitting' || event.output.usage === null) return false
  return budgetReason({ ...context, ...spent(context, event.output.usage) }) !== null
}

export const mayRetry = (scope: Scope): boolean => {
  const failure = failureOf(scope)
  const { attempt, rateLimits, config } = scope.context
  return failure !== null && mayTryAgain({ ...failure, attempt, rateLimits }, config.retry)
}

/** The run was paused between two attempts: what was to be waited for is not over. */
export const isBackingOff = ({ context, event }: Scope): boolean =>
  context.attempt > 1 && timeOf(event) < context.backOffUntil

/** A pause that waits need not wait for a back-off, too. */
export const pausesRetry = (scope: Scope): boolean => isPausing(scope) && mayRetry(scope)

/** An actor's rejection as a failure; anything that is not shaped like one is nobody's business here. */
function failureOf({ event }: Scope): ModelActorError | null {
  if (event.type !== 'xstate.error.actor.model') return null
  const error: unknown = event.error
  return typeof error === 'object' && error !== null && 'kind' in error ? (error as ModelActorError) : null
}

// What the response was.

export const hasCalls = ({ context }: Scope): boolean => context.response === 'calls'
export const isTruncatedCall = ({ context }: Scope): boolean => context.response === 'truncatedCalls'
const isTruncated = ({ context }: Scope): boolean => context.response === 'truncated'

export const mayContinue = (scope: Scope): boolean =>
  (isTruncated(scope) || isTruncatedCall(scope)) &&
  recoverTruncation(scope.context.recoveries, scope.context.config.guardrails.maxTokensRecoveries) ===
    'continue'

export const mayReprompt = (scope: Scope): boolean => emptyAnswer(scope) === 'reprompt'
export const mayAskAgain = (scope: Scope): boolean => emptyAnswer(scope) === 'retry'
export const isEmpty = (scope: Scope): boolean => emptyAnswer(scope) === 'give_up'

/** The answer does not fit the output schema. Of what ends a turn otherwise, a refusal or a cut, none is asked. */
export const isInvalid = ({ context: { response, outputProblem } }: Scope): boolean =>
  outputProblem !== null && (response === 'answer' || response === 'empty')
export const mayRepair = (scope: Scope): boolean =>
  isInvalid(scope) &&
  repairOutput(scope.context.outputRepairs, scope.context.config.completion.maxOutputRepairs) === 'ask_again'

function emptyAnswer({ context }: Scope): ReturnType<typeof recoverEmptyAnswer> {
  if (context.response !== 'empty') return 'accept'
  const { lastBatchFailed, reprompts, emptyRetries } = context
  const facts = { afterFailure: lastBatchFailed, reprompts, retries: emptyRetries }
  return recoverEmptyAnswer(facts, context.config.guardrails.emptyAnswer)
}

// Guards' verdicts.

/** One of the guards built in has just halted the run. */
export const isHalted = ({ context }: Scope): boolean => context.verdict !== null
/** When every call has been refused already, there is nothing to ask about. */
export const consultsOnCalls = (scope: Scope): boolean =>
  hasUserGuards(scope) && scope.context.calls.some((call) => call.result === undefined)

/** One of the user's guards has just halted the run. */
export const userGuardHalts = ({ event }: Scope): boolean =>
  (event.type === 'xstate.done.actor.callGuards' || event.type === 'xstate.done.actor.resultGuards') &&
  event.output.findings.some(({ action }) => action === 'halt')

export const pausesOnHalt = ({ context }: Scope): boolean => context.verdict?.onHalt === 'pause'

/** A pause is concluded when its guard says so, and when that costs neither budget nor step that is not there. */
export const concludesOnHalt = (scope: Scope): boolean =>
  pausesOnHalt(scope)
    ? scope.context.verdict?.lastWords !== undefined && !isBudgetSpent(scope) && !isAtStepCap(scope)
    : concludes(scope)

export const hasSteering = ({ context }: Scope): boolean => context.steering.length > 0

// The batch.

export const hasRunnableCalls = ({ context }: Scope): boolean => context.calls.some(isRunnable)
/** A person has changed the arguments of a call: shields look at them like at the model's own. */
export const hasCallsToScreen = ({ context }: Scope): boolean =>
  context.calls.some((call) => call.unchecked && call.result === undefined)
export const hasResultsToScreen = ({ context }: Scope): boolean =>
  context.calls.some((call) => call.unscreened)
export const hasCallsToApprove = (scope: Scope): boolean => asksFor(scope, 'approval') > 0
export const hasClientCalls = (scope: Scope): boolean => asksFor(scope, 'client') > 0

/** Sub-agents that were paused together with the run. */
export const hasPausedChildren = ({ context }: Scope): boolean => context.calls.some(isPaused)

/** What a sub-agent has used can be what uses the budget up. */
export const isSpentByChild = (scope: Scope): boolean => {
  const usage = childUsageOf(scope.event)
  return (
    usage !== null &&
    isOpenCall(scope) &&
    budgetReason({ ...scope.context, ...spent(scope.context, usage) }) !== null
  )
}

/** A sub-agent that no second try can help: nobody waits for the other calls. */
export const isTerminalDelegation = (scope: Scope): boolean =>
  scope.event.type === 'TOOL_RESULT' && haltsBatch(scope.context, scope.event.result) && isOpenCall(scope)

/** Of what was running when the process died, nothing runs again by itself. */
export const isAllInDoubt = ({ context, event }: Scope): boolean => {
  const underWay = context.calls.filter(isUnderWay)
  return underWay.length > 0 && underWay.every((call) => isInDoubt(context, call, toolsIn(event)))
}

export const isOpenCall = ({ context, event }: Scope): boolean =>
  'callId' in event && findOpenCall(context.calls, event.callId) >= 0

/** The result of the last open call: nobody else has to act on this batch. */
export const isLastOfBatch = (scope: Scope): boolean =>
  !scope.context.features.resultShields &&
  !hasResultsToScreen(scope) &&
  isOnlyOne(scope.context.calls, (call) => call.result === undefined) &&
  isOpenCall(scope)

/** The result of the last call that is running: the batch need not be declared done. */
export const isLastResult = (scope: Scope): boolean =>
  isOnlyOne(scope.context.calls, (call) => call.started === true && call.result === undefined) &&
  isOpenCall(scope)

export const awaitsApproval = (scope: Scope): boolean => isOpenCallThatNeeds(scope, 'approval')
export const awaitsOutput = (scope: Scope): boolean => isOpenCallThatNeeds(scope, 'client')

export const isLastApproval = (scope: Scope): boolean =>
  awaitsApproval(scope) && asksFor(scope, 'approval') === 1
export const isLastOutput = (scope: Scope): boolean => awaitsOutput(scope) && asksFor(scope, 'client') === 1

function isOpenCallThatNeeds({ context, event }: Scope, needs: string): boolean {
  if (!('callId' in event)) return false
  const call = context.calls.find(({ id }) => id === event.callId)
  const question = call ? undefined : questionOf(context.calls, event.callId)?.question
  // Nobody is asked about a call before shields have seen what it asks for.
  const isOpen = call
    ? call.result === undefined && call.needs === needs && !call.unchecked
    : question?.needs === needs
  if (!isOpen) return false
  // Some providers number their calls anew in every step: a late answer must not meet the wrong one.
  const { fingerprint, messageId } = event as { fingerprint?: string; messageId?: string }
  if (messageId !== undefined && messageId !== messageOf(context, question)) return false
  return fingerprint === undefined || fingerprint === (call ? fingerprintOf(call) : question?.fingerprint)
}

/** How many answers of this kind are missing: none, one, or more, which is 2. */
function asksFor({ context }: Scope, needs: string): number {
  let count = 0
  for (let at = context.calls.length - 1; at >= 0 && count < 2; at--) {
    const call = context.calls[at]
    if (call?.result !== undefined) continue
    if (call?.needs === needs) count += 1
    else if (call?.needs === 'child') {
      count += openQuestions(call).filter((question) => question.needs === needs).length
    }
  }
  return Math.min(count, 2)
}

/** From the end, where a batch is unfinished longest: of thousands of calls, a few are looked at for each result. */
function isOnlyOne(calls: readonly BatchCall[], isIt: (call: BatchCall) => boolean): boolean {
  const last = calls.findLastIndex(isIt)
  return last >= 0 && calls.findLastIndex((call, at) => at < last && isIt(call)) < 0
}
