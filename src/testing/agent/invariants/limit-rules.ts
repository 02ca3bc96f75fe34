import { formatCount } from '../../../core/format/format-words.js'
import { isChildPaused } from '../../../../machines/agent/questions.js'
import type { Reason } from '../../../../machines/agent/run-result.js'
import { isNewRefusal, isRefusedQuestion } from '../../../../machines/agent/refusals.js'
import { findNextPlan } from '../../../../machines/agent/step-plan.js'
import { listUnclearedInput } from '../../../../machines/agent/mask-uncleared.js'
import { findBudgetReason, findNearReason, isNearBudget } from '../../../../machines/agent/budget-totals.js'
import { createRules, isFailedRequest } from './invariant-rule.js'
import type { AgentContext, AgentMachineEvent } from '../../../../machines/agent/context.js'
import type { BatchCall } from '../../../../machines/agent/batch-calls.js'

type Reasons = ReadonlySet<Reason | null | undefined>
const capReasons: Reasons = new Set<Reason>(['max_tool_calls', 'max_tool_calls_per_response', 'max_calls'])
const budgetReasons: Reasons = new Set<Reason>(['token_budget', 'cost_limit'])

export const limitRules = createRules({
  'steps exceed maxSteps by at most one, for the final answer': ({ after }) => {
    const { maxSteps, onLimit } = after.config.limits
    const most = (maxSteps ?? Infinity) + (onLimit === 'conclude' ? 1 : 0)
    return after.steps > most && `${after.steps} steps`
  },
  'executed calls never exceed the tool-call caps': ({ event, after }) => {
    const { maxToolCalls, maxToolCallsPerResponse } = after.config.limits
    const { calls = 0, byTool = {} } = after.callCounts ?? {}
    if (calls > (maxToolCalls ?? Infinity)) return `${calls} calls`
    const late = Object.entries(byTool).find(([name, n]) => n > (after.tools[name]?.maxCalls ?? Infinity))
    if (late) return `${late[1]} calls to ${late[0]}`
    const admitted = after.calls.filter(({ result }) => !capReasons.has(result?.refusedBy))
    const isNew = event.type === 'xstate.done.actor.model' && after.calls.length > 0
    if (!isNew || admitted.length <= (maxToolCallsPerResponse ?? Infinity)) return null
    return `${formatCount(admitted.length, 'call was', 'calls were')} admitted from one response`
  },
  'a call refused by a cap never starts': ({ after }) => {
    const wrong = after.calls.find(({ result, started }) => capReasons.has(result?.refusedBy) && started)
    return wrong && `'${wrong.id}' was started`
  },
  'no request exceeds the step limit or the budget': ({ after, state, hasStarted }) => {
    if (!hasStarted('requestModel')) return null
    const reason = findBudgetReason(after)
    if (reason !== null) return `${reason} is exhausted`
    const isLast = after.steps >= (after.config.limits.maxSteps ?? Infinity)
    return state === 'RUNNING.asking.requesting' && isLast && 'no step is left'
  },
  'the budget reserve is used only for the final answer': ({ event, after, state, hasStarted }) => {
    if (state !== 'RUNNING.asking.concluding' || !hasStarted('requestModel')) return null
    if (!budgetReasons.has(after.reason)) return null
    if (after.config.limits.onNearBudget !== 'conclude') return `by ${event.type}`
    const near = findNearReason(after)
    return after.reason !== near && `the reason is ${after.reason}, but should be ${near}`
  },
  'the final answer near a budget ends the run': ({ event, before, state }) => {
    if (!budgetReasons.has(before?.reason) || before?.state !== 'RUNNING') return null
    const isEnd = /^(BUDGET_EXCEEDED|BLOCKED|RUNNING\.asking\.screeningOutput)$/.test(state)
    return event.type.startsWith('xstate.done.') && !isEnd && `the event led to ${state}`
  },
  'no step starts after the deadline or a pause request': ({ event, now, after, hasBegunStep }) => {
    if (!hasBegunStep()) return null
    if (after.pausing && event.type !== 'PAUSE') return 'a pause was requested'
    return after.deadline !== null && now >= after.deadline && 'the deadline has passed'
  },
  'the safe point checks the deadline, the pause, the step limit and the budget, in this order': (change) => {
    const { event, now, before, after, state, transitions } = change
    const way = transitions.findLast((id) => id.startsWith('RUNNING.preparing.checkingLimits: '))
    if (way === undefined) return null
    const isForgotten = /^(REPLY|RESUME)$/.test(event.type) || before?.state === 'PAUSED'
    const concluded = /^(MAX_STEPS|RUNNING\.asking\.concluding)$/
    const order: [boolean | null | undefined, RegExp][] = [
      [after.deadline !== null && now >= after.deadline, /^TIMED_OUT$/],
      [(before?.pausing || after.reason === 'approval_expired') && !isForgotten, /^PAUSED$/],
      [after.steps >= (after.config.limits.maxSteps ?? Infinity) || after.callCounts?.isOver, concluded],
      [findBudgetReason(after) !== null, /^BUDGET_EXCEEDED$/],
      [after.wakeAt !== null && now < after.wakeAt, /^PAUSED$/],
      [listUnclearedInput(after).length > 0, /^RUNNING\.preparing\.screeningInput$/],
      [
        after.config.limits.onNearBudget === 'conclude' && isNearBudget(after),
        /^RUNNING\.asking\.concluding$/,
      ],
      [after.features.prepareStep && findNextPlan(after) === null, /^RUNNING\.preparing\.planningStep$/],
      [
        after.attempt > 1 && now < after.backOffUntil,
        /^RUNNING\.(asking\.backingOff|preparing\.fittingContext)$/,
      ],
      [true, /^RUNNING\.(asking\.requesting|preparing\.fittingContext)$/],
    ]
    const expected = order.find(([applies]) => applies)?.[1]
    return !expected?.test(state) && `the event led to ${state}`
  },
  'transient failures are retried while attempts and budget remain': ({ event, before, after, state }) => {
    if (event.type !== 'xstate.error.actor.model' || !before || findBudgetReason(after) !== null) return null
    const { kind, wakeAt } = event.error
    // The run waits for a shared budget, so there was no attempt.
    if (wakeAt !== undefined) return null
    const { maxAttempts, rateLimitAttempts } = after.config.retry
    const attempts = before.attempt - before.rateLimits - (before.resends ?? 0)
    const isLeft =
      kind === 'rate_limit'
        ? before.rateLimits + 1 < rateLimitAttempts
        : (kind === 'transient' || kind === 'incomplete') && attempts < maxAttempts
    // A pending pause takes precedence over the back-off. The resumed run retries.
    const next = before.pausing ? 'PAUSED' : 'RUNNING.asking.backingOff'
    return isLeft !== (state === next) && `the event led to ${state}`
  },
  'content that a provider rejects is omitted once, but the question itself is never omitted': (change) => {
    const { event, before, after, state, listAnnounced, hasStarted } = change
    if (!isFailedRequest(event) || before === undefined) return null
    const { refusal } = event.error
    const isNew = refusal !== undefined && isNewRefusal(before.refusals ?? [], refusal)
    const mayResend = isNew && !isRefusedQuestion(refusal) && findBudgetReason(after) === null
    const place = event.type === 'xstate.error.actor.model' ? 'requesting' : 'concluding'
    const isSent = state === `RUNNING.asking.${place}` && hasStarted('requestModel')
    if (mayResend !== isSent) return `the event led to ${state}`
    if (mayResend && after.attempt !== before.attempt + 1) return 'the attempt is not counted'
    const warnings = listAnnounced('warning').filter(({ code }) => code === 'content_refused')
    if (warnings.length !== (mayResend ? 1 : 0)) return formatCount(warnings.length, 'warning')
    return isNew && !after.refusals?.includes(refusal) && 'the rejected content is forgotten'
  },
  'a truncated answer is continued as long as recovery attempts remain': ({ event, before, after }) => {
    const isCut = after.response === 'truncated' || after.response === 'truncatedCalls'
    if (event.type !== 'xstate.done.actor.model' || !before || !isCut || findBudgetReason(after) !== null)
      return null
    const isLeft = before.recoveries < after.config.guardrails.maxTokensRecoveries
    return isLeft !== after.recoveries > before.recoveries && `${after.recoveries} recoveries`
  },
  'an invalid answer is requested again while repairs remain': ({ event, before, after, state }) => {
    if (event.type !== 'xstate.done.actor.model' || !before || !event.output.outputProblem) return null
    // An answer pending review is judged after its screening.
    const problem = after.pendingAnswer ? after.pendingAnswer.outputProblem : after.outputProblem
    if (problem !== event.output.outputProblem) return 'the problem is missing from the context'
    if (after.pendingAnswer || findBudgetReason(after) !== null) return null
    const isLeft = before.outputRepairs < after.config.completion.maxOutputRepairs
    if (isLeft !== after.outputRepairs > before.outputRepairs) return `${after.outputRepairs} repairs`
    return !isLeft && after.reason !== 'invalid_output' && `the event led to ${state} (${after.reason})`
  },
  'a response over budget is the last unless the configuration allows more': ({ event, after, state }) => {
    if (event.type !== 'xstate.done.actor.model' || findBudgetReason(after) === null) return null
    const { finishBatch, onOvershoot } = after.config.budget
    if (after.response === 'calls' && finishBatch) return null
    const isEnd = ['answer', 'refusal', 'filtered'].includes(after.response ?? '')
    if (isEnd && onOvershoot === 'complete') return null
    // Shields screen the answer first.
    const due = after.pendingAnswer ? 'RUNNING.asking.screeningOutput' : 'BUDGET_EXCEEDED'
    return state !== due && `the event led to ${state}`
  },
  'a run ends when a sub-agent has used up its budget': ({ event, after, state, isTaken }) => {
    const isSpent = event.type === 'CHILD_USAGE' || (event.type === 'TOOL_RESULT' && event.usage)
    if (!isSpent || !isTaken || findBudgetReason(after) === null) return null
    const isEnded = state === 'BUDGET_EXCEEDED' || after.reason === 'terminal_delegation'
    return !isEnded && `the event led to ${state}`
  },
  'attempts, recoveries and re-prompts stay within their limits': ({ after }) => {
    const { retry, guardrails } = after.config
    const { attempt, rateLimits, resends = 0, recoveries, reprompts, emptyRetries, outputRepairs } = after
    if (attempt - rateLimits - resends > retry.maxAttempts || rateLimits > retry.rateLimitAttempts - 1)
      return `attempt ${attempt}, ${rateLimits} of them after a rate limit`
    if (recoveries > guardrails.maxTokensRecoveries) return `${recoveries} recoveries`
    if (outputRepairs > after.config.completion.maxOutputRepairs) return `${outputRepairs} repairs`
    const most = { reprompts: 0, retries: 0, ...guardrails.emptyAnswer }
    if (reprompts <= most.reprompts && emptyRetries <= most.retries) return null
    return `${reprompts} re-prompts, ${emptyRetries} retries of an empty answer`
  },
  'a retry is announced, counted and delayed by the announced time': (change) => {
    const { event, now, before, after, state, listAnnounced } = change
    const retries = listAnnounced('retry')
    const isRetry =
      event.type === 'xstate.error.actor.model' &&
      event.error.wakeAt === undefined &&
      ['RUNNING.asking.backingOff', 'PAUSED'].includes(state)
    if (retries.length !== (isRetry ? 1 : 0)) return `${retries.length} retries were announced`
    if (!isRetry) return null
    const limited = event.error.kind === 'rate_limit' ? 1 : 0
    if (after.attempt !== (before?.attempt ?? 0) + 1) return 'the attempt is not counted'
    if (after.rateLimits !== (before?.rateLimits ?? 0) + limited)
      return 'rate limit errors are not counted separately'
    const delayMs = retries[0]?.delayMs ?? 0
    const isDelayed = delayMs > 0 && after.backOffUntil === now + delayMs
    return !isDelayed && `the retry is delayed until ${after.backOffUntil}`
  },
  'an accepted response resets the attempts': ({ event, after }) => {
    const isReset = after.attempt + after.rateLimits === 1
    return event.type === 'xstate.done.actor.model' && !isReset && 'the attempts were not reset'
  },
  'the deadline ends the run, but only while the clock runs': ({ event, before, state }) => {
    if (event.type !== 'DEADLINE' || before === undefined) return null
    return (state === 'TIMED_OUT') !== (before.timeLeft === null) && `the event led to ${state}`
  },
  'a run resumed after its deadline ends': ({ event, now, before, after, state }) => {
    const isOver = before && before.timeLeft === null && now >= (before.deadline ?? Infinity)
    return event.type === 'RESUMED' && isOver && after.state !== 'TIMED_OUT' && `the run is in ${state}`
  },
  "a resumed run has the resuming program's tools": ({ event, after, isFinal, isTaken }) => {
    if (event.type !== 'RESUMED' || !event.tools || isFinal || !isTaken) return null
    return after.tools !== event.tools && "the run still has the first program's tools"
  },
  'a run stopped by a cap was not also halted by a guard': ({ after }) => {
    const isCapped = after.reason === 'max_steps' || after.reason === 'max_tool_calls'
    const isConcluding = budgetReasons.has(after.reason) && after.state === 'RUNNING'
    return (isCapped || isConcluding) && after.verdict && `${after.verdict.guard} halted the run`
  },
  'the clock stops exactly while the run rests': (change) => {
    const { event, now, before, after, isFinal, isRest, started, running } = change
    if (isFinal) return null
    const hasLimit = after.config.limits.timeoutMs > 0
    if (running.includes('deadline') !== (hasLimit && !isRest)) return 'the deadline actor is wrong'
    if ((after.timeLeft !== null) !== (hasLimit && isRest)) return `time left: ${after.timeLeft}`
    if (event.type === 'RESUMED' && hasLimit && !isRest && !started.some(({ id }) => id === 'deadline'))
      return 'the deadline timer of a resumed run has not been started'
    if (!before || !hasLimit) return null
    const left = before.timeLeft ?? Math.max(0, (before.deadline ?? 0) - now)
    if (before.timeLeft === null && after.timeLeft !== null)
      return after.timeLeft !== left && `the clock stopped with ${after.timeLeft} left`
    const isContinued = before.timeLeft !== null && after.timeLeft === null && after.deadline !== now + left
    return isContinued && `the clock continued with the deadline ${after.deadline}`
  },
  'a pause is remembered until the run rests': ({ event, before, after, state, isRest }) => {
    if (event.type === 'PAUSE' && state !== 'PAUSED' && !after.pausing) return 'the pause is forgotten'
    if (state === 'PAUSED') return after.pausing && 'the run would pause again'
    const isWithdrawn = /^(REPLY|RESUME|STEER)$/.test(event.type)
    return before?.pausing && !after.pausing && !isRest && !isWithdrawn && 'the pause is forgotten'
  },
  'no sub-agent stays paused after the pause is withdrawn': ({ event, before, after }) => {
    const isWithdrawn = event.type === 'RESUME' && before?.pausing
    return isWithdrawn && after.calls.some(isChildPaused) && 'a sub-agent stays paused'
  },
  'a session gets one warning when its budget is nearly used up': (change) => {
    const { event, before, after, listAnnounced } = change
    const warnings = listAnnounced('budget_warning').length
    if (warnings > (before?.warnedOfBudget ? 0 : 1)) return `${warnings} warnings`
    const isAnswered = event.type === 'xstate.done.actor.model'
    return isAnswered && isNearBudget(after) && !after.warnedOfBudget && 'no warning was emitted'
  },
})

export const sleepRules = createRules({
  'no request is made while a run should sleep': ({ now, after, hasBegunStep }) =>
    hasBegunStep() && after.wakeAt !== null && now < after.wakeAt && `until ${after.wakeAt}`,
  'only a sleeping run, or one about to sleep, has a wake time': ({ after, state, isFinal }) => {
    const isAsleep = sleepReasons.test(after.reason ?? '') && state === 'PAUSED'
    if (after.reason === 'sleeping' && !isAsleep) return `in ${state}`
    if (isAsleep && (state !== 'PAUSED' || after.wakeAt === null))
      return `the run is in ${state} and wakes at ${after.wakeAt}`
    return after.wakeAt !== null && (isFinal || (state === 'PAUSED' && !isAsleep)) && `until ${after.wakeAt}`
  },
  'only a resume, a message or an end wakes a run': ({ event, before, after }) => {
    const isWoken = isSleeping(before) && !isSleeping(after)
    return isWoken && !/^(RESUME|STEER|CANCEL|STORE_FAILED)$/.test(event.type) && `${event.type} woke the run`
  },
  'a resume or message wakes a run unless the resume is scheduled': ({ event, before, after }) => {
    if (!isSleeping(before) || !/^(RESUME|STEER)$/.test(event.type)) return null
    const at = findLaterDate(event)
    if (at === null) return isSleeping(after) && 'the run is still asleep'
    return after.wakeAt !== at && `until ${after.wakeAt}`
  },
  'a paused run with a scheduled resume sleeps until that time': ({ event, before, after }) => {
    const at = findLaterDate(event)
    if (at === null || before?.state !== 'PAUSED') return null
    if (after.reason === 'sleeping' && after.wakeAt === at) return null
    return `the reason is ${after.reason}, and the run sleeps until ${after.wakeAt}`
  },
  'a scheduled resume that withdraws a pause keeps its time': ({ event, before, after }) => {
    const at = findLaterDate(event)
    if (at === null || !before?.pausing || before.state === 'PAUSED' || after.pausing) return null
    return (after.wakeAt ?? 0) < at && `until ${after.wakeAt}`
  },
  'a run sleeps until the latest wake time of its batch': ({ event, now, before, after }) => {
    if (before === undefined || before.state === 'PAUSED' || after.state !== 'PAUSED') return null
    // In this event, shields decide which results count.
    if (event.type === 'xstate.done.actor.resultShields') return null
    const wakeTimes = listDates(before.calls, event, now).concat(
      after.calls.filter(isChildPaused).flatMap(toDate),
    )
    const until = Math.max(...wakeTimes, before.wakeAt ?? -Infinity)
    if (after.reason === 'paused')
      return !before.pausing && until > now && 'the run is paused without a wake time'
    const isWrong = after.reason === 'sleeping' && after.wakeAt !== until
    return isWrong && `the run sleeps until ${after.wakeAt} instead of ${until}`
  },
  'a run that is waiting for a shared budget sleeps until the budget resets': (change) => {
    const { event, before, after, state } = change
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
  },
  'no request follows accepted results that ask for sleep': ({ event, now, before, hasBegunStep }) => {
    if (event.type !== 'xstate.done.actor.resultGuards' || !before || before.steering.length > 0) return null
    return hasBegunStep() && listDates(before.calls, event, now).length > 0 && 'one is'
  },
  'a pause event contains the wake time': ({ after, listAnnounced }) => {
    const announced = listAnnounced('state_changed').filter(({ to }) => to === 'PAUSED')
    const { wakeAt } = after
    return announced.some((one) => one.wakeAt !== (wakeAt ?? undefined)) && JSON.stringify(announced)
  },
})

const sleepReasons = /^(sleeping|shared_budget)$/

function isSleeping(run: AgentContext | undefined): boolean {
  return run?.state === 'PAUSED' && sleepReasons.test(run.reason ?? '')
}

const toDate = ({ wakeAt }: { wakeAt?: number }): number[] => (wakeAt === undefined ? [] : [wakeAt])

function findLaterDate(event: AgentMachineEvent): number | null {
  const { at, now = 0 } = event.type === 'RESUME' ? event : {}
  return at !== undefined && at > now ? at : null
}

function listDates(calls: readonly BatchCall[], event: AgentMachineEvent, now: number): number[] {
  const results = calls.map(({ id, result }) =>
    event.type === 'TOOL_RESULT' && event.callId === id ? (result ?? event.result) : result,
  )
  return results.flatMap((result) => (result?.status === 'ok' ? toDate(result) : [])).filter((at) => at > now)
}
