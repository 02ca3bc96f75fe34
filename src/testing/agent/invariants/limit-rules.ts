import { formatCount } from '../../../core/format/format-words.js'
import { isChildPaused } from '../../../../machines/agent/questions.js'
import type { Reason } from '../../../../machines/agent/run-result.js'
import { isNewRefusal, isRefusedQuestion } from '../../../../machines/agent/refusals.js'
import { findNextPlan } from '../../../../machines/agent/step-plan.js'
import { listUnclearedInput } from '../../../../machines/agent/mask-uncleared.js'
import { findBudgetReason, findNearReason, isNearBudget } from '../../../../machines/agent/budget-totals.js'
import { type AgentInvariant, createRule, hasBegunStep, hasStarted, listAnnounced } from './invariant-rule.js'
import type { AgentContext } from '../../../../machines/agent/context.js'
import type { AgentMachineEvent } from '../../../../machines/agent/machine-events.js'
import type { BatchCall } from '../../../../machines/agent/batch-calls.js'

const capReasons: ReadonlySet<Reason | undefined> = new Set<Reason>([
  'max_tool_calls',
  'max_tool_calls_per_response',
  'max_calls',
])

export const limitRules: readonly AgentInvariant[] = [
  createRule('steps exceed maxSteps by at most one, for the final answer', ({ after }) => {
    const { maxSteps, onLimit } = after.config.limits
    const most = (maxSteps ?? Infinity) + (onLimit === 'conclude' ? 1 : 0)
    return after.steps > most && `${after.steps} steps`
  }),
  createRule('executed calls never exceed the tool-call caps', ({ event, after }) => {
    const { maxToolCalls, maxToolCallsPerResponse } = after.config.limits
    const { calls = 0, byTool = {} } = after.callCounts ?? {}
    if (calls > (maxToolCalls ?? Infinity)) return `${calls} calls`
    const late = Object.entries(byTool).find(([name, n]) => n > (after.tools[name]?.maxCalls ?? Infinity))
    if (late) return `${late[1]} calls to ${late[0]}`
    const admitted = after.calls.filter(({ result }) => !capReasons.has(result?.refusedBy))
    const isNew = event.type === 'xstate.done.actor.model' && after.calls.length > 0
    return (
      isNew &&
      admitted.length > (maxToolCallsPerResponse ?? Infinity) &&
      `${formatCount(admitted.length, 'call was', 'calls were')} admitted from one response`
    )
  }),
  createRule('a call refused by a cap never starts', ({ after }) => {
    const wrong = after.calls.find(({ result, started }) => capReasons.has(result?.refusedBy) && started)
    return wrong && `'${wrong.id}' was started`
  }),
  createRule('no request exceeds the step limit or the budget', (change) => {
    const { after, state } = change
    if (!hasStarted(change, 'requestModel')) return null
    const reason = findBudgetReason(after)
    if (reason !== null) return `${reason} is exhausted`
    return (
      state === 'RUNNING.asking.requesting' &&
      after.steps >= (after.config.limits.maxSteps ?? Infinity) &&
      'no step is left'
    )
  }),
  createRule('the budget reserve is used only for the final answer', (change) => {
    const { after, state, event } = change
    if (state !== 'RUNNING.asking.concluding' || !hasStarted(change, 'requestModel')) return null
    const isOfBudget = after.reason === 'token_budget' || after.reason === 'cost_limit'
    if (!isOfBudget) return null
    if (after.config.limits.onNearBudget !== 'conclude') return `by ${event.type}`
    const near = findNearReason(after)
    return after.reason !== near && `the reason is ${after.reason}, but should be ${near}`
  }),
  createRule('the final answer near a budget ends the run', ({ before, state, event }) => {
    const isOfBudget = before?.reason === 'token_budget' || before?.reason === 'cost_limit'
    if (!isOfBudget || before.state !== 'RUNNING' || !event.type.startsWith('xstate.done.')) return null
    return (
      !/^(BUDGET_EXCEEDED|BLOCKED|RUNNING\.asking\.screeningOutput)$/.test(state) &&
      `the event led to ${state}`
    )
  }),
  createRule('no step starts after the deadline or a pause request', (change) => {
    const { after, now, event } = change
    if (!hasBegunStep(change)) return null
    if (after.pausing && event.type !== 'PAUSE') return 'a pause was requested'
    return after.deadline !== null && now >= after.deadline && 'the deadline has passed'
  }),
  createRule(
    'the safe point checks the deadline, the pause, the step limit and the budget, in this order',
    (change) => {
      const { before, after, now, state, event } = change
      const way = change.transitions.findLast((id) => id.startsWith('RUNNING.preparing.checkingLimits: '))
      if (way === undefined) return null
      const isForgotten = /^(REPLY|RESUME)$/.test(event.type) || before?.state === 'PAUSED'
      const expected =
        after.deadline !== null && now >= after.deadline
          ? /^TIMED_OUT$/
          : (before?.pausing || after.reason === 'approval_expired') && !isForgotten
            ? /^PAUSED$/
            : after.steps >= (after.config.limits.maxSteps ?? Infinity)
              ? /^(MAX_STEPS|RUNNING\.asking\.concluding)$/
              : after.callCounts?.isOver
                ? /^(MAX_STEPS|RUNNING\.asking\.concluding)$/
                : findBudgetReason(after) !== null
                  ? /^BUDGET_EXCEEDED$/
                  : after.wakeAt !== null && now < after.wakeAt
                    ? /^PAUSED$/
                    : listUnclearedInput(after).length > 0
                      ? /^RUNNING\.preparing\.screeningInput$/
                      : after.config.limits.onNearBudget === 'conclude' && isNearBudget(after)
                        ? /^RUNNING\.asking\.concluding$/
                        : after.features.prepareStep && findNextPlan(after) === null
                          ? /^RUNNING\.preparing\.planningStep$/
                          : after.attempt > 1 && now < after.backOffUntil
                            ? /^RUNNING\.(asking\.backingOff|preparing\.fittingContext)$/
                            : /^RUNNING\.(asking\.requesting|preparing\.fittingContext)$/
      return !expected.test(state) && `the event led to ${state}`
    },
  ),
  createRule(
    'transient failures are retried while attempts and budget remain',
    ({ event, before, after, state }) => {
      if (
        event.type !== 'xstate.error.actor.model' ||
        before === undefined ||
        findBudgetReason(after) !== null
      )
        return null
      const { maxAttempts, rateLimitAttempts } = after.config.retry
      const { kind } = event.error
      const isLeft =
        kind === 'rate_limit'
          ? before.rateLimits + 1 < rateLimitAttempts
          : (kind === 'transient' || kind === 'incomplete') &&
            before.attempt - before.rateLimits - (before.resends ?? 0) < maxAttempts
      // A pending pause takes precedence over the back-off. The resumed run retries.
      const next = before.pausing ? 'PAUSED' : 'RUNNING.asking.backingOff'
      // The run waits for a shared budget, so there was no attempt.
      if (event.error.wakeAt !== undefined) return null
      return isLeft !== (state === next) && `the event led to ${state}`
    },
  ),
  createRule(
    'content that a provider rejects is omitted once, but the question itself is never omitted',
    (change) => {
      const { event, before, after, state } = change
      const isOfRequest =
        event.type === 'xstate.error.actor.model' || event.type === 'xstate.error.actor.conclusion'
      if (!isOfRequest || before === undefined) return null
      const { refusal } = event.error
      const isRepeated = refusal !== undefined && !isNewRefusal(before.refusals ?? [], refusal)
      const isOpen = refusal !== undefined && !isRepeated && !isRefusedQuestion(refusal)
      const mayResend = isOpen && findBudgetReason(after) === null
      const place = event.type === 'xstate.error.actor.model' ? 'requesting' : 'concluding'
      const isSent = state === `RUNNING.asking.${place}` && hasStarted(change, 'requestModel')
      if (mayResend !== isSent) return `the event led to ${state}`
      if (mayResend && after.attempt !== before.attempt + 1) return 'the attempt is not counted'
      const warnings = listAnnounced(change, 'warning').filter(({ code }) => code === 'content_refused')
      if (warnings.length !== (mayResend ? 1 : 0)) return formatCount(warnings.length, 'warning')
      return (
        refusal !== undefined &&
        (after.refusals ?? []).every((one) => one !== refusal) &&
        !isRepeated &&
        'the rejected content is forgotten'
      )
    },
  ),
  createRule(
    'a truncated answer is continued as long as recovery attempts remain',
    ({ event, before, after }) => {
      const isCut = after.response === 'truncated' || after.response === 'truncatedCalls'
      if (event.type !== 'xstate.done.actor.model' || !before || !isCut || findBudgetReason(after) !== null)
        return null
      const isLeft = before.recoveries < after.config.guardrails.maxTokensRecoveries
      return isLeft !== after.recoveries > before.recoveries && `${after.recoveries} recoveries`
    },
  ),
  createRule('an invalid answer is requested again while repairs remain', (change) => {
    const { event, before, after, state } = change
    if (event.type !== 'xstate.done.actor.model' || !before || !event.output.outputProblem) return null
    // An answer pending review is judged after its screening.
    const problem = after.pendingAnswer ? after.pendingAnswer.outputProblem : after.outputProblem
    if (problem !== event.output.outputProblem) return 'the problem is missing from the context'
    if (after.pendingAnswer) return null
    if (findBudgetReason(after) !== null) return null
    const isLeft = before.outputRepairs < after.config.completion.maxOutputRepairs
    if (isLeft !== after.outputRepairs > before.outputRepairs) return `${after.outputRepairs} repairs`
    return !isLeft && after.reason !== 'invalid_output' && `the event led to ${state} (${after.reason})`
  }),
  createRule('a response over budget is the last unless the configuration allows more', (change) => {
    const { after, state, event } = change
    if (event.type !== 'xstate.done.actor.model' || findBudgetReason(after) === null) return null
    const { finishBatch, onOvershoot } = after.config.budget
    if (after.response === 'calls' && finishBatch) return null
    const isEnd = ['answer', 'refusal', 'filtered'].includes(after.response ?? '')
    if (isEnd && onOvershoot === 'complete') return null
    // Shields screen the answer first.
    if (after.pendingAnswer) return state !== 'RUNNING.asking.screeningOutput' && `the event led to ${state}`
    return state !== 'BUDGET_EXCEEDED' && `the event led to ${state}`
  }),
  createRule('a run ends when a sub-agent has used up its budget', ({ event, after, state, transitions }) => {
    const isSpent =
      event.type === 'CHILD_USAGE' || (event.type === 'TOOL_RESULT' && event.usage !== undefined)
    if (!isSpent || transitions.length === 0 || findBudgetReason(after) === null) return null
    return (
      state !== 'BUDGET_EXCEEDED' && after.reason !== 'terminal_delegation' && `the event led to ${state}`
    )
  }),
  createRule('attempts, recoveries and re-prompts stay within their limits', ({ after }) => {
    const { retry, guardrails } = after.config
    const { attempt, rateLimits, resends = 0, recoveries, reprompts, emptyRetries, outputRepairs } = after
    if (attempt - rateLimits - resends > retry.maxAttempts || rateLimits > retry.rateLimitAttempts - 1)
      return `attempt ${attempt}, ${rateLimits} of them after a rate limit`
    if (recoveries > guardrails.maxTokensRecoveries) return `${recoveries} recoveries`
    if (outputRepairs > after.config.completion.maxOutputRepairs) return `${outputRepairs} repairs`
    const { emptyAnswer } = guardrails
    return (
      (reprompts > (emptyAnswer?.reprompts ?? 0) || emptyRetries > (emptyAnswer?.retries ?? 0)) &&
      `${reprompts} re-prompts, ${emptyRetries} retries of an empty answer`
    )
  }),
  createRule('a retry is announced, counted and delayed by the announced time', (change) => {
    const { before, after, event, now } = change
    const retries = listAnnounced(change, 'retry')
    const isRetry =
      event.type === 'xstate.error.actor.model' &&
      event.error.wakeAt === undefined &&
      ['RUNNING.asking.backingOff', 'PAUSED'].includes(change.state)
    if (retries.length !== (isRetry ? 1 : 0)) return `${retries.length} retries were announced`
    if (!isRetry) return null
    const limited = event.error.kind === 'rate_limit' ? 1 : 0
    if (after.attempt !== (before?.attempt ?? 0) + 1) return 'the attempt is not counted'
    if (after.rateLimits !== (before?.rateLimits ?? 0) + limited)
      return 'rate limit errors are not counted separately'
    const delayMs = retries[0]?.delayMs ?? 0
    return (
      (delayMs <= 0 || after.backOffUntil !== now + delayMs) &&
      `the retry is delayed until ${after.backOffUntil}`
    )
  }),
  createRule('an accepted response resets the attempts', ({ event, after }) => {
    return (
      event.type === 'xstate.done.actor.model' &&
      after.attempt + after.rateLimits !== 1 &&
      'the attempts were not reset'
    )
  }),
  createRule('the deadline ends the run, but only while the clock runs', ({ event, before, state }) => {
    if (event.type !== 'DEADLINE' || before === undefined) return null
    return (state === 'TIMED_OUT') !== (before.timeLeft === null) && `the event led to ${state}`
  }),
  createRule('a run resumed after its deadline ends', ({ event, before, after, now, state }) => {
    const isOver = before && before.timeLeft === null && now >= (before.deadline ?? Infinity)
    return event.type === 'RESUMED' && isOver && after.state !== 'TIMED_OUT' && `the run is in ${state}`
  }),
  createRule("a resumed run has the resuming program's tools", (change) => {
    const { event, after, isFinal, transitions } = change
    if (event.type !== 'RESUMED' || !event.tools || isFinal || transitions.length === 0) return null
    return after.tools !== event.tools && "the run still has the first program's tools"
  }),
  createRule('a run stopped by a cap was not also halted by a guard', ({ after }) => {
    const isCapped = after.reason === 'max_steps' || after.reason === 'max_tool_calls'
    const isNear = after.reason === 'token_budget' || after.reason === 'cost_limit'
    return (
      (isCapped || (isNear && after.state === 'RUNNING')) &&
      after.verdict &&
      `${after.verdict.guard} halted the run`
    )
  }),
  createRule('the clock stops exactly while the run rests', (change) => {
    const { before, after, isRest, isFinal, now, running, started, event } = change
    if (isFinal) return null
    const hasLimit = after.config.limits.timeoutMs > 0
    if (running.includes('deadline') !== (hasLimit && !isRest)) return 'the deadline actor is wrong'
    if ((after.timeLeft !== null) !== (hasLimit && isRest)) return `time left: ${after.timeLeft}`
    if (event.type === 'RESUMED' && hasLimit && !isRest && !started.some(({ id }) => id === 'deadline'))
      return 'the deadline timer of a resumed run has not been started'
    if (!before || !hasLimit) return null
    if (before.timeLeft === null && after.timeLeft !== null)
      return (
        after.timeLeft !== Math.max(0, (before.deadline ?? 0) - now) &&
        `the clock stopped with ${after.timeLeft} left`
      )
    return (
      before.timeLeft !== null &&
      after.timeLeft === null &&
      after.deadline !== now + before.timeLeft &&
      `the clock continued with the deadline ${after.deadline}`
    )
  }),
  createRule('a pause is remembered until the run rests', ({ event, before, after, isRest, state }) => {
    if (event.type === 'PAUSE' && state !== 'PAUSED' && !after.pausing) return 'the pause is forgotten'
    if (state === 'PAUSED') return after.pausing && 'the run would pause again'
    return (
      before?.pausing &&
      !after.pausing &&
      !isRest &&
      !/^(REPLY|RESUME|STEER)$/.test(event.type) &&
      'the pause is forgotten'
    )
  }),
  createRule('no sub-agent stays paused after the pause is withdrawn', ({ event, before, after }) => {
    const isWithdrawn = event.type === 'RESUME' && before?.pausing
    return isWithdrawn && after.calls.some(isChildPaused) && 'a sub-agent stays paused'
  }),
  createRule('a session gets one warning when its budget is nearly used up', (change) => {
    const { before, after, event } = change
    const warnings = listAnnounced(change, 'budget_warning').length
    if (warnings > (before?.warnedOfBudget ? 0 : 1)) return `${warnings} warnings`
    const isAnswered = event.type === 'xstate.done.actor.model'
    return isAnswered && isNearBudget(after) && !after.warnedOfBudget && 'no warning was emitted'
  }),
]

export const sleepRules: readonly AgentInvariant[] = [
  createRule('no request is made while a run should sleep', (change) => {
    const { after, now } = change
    return hasBegunStep(change) && after.wakeAt !== null && now < after.wakeAt && `until ${after.wakeAt}`
  }),
  createRule('only a sleeping run, or one about to sleep, has a wake time', ({ after, state, isFinal }) => {
    const isAsleep = sleepReasons.test(after.reason ?? '') && state === 'PAUSED'
    if (after.reason === 'sleeping' && !isAsleep) return `in ${state}`
    if (isAsleep && (state !== 'PAUSED' || after.wakeAt === null))
      return `the run is in ${state} and wakes at ${after.wakeAt}`
    return after.wakeAt !== null && (isFinal || (state === 'PAUSED' && !isAsleep)) && `until ${after.wakeAt}`
  }),
  createRule('only a resume, a message or an end wakes a run', ({ event, before, after }) => {
    const isWoken = isSleeping(before) && !isSleeping(after)
    return isWoken && !/^(RESUME|STEER|CANCEL|STORE_FAILED)$/.test(event.type) && `${event.type} woke the run`
  }),
  createRule('a resume or message wakes a run unless the resume is scheduled', ({ event, before, after }) => {
    if (!isSleeping(before) || !/^(RESUME|STEER)$/.test(event.type)) return null
    const at = findLaterDate(event)
    if (at === null) return isSleeping(after) && 'the run is still asleep'
    return after.wakeAt !== at && `until ${after.wakeAt}`
  }),
  createRule('a paused run with a scheduled resume sleeps until that time', ({ event, before, after }) => {
    const at = findLaterDate(event)
    if (at === null || before?.state !== 'PAUSED') return null
    return (
      (after.reason !== 'sleeping' || after.wakeAt !== at) &&
      `the reason is ${after.reason}, and the run sleeps until ${after.wakeAt}`
    )
  }),
  createRule('a scheduled resume that withdraws a pause keeps its time', ({ event, before, after }) => {
    const at = findLaterDate(event)
    if (at === null || !before?.pausing || before.state === 'PAUSED' || after.pausing) return null
    return (after.wakeAt ?? 0) < at && `until ${after.wakeAt}`
  }),
  createRule('a run sleeps until the latest wake time of its batch', (change) => {
    const { before, after, event, now } = change
    if (before === undefined || before.state === 'PAUSED' || after.state !== 'PAUSED') return null
    // In this event, shields decide which results count.
    if (event.type === 'xstate.done.actor.resultShields') return null
    const wakeTimes = listDates(before.calls, event, now).concat(
      after.calls.filter(isChildPaused).flatMap(toDate),
    )
    const until = Math.max(...wakeTimes, before.wakeAt ?? -Infinity)
    if (after.reason === 'paused')
      return !before.pausing && until > now && 'the run is paused without a wake time'
    return (
      after.reason === 'sleeping' &&
      after.wakeAt !== until &&
      `the run sleeps until ${after.wakeAt} instead of ${until}`
    )
  }),
  createRule('a run that is waiting for a shared budget sleeps until the budget resets', (change) => {
    const { before, after, event, state } = change
    const failure = event.type === 'xstate.error.actor.model' ? event.error : undefined
    const at = failure?.code === 'shared_budget' ? failure.wakeAt : undefined
    if (before === undefined || at === undefined)
      return after.reason === 'shared_budget' && state === 'PAUSED' && !isSleeping(before) && event.type
    if (state !== 'PAUSED') return `the event led to ${state}`
    if (before.pausing) return after.reason !== 'paused' && `the run rests with the reason ${after.reason}`
    if (after.reason !== 'shared_budget' || after.error?.budget !== failure?.budget)
      return 'the reason is missing'
    if (after.error?.recoverable !== true) return 'the error is marked as not recoverable'
    return after.wakeAt !== Math.max(at, before.wakeAt ?? at) && `until ${after.wakeAt}`
  }),
  createRule('no request follows accepted results that ask for sleep', (change) => {
    const { before, event, now } = change
    if (event.type !== 'xstate.done.actor.resultGuards' || !before || before.steering.length > 0) return null
    return hasBegunStep(change) && listDates(before.calls, event, now).length > 0 && 'one is'
  }),
  createRule('a pause event contains the wake time', (change) => {
    const announced = listAnnounced(change, 'state_changed').filter(({ to }) => to === 'PAUSED')
    const { wakeAt } = change.after
    return announced.some((one) => one.wakeAt !== (wakeAt ?? undefined)) && JSON.stringify(announced)
  }),
]

const sleepReasons = /^(sleeping|shared_budget)$/

function isSleeping(run: AgentContext | undefined): boolean {
  return run?.state === 'PAUSED' && sleepReasons.test(run.reason ?? '')
}

const toDate = ({ wakeAt }: { wakeAt?: number }): number[] => (wakeAt === undefined ? [] : [wakeAt])

function findLaterDate(event: AgentMachineEvent): number | null {
  const { at, now = 0 } = event.type === 'RESUME' ? event : {}
  return at !== undefined && at > now ? at : null
}

/** Future wake times of a batch's results, including the event's result. */
function listDates(calls: readonly BatchCall[], event: AgentMachineEvent, now: number): number[] {
  const results = calls.map(({ id, result }) =>
    event.type === 'TOOL_RESULT' && event.callId === id ? (result ?? event.result) : result,
  )
  return results.flatMap((result) => (result?.status === 'ok' ? toDate(result) : [])).filter((at) => at > now)
}
