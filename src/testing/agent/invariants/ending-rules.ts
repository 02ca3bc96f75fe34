import { guardNames } from '../../../../guards/roster.js'
import type { AgentContext } from '../../../../machines/agent/context.js'
import type { Reason } from '../../../../machines/agent/run-result.js'
import { findBudgetReason } from '../../../../machines/agent/budget-totals.js'
import { toRunResult } from '../../../../machines/agent/to-result.js'
import { createRules, isAnswer } from './invariant-rule.js'

const budget: readonly Reason[] = ['token_budget', 'output_tokens', 'cost_limit', 'shared_budget']
const halts: readonly Reason[] = [...guardNames, 'user_guard']

const reasons: Readonly<Record<string, readonly Reason[]>> = {
  COMPLETED: ['end_turn', 'max_tokens', 'refusal', 'content_filter'],
  CANCELLED: ['cancelled', 'approval_expired'],
  TIMED_OUT: ['timeout'],
  MAX_STEPS: ['max_steps', 'max_tool_calls'],
  BUDGET_EXCEEDED: budget,
  BLOCKED: ['shield'],
  ERROR: [
    'provider_error',
    'incomplete_response',
    'context_overflow',
    'empty_response',
    'invalid_output',
    'max_tokens',
    'internal',
    'store_error',
    'shared_budget',
    ...halts,
  ],
  PAUSED: ['paused', 'sleeping', 'approval_expired', 'shared_budget', ...halts],
  'WAITING_FOR_INPUT.approval': ['approval'],
  'WAITING_FOR_INPUT.toolOutput': ['tool_output'],
  'WAITING_FOR_INPUT.message': ['message'],
  'RUNNING.asking.concluding': ['max_steps', 'max_tool_calls', 'token_budget', 'cost_limit', ...halts],
}

export const endingRules = createRules({
  'the last event of a run is its only terminal event and states how it ended': (change) => {
    const { after, isFinal, announced, listAnnounced } = change
    const ends = listAnnounced('run_ended')
    if (ends.length !== (isFinal ? 1 : 0)) return `${ends.length} terminal events were announced`
    if (!isFinal) return null
    const last = announced.at(-1)
    const isRight = last?.type === 'run_ended' && last.state === after.state && last.reason === after.reason
    return !isRight && `the last event is ${JSON.stringify(last)}`
  },
  'a result has the fields that its state requires': ({ after, isFinal }) => {
    const { state, reason, error, pending, outputProblem, resumable, ...more } = toRunResult(after)
    const isWaiting = state === 'WAITING_FOR_INPUT'
    if ((pending !== undefined) !== isWaiting) return 'pending does not match the state'
    if (resumable !== (isWaiting || state === 'PAUSED')) return 'resumable does not match the state'
    const sleeps = state === 'PAUSED' && /^(sleeping|shared_budget)$/.test(reason)
    const expires = pending?.some(({ expiresAt }) => expiresAt !== undefined) === true
    if ('wakeAt' in more !== (sleeps || expires)) return 'wakeAt does not match the state'
    if (isWaiting && error !== undefined) return `a waiting run has the error ${String(error)}`
    if (resumable && outputProblem !== undefined) return 'outputProblem does not match the state'
    const needsError = isFinal && state !== 'COMPLETED' && state !== 'CANCELLED'
    return needsError && error === undefined && 'the error is missing'
  },
  'every final state except COMPLETED and CANCELLED has exactly one error event': (change) => {
    const { after, state, isFinal, listAnnounced } = change
    const errors = listAnnounced('error')
    const isError = isFinal && state !== 'COMPLETED' && state !== 'CANCELLED'
    if (errors.length !== (isError ? 1 : 0)) return `${errors.length} error events`
    return isFinal && (after.error !== null) !== isError && 'context.error does not match the event'
  },
  'a context that cannot be trimmed ends the run and states whether it was too long': ({ event, after }) => {
    if (event.type !== 'xstate.error.actor.fitting' || after.state !== 'ERROR') return null
    const { kind } = event.error
    const reason = kind === 'context_overflow' ? 'context_overflow' : 'internal'
    return after.reason !== reason && `the failure was ${kind}, but the reason is ${after.reason}`
  },
  'a failed log write ends the run in ERROR from any state': ({ event, after, state }) => {
    const isRight = state === 'ERROR' && after.reason === 'store_error' && after.error?.code === 'disk_full'
    return event.type === 'STORE_FAILED' && !isRight && `the event led to ${state} (${after.reason})`
  },
  'CANCEL leads to CANCELLED from any state': ({ event, state }) =>
    event.type === 'CANCEL' && state !== 'CANCELLED' && `the event led to ${state}`,
  'no actor starts when a run ends, or runs while the run is settled': (change) => {
    const { isFinal, isRest, started, running } = change
    const unexpected = started.filter(({ src }) => src !== 'deadline').map(({ id }) => id)
    if (isFinal && unexpected.length > 0) return `started: ${unexpected.join(', ')}`
    return isRest && !isFinal && running.length > 0 && `running: ${running.join(', ')}`
  },
  'a resting or concluding run has a matching reason; a running one has none': ({ after, state }) => {
    const expected = reasons[state]
    // Every exit from the other substates sets the reason again, and screening an answer sets it before the end.
    const isFree = after.state !== 'RUNNING' || state === 'RUNNING.asking.screeningOutput'
    const isRight = expected ? expected.includes(after.reason as Reason) : isFree || after.reason === null
    return !isRight && `${state} with reason ${after.reason}`
  },
  'a run ended by a cap states which cap': ({ after, state }) => {
    if (state !== 'MAX_STEPS') return null
    const isReached =
      after.reason === 'max_steps'
        ? after.steps >= (after.config.limits.maxSteps ?? Infinity)
        : after.callCounts?.isOver === true
    return !isReached && `the reason is ${after.reason}`
  },
  'a run paused by a guard names the guard, and a run out of budget names the budget': (change) => {
    const { before, after, state } = change
    if (state === 'PAUSED') return after.verdict && after.reason !== after.verdict.guard && `${after.reason}`
    const refused = after.error?.code === 'shared_budget' ? 'shared_budget' : 'token_budget'
    const isConcluded = after.config.limits.onNearBudget === 'conclude' && before?.reason != null
    const left = isConcluded ? before?.reason : refused
    const spent = state === 'BUDGET_EXCEEDED' ? (findBudgetReason(after) ?? left) : after.reason
    return after.reason !== spent && `the reason is ${after.reason}, but ${spent} is spent`
  },
  "a run completes only with an accepted answer, and with the answer's reason": ({ event, after, state }) => {
    if (state !== 'COMPLETED') return null
    if (event.type.startsWith('xstate.error.')) return `the run completed on ${event.type}`
    const fitting = { refusal: 'refusal', filtered: 'content_filter', truncated: 'max_tokens' }
    // Without the empty-answer guard, an empty answer counts as an answer.
    const isEmpty = after.response === 'empty' && !after.config.guardrails.emptyAnswer
    const isPlain = after.response === 'answer' || isEmpty
    const reason = isPlain ? 'end_turn' : fitting[after.response as keyof typeof fitting]
    if (after.outputProblem !== null) return 'the answer does not match the output schema'
    return reason !== after.reason && `the answer was ${after.response}, but the reason is ${after.reason}`
  },
  'a tool result used as the answer is the output and was cleared by output shields': (change) => {
    const { event, after, state } = change
    const result = findLastResult(after)
    // A model response is the answer itself, even if it is empty and adds nothing to the transcript.
    if (state !== 'COMPLETED' || result === undefined || isAnswer(event)) return null
    const isScreened = after.features.outputShields
    if (isScreened && event.type !== 'xstate.done.actor.outputShields')
      return `the run completed on ${event.type}`
    const expectedOutput =
      isScreened && 'output' in event ? (event.output as { content: string }).content : result
    return after.output !== expectedOutput && `the output is ${after.output}`
  },
  'guards and stopWhen see results before one becomes the answer': ({ event, after, state }) => {
    const isResult = event.type === 'TOOL_RESULT' || event.type === 'xstate.done.actor.resultShields'
    const isAnswered = state === 'RUNNING.asking.screeningOutput' || state === 'COMPLETED'
    const isDue = after.features.userGuards || after.features.stopWhen === true
    return isResult && isAnswered && isDue && 'they did not see the results'
  },
  'a request is made only after the previous batch is settled': ({ after, hasStarted }) =>
    hasStarted('requestModel') && after.calls.length > 0 && 'calls are open',
  'a batch is settled before one of its results is reviewed as the answer': ({ event, after, state }) => {
    const isResult = /^(TOOL_RESULT|xstate\.done\.actor\.result(Shields|Guards))$/.test(event.type)
    const isReviewed = state === 'RUNNING.asking.screeningOutput'
    return isResult && isReviewed && after.calls.length > 0 && 'calls are open'
  },
  'no request follows a result that is the answer': ({ event, after, hasStarted }) => {
    // A guard halted the run before it could end, and a user continued it.
    if (/^(RESUME|STEER|REPLY)$/.test(event.type)) return null
    if (!hasStarted('requestModel') || findLastResult(after) === undefined) return null
    return listLastResults(after).some(({ ends }) => ends) && 'one is'
  },
  'no run ends by itself while steering is pending': ({ event, after, state }) => {
    const isEnd = state === 'COMPLETED' || state === 'WAITING_FOR_INPUT.message'
    return isEnd && event.type.startsWith('xstate.') && after.steering.length > 0 && 'steering waits'
  },
  'a failed request ends the run with the reason of the failure': ({ event, after, state }) => {
    if (event.type !== 'xstate.error.actor.model' || state !== 'ERROR') return null
    const fitting = { context_overflow: 'context_overflow', incomplete: 'incomplete_response' }
    const failed = fitting[event.error.kind as keyof typeof fitting] ?? 'provider_error'
    const reason = event.error.budget === undefined ? failed : 'shared_budget'
    return reason !== after.reason && `the failure was ${event.error.kind}, but the reason is ${after.reason}`
  },
  'the user sees the error of the failed actor': ({ event, after, state }) => {
    const { error } = event as { error?: { code: string; message: string } }
    const isRefused =
      state === 'BUDGET_EXCEEDED' && (error?.code === 'token_budget' || error?.code === 'shared_budget')
    const isFailed = event.type.startsWith('xstate.error.') && state === 'ERROR' && !after.verdict
    if (!isRefused && !isFailed) return null
    return after.error?.message !== error?.message && `the user sees ${after.error?.message}`
  },
  "only an actor that must not fail causes the reason 'internal'": ({ event, after }) => {
    const internal =
      /^xstate\.error\.actor\.(inputShields|retrieval|plan|fitting|callShields|resultShields|callGuards|resultGuards|outputShields|backOff)$/
    return after.reason === 'internal' && !internal.test(event.type) && `by ${event.type}`
  },
  'state changes are announced without gaps': ({ before, after, announced, listAnnounced }) => {
    let at = before?.state ?? null
    for (const { from, to } of listAnnounced('state_changed')) {
      if (from !== at) return `a change from ${from} is announced, but the run was in ${at}`
      at = to
    }
    if (before === undefined && announced[0]?.type !== 'run_started') return 'run_started is missing'
    return at !== after.state && `the last change leads to ${at}, but the run is in ${after.state}`
  },
})

function listLastResults({ messages, tools }: AgentContext): { content: string; ends: boolean }[] {
  const at = messages.findLastIndex(({ role }) => role !== 'tool')
  const asking = messages[at]
  if (asking?.role !== 'assistant') return []
  return messages.slice(at + 1).flatMap((message) => {
    if (message.role !== 'tool' || message.data?.['status'] !== undefined) return []
    const call = asking.tool_calls?.find(({ id }) => id === message.tool_call_id)
    return [{ content: message.content, ends: tools[call?.function.name ?? '']?.endsRun === true }]
  })
}

function findLastResult(context: AgentContext): string | undefined {
  const results = listLastResults(context)
  return (results.find(({ ends }) => ends) ?? results.at(-1))?.content
}
