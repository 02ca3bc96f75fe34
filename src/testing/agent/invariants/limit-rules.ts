import { isChildPaused } from '../../../../machines/agent/sub-agent-questions.js'
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
  createRule('steps never exceed maxSteps, or by one to conclude', ({ after }) => {
    const { maxSteps, onLimit } = after.config.limits
    const most = (maxSteps ?? Infinity) + (onLimit === 'conclude' ? 1 : 0)
    return after.steps > most && `${after.steps} steps`
  }),
  createRule('the calls that run never exceed the caps on tool calls', ({ event, after }) => {
    const { maxToolCalls, maxToolCallsPerResponse } = after.config.limits
    const { calls = 0, byTool = {} } = after.callCounts ?? {}
    if (calls > (maxToolCalls ?? Infinity)) return `${calls} calls`
    const late = Object.entries(byTool).find(([name, n]) => n > (after.tools[name]?.maxCalls ?? Infinity))
    if (late) return `${late[1]} calls of ${late[0]}`
    const admitted = after.calls.filter(({ result }) => !capReasons.has(result?.refusedBy))
    const isNew = event.type === 'xstate.done.actor.model' && after.calls.length > 0
    return (
      isNew &&
      admitted.length > (maxToolCallsPerResponse ?? Infinity) &&
      `${admitted.length} calls of one response`
    )
  }),
  createRule('a call that a cap refuses is told so, and never starts', ({ after }) => {
    const wrong = after.calls.find(({ result, started }) => capReasons.has(result?.refusedBy) && started)
    return wrong && `'${wrong.id}' has started`
  }),
  createRule('no request is made past the step limit or the budget', (change) => {
    const { after, state } = change
    if (!hasStarted(change, 'requestModel')) return null
    const reason = findBudgetReason(after)
    if (reason !== null) return `${reason} is spent`
    return (
      state === 'RUNNING.asking.requesting' &&
      after.steps >= (after.config.limits.maxSteps ?? Infinity) &&
      'no step is left'
    )
  }),
  createRule('the reserve of a budget is kept unless last words are to be said with it', (change) => {
    const { after, state, event } = change
    if (state !== 'RUNNING.asking.concluding' || !hasStarted(change, 'requestModel')) return null
    const isOfBudget = after.reason === 'token_budget' || after.reason === 'cost_limit'
    if (!isOfBudget) return null
    if (after.config.limits.onNearBudget !== 'conclude') return `by ${event.type}`
    const near = findNearReason(after)
    return after.reason !== near && `it says ${after.reason}, near is ${near}`
  }),
  createRule('last words near the end of a budget are the end', ({ before, state, event }) => {
    const isOfBudget = before?.reason === 'token_budget' || before?.reason === 'cost_limit'
    if (!isOfBudget || before.state !== 'RUNNING' || !event.type.startsWith('xstate.done.')) return null
    return !/^(BUDGET_EXCEEDED|BLOCKED|RUNNING\.asking\.screeningOutput)$/.test(state) && `it led to ${state}`
  }),
  createRule('no step begins past the deadline, or when a pause was asked for', (change) => {
    const { after, now, event } = change
    if (!hasBegunStep(change)) return null
    if (after.pausing && event.type !== 'PAUSE') return 'a pause was asked for'
    return after.deadline !== null && now >= after.deadline && 'the deadline has passed'
  }),
  createRule(
    'the safe point looks at the deadline first, then at the pause, the steps and the budget',
    (change) => {
      const { before, after, now, state, event } = change
      const way = change.transitions.findLast((id) => id.startsWith('RUNNING.preparing.checkingLimits: '))
      if (way === undefined) return null
      const isForgotten = /^(REPLY|RESUME)$/.test(event.type) || before?.state === 'PAUSED'
      const expected =
        after.deadline !== null && now >= after.deadline
          ? /^TIMED_OUT$/
          : before?.pausing && !isForgotten
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
      return !expected.test(state) && `it led to ${state}`
    },
  ),
  createRule(
    'what may pass is tried again, as long as attempts and budget are left',
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
      // A pending pause comes before the back-off. The resumed run retries.
      const next = before.pausing ? 'PAUSED' : 'RUNNING.asking.backingOff'
      // The run waits for a shared budget; no attempt was made.
      if (event.error.wakeAt !== undefined) return null
      return isLeft !== (state === next) && `it led to ${state}`
    },
  ),
  createRule('content that a provider refuses is left out once, and never the question itself', (change) => {
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
    if (mayResend !== isSent) return `it led to ${state}`
    if (mayResend && after.attempt !== before.attempt + 1) return 'the attempt is not counted'
    const warnings = listAnnounced(change, 'warning').filter(({ code }) => code === 'content_refused')
    if (warnings.length !== (mayResend ? 1 : 0)) return `${warnings.length} warnings`
    return (
      refusal !== undefined &&
      (after.refusals ?? []).every((one) => one !== refusal) &&
      !isRepeated &&
      'it is forgotten'
    )
  }),
  createRule('a truncated answer is continued as long as recoveries are left', ({ event, before, after }) => {
    const isCut = after.response === 'truncated' || after.response === 'truncatedCalls'
    if (event.type !== 'xstate.done.actor.model' || !before || !isCut || findBudgetReason(after) !== null)
      return null
    const isLeft = before.recoveries < after.config.guardrails.maxTokensRecoveries
    return isLeft !== after.recoveries > before.recoveries && `${after.recoveries} recoveries`
  }),
  createRule('an answer that does not fit is asked for again as long as repairs are left', (change) => {
    const { event, before, after, state } = change
    if (event.type !== 'xstate.done.actor.model' || !before || !event.output.outputProblem) return null
    // An answer pending shield review is judged afterwards.
    const kept = after.pendingAnswer ? after.pendingAnswer.outputProblem : after.outputProblem
    if (kept !== event.output.outputProblem) return 'the context does not keep what does not fit'
    if (after.pendingAnswer) return null
    if (findBudgetReason(after) !== null) return null
    const isLeft = before.outputRepairs < after.config.completion.maxOutputRepairs
    if (isLeft !== after.outputRepairs > before.outputRepairs) return `${after.outputRepairs} repairs`
    return !isLeft && after.reason !== 'invalid_output' && `it led to ${state} (${after.reason})`
  }),
  createRule(
    'a response that crosses the budget is the last, unless the configuration lets it end',
    (change) => {
      const { after, state, event } = change
      if (event.type !== 'xstate.done.actor.model' || findBudgetReason(after) === null) return null
      const { finishBatch, onOvershoot } = after.config.budget
      if (after.response === 'calls' && finishBatch) return null
      const isEnd = ['answer', 'refusal', 'filtered'].includes(after.response ?? '')
      if (isEnd && onOvershoot === 'complete') return null
      // Shields review it first.
      if (after.pendingAnswer) return state !== 'RUNNING.asking.screeningOutput' && `it led to ${state}`
      return state !== 'BUDGET_EXCEEDED' && `it led to ${state}`
    },
  ),
  createRule(
    'a run does not go on when a sub-agent has used its budget up',
    ({ event, after, state, transitions }) => {
      const isSpent =
        event.type === 'CHILD_USAGE' || (event.type === 'TOOL_RESULT' && event.usage !== undefined)
      if (!isSpent || transitions.length === 0 || findBudgetReason(after) === null) return null
      return state !== 'BUDGET_EXCEEDED' && after.reason !== 'terminal_delegation' && `it led to ${state}`
    },
  ),
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
  createRule('a retry is announced, counted, and waits as long as it says', (change) => {
    const { before, after, event, now } = change
    const retries = listAnnounced(change, 'retry')
    const isRetry =
      event.type === 'xstate.error.actor.model' &&
      event.error.wakeAt === undefined &&
      ['RUNNING.asking.backingOff', 'PAUSED'].includes(change.state)
    if (retries.length !== (isRetry ? 1 : 0)) return `${retries.length} were announced`
    if (!isRetry) return null
    const limited = event.error.kind === 'rate_limit' ? 1 : 0
    if (after.attempt !== (before?.attempt ?? 0) + 1) return 'the attempt is not counted'
    if (after.rateLimits !== (before?.rateLimits ?? 0) + limited) return 'the rate limit is not counted apart'
    const delayMs = retries[0]?.delayMs ?? 0
    return (delayMs <= 0 || after.backOffUntil !== now + delayMs) && `it waits until ${after.backOffUntil}`
  }),
  createRule('an accepted response begins the attempts anew', ({ event, after }) => {
    return event.type === 'xstate.done.actor.model' && after.attempt + after.rateLimits !== 1 && 'it does not'
  }),
  createRule(
    'the deadline passes only while the clock runs, and then it ends the run',
    ({ event, before, state }) => {
      if (event.type !== 'DEADLINE' || before === undefined) return null
      return (state === 'TIMED_OUT') !== (before.timeLeft === null) && `it led to ${state}`
    },
  ),
  createRule('a run that is resumed after its deadline is over', ({ event, before, after, now, state }) => {
    const isOver = before && before.timeLeft === null && now >= (before.deadline ?? Infinity)
    return event.type === 'RESUMED' && isOver && after.state !== 'TIMED_OUT' && `it stands in ${state}`
  }),
  createRule('a run that is resumed knows the tools of the program that goes on with it', (change) => {
    const { event, after, isFinal, transitions } = change
    if (event.type !== 'RESUMED' || !event.tools || isFinal || transitions.length === 0) return null
    return after.tools !== event.tools && 'it knows those of the one that began'
  }),
  createRule('a run that a cap has stopped was not halted by a guard besides', ({ after }) => {
    const isCapped = after.reason === 'max_steps' || after.reason === 'max_tool_calls'
    const isNear = after.reason === 'token_budget' || after.reason === 'cost_limit'
    return (
      (isCapped || (isNear && after.state === 'RUNNING')) &&
      after.verdict &&
      `${after.verdict.guard} has halted it`
    )
  }),
  createRule('the clock stands still while the run rests, and runs otherwise', (change) => {
    const { before, after, isRest, isFinal, now, running, started, event } = change
    if (isFinal) return null
    const hasLimit = after.config.limits.timeoutMs > 0
    if (running.includes('deadline') !== (hasLimit && !isRest)) return 'its actor does not fit'
    if ((after.timeLeft !== null) !== (hasLimit && isRest)) return `time left: ${after.timeLeft}`
    if (event.type === 'RESUMED' && hasLimit && !isRest && !started.some(({ id }) => id === 'deadline'))
      return 'the deadline of a resumed run is not started'
    if (!before || !hasLimit) return null
    if (before.timeLeft === null && after.timeLeft !== null)
      return after.timeLeft !== Math.max(0, (before.deadline ?? 0) - now) && `held at ${after.timeLeft}`
    return (
      before.timeLeft !== null &&
      after.timeLeft === null &&
      after.deadline !== now + before.timeLeft &&
      `released to ${after.deadline}`
    )
  }),
  createRule('a pause is remembered until the run rests', ({ event, before, after, isRest, state }) => {
    if (event.type === 'PAUSE' && state !== 'PAUSED' && !after.pausing) return 'it is forgotten'
    if (state === 'PAUSED') return after.pausing && 'it would pause again'
    return (
      before?.pausing &&
      !after.pausing &&
      !isRest &&
      !/^(REPLY|RESUME|STEER)$/.test(event.type) &&
      'it is forgotten'
    )
  }),
  createRule('no sub-agent stays in a pause that is withdrawn', ({ event, before, after }) => {
    const isWithdrawn = event.type === 'RESUME' && before?.pausing
    return isWithdrawn && after.calls.some(isChildPaused) && 'a sub-agent stays paused'
  }),
  createRule('a session hears once that its budget is nearly used up', (change) => {
    const { before, after, event } = change
    const warnings = listAnnounced(change, 'budget_warning').length
    if (warnings > (before?.warnedOfBudget ? 0 : 1)) return `${warnings} warnings`
    const isAnswered = event.type === 'xstate.done.actor.model'
    return isAnswered && isNearBudget(after) && !after.warnedOfBudget && 'it has not heard'
  }),
]

export const sleepRules: readonly AgentInvariant[] = [
  createRule('no model is asked while a run is to sleep', (change) => {
    const { after, now } = change
    return hasBegunStep(change) && after.wakeAt !== null && now < after.wakeAt && `until ${after.wakeAt}`
  }),
  createRule('a run is to be woken only where it sleeps, or is about to', ({ after, state, isFinal }) => {
    const isAsleep = sleepReasons.test(after.reason ?? '') && state === 'PAUSED'
    if (after.reason === 'sleeping' && !isAsleep) return `in ${state}`
    if (isAsleep && (state !== 'PAUSED' || after.wakeAt === null)) return `in ${state}, until ${after.wakeAt}`
    return after.wakeAt !== null && (isFinal || (state === 'PAUSED' && !isAsleep)) && `until ${after.wakeAt}`
  }),
  createRule('only a resume, a message or an end wakes a run', ({ event, before, after }) => {
    const isWoken = isSleeping(before) && !isSleeping(after)
    return isWoken && !/^(RESUME|STEER|CANCEL|STORE_FAILED)$/.test(event.type) && `${event.type} woke it`
  }),
  createRule(
    'a resume or a message wakes a run, unless the resume is for later',
    ({ event, before, after }) => {
      if (!isSleeping(before) || !/^(RESUME|STEER)$/.test(event.type)) return null
      const at = findLaterDate(event)
      if (at === null) return isSleeping(after) && 'it sleeps on'
      return after.wakeAt !== at && `until ${after.wakeAt}`
    },
  ),
  createRule(
    'a paused run sleeps from a resume with a date on, and until that date',
    ({ event, before, after }) => {
      const at = findLaterDate(event)
      if (at === null || before?.state !== 'PAUSED') return null
      return (after.reason !== 'sleeping' || after.wakeAt !== at) && `${after.reason} until ${after.wakeAt}`
    },
  ),
  createRule('a resume for later that withdraws a pause is noted', ({ event, before, after }) => {
    const at = findLaterDate(event)
    if (at === null || !before?.pausing || before.state === 'PAUSED' || after.pausing) return null
    return (after.wakeAt ?? 0) < at && `until ${after.wakeAt}`
  }),
  createRule('a run falls asleep until the latest date that its batch has asked for', (change) => {
    const { before, after, event, now } = change
    if (before === undefined || before.state === 'PAUSED' || after.state !== 'PAUSED') return null
    // Shields decide in this event which results count.
    if (event.type === 'xstate.done.actor.resultShields') return null
    const asked = listDates(before.calls, event, now).concat(
      after.calls.filter(isChildPaused).flatMap(toDate),
    )
    const until = Math.max(...asked, before.wakeAt ?? -Infinity)
    if (after.reason === 'paused') return !before.pausing && until > now && 'it is only paused'
    return after.reason === 'sleeping' && after.wakeAt !== until && `until ${after.wakeAt}, not ${until}`
  }),
  createRule('a run that waits for a shared budget sleeps until the budget is whole again', (change) => {
    const { before, after, event, state } = change
    const failure = event.type === 'xstate.error.actor.model' ? event.error : undefined
    const at = failure?.code === 'shared_budget' ? failure.wakeAt : undefined
    if (before === undefined || at === undefined)
      return after.reason === 'shared_budget' && state === 'PAUSED' && !isSleeping(before) && event.type
    if (state !== 'PAUSED') return `it led to ${state}`
    if (before.pausing) return after.reason !== 'paused' && `it rests for ${after.reason}`
    if (after.reason !== 'shared_budget' || after.error?.budget !== failure?.budget)
      return 'it does not say so'
    if (after.error?.recoverable !== true) return 'it says that waiting is no use'
    return after.wakeAt !== Math.max(at, before.wakeAt ?? at) && `until ${after.wakeAt}`
  }),
  createRule('no model is asked when guards have let results pass that ask for sleep', (change) => {
    const { before, event, now } = change
    if (event.type !== 'xstate.done.actor.resultGuards' || !before || before.steering.length > 0) return null
    return hasBegunStep(change) && listDates(before.calls, event, now).length > 0 && 'one is'
  }),
  createRule('a rest says until when the run sleeps', (change) => {
    const told = listAnnounced(change, 'state_changed').filter(({ to }) => to === 'PAUSED')
    const { wakeAt } = change.after
    return told.some((one) => one.wakeAt !== (wakeAt ?? undefined)) && JSON.stringify(told)
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
