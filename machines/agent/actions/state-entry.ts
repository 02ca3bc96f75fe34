import { isAtStepCap } from '../../../guards/call-caps.js'
import { toAction, toActionOn } from '../update-action.js'
import type { AgentContext } from '../context.js'
import { withoutGrants } from '../grants.js'
import { type AgentState, type FinalState, type Reason, isRestState } from '../run-result.js'
import { explainEnd } from '../explain-end.js'
import { findOutputProblem } from '../to-result.js'
import { findBudgetReason, findNearReason } from '../budget-totals.js'
import { maskMessages } from '../mask-uncleared.js'
import { spendUsage } from './spend-usage.js'

export const setReason = toAction<{ reason: Reason }>((_context, _event, _tell, { reason }) => ({ reason }))

/** After a concluding request, the reason is already set. A request that the budget refuses is not sent. */
export const setBudgetReason = toAction((context) => {
  const { reason, error } = context
  const refused = error?.code === 'shared_budget' ? 'shared_budget' : 'token_budget'
  return { reason: findBudgetReason(context) ?? (reason === 'cost_limit' ? reason : refused) }
})

export const setNearReason = toAction((context) => ({ reason: findNearReason(context) }))

export const setCapReason = toAction(({ reason, steps, config }) => ({
  // After a concluding request the reason is already set, even if the run also used up its steps.
  reason:
    reason === 'max_tool_calls' || !isAtStepCap(steps, config.limits.maxSteps)
      ? 'max_tool_calls'
      : 'max_steps',
}))

/** A guard, `pause()`, a sleep, or an exhausted shared budget. Only the last two end without `resume()`. */
export const setPauseReason = toAction(({ verdict, pausing, wakeAt, error }) =>
  verdict === null && !pausing && wakeAt !== null
    ? { reason: error?.code === 'shared_budget' ? ('shared_budget' as const) : ('sleeping' as const) }
    : { reason: verdict?.guard ?? (pausing === 'approval_expired' ? pausing : 'paused'), wakeAt: null },
)

/** Sets the reason for cancelling a run. Any event other than CANCEL means that a question expired. */
export const setCancelReason = toAction((_context, { type }) => ({
  reason: type === 'CANCEL' ? 'cancelled' : 'approval_expired',
  pausing: false,
}))

export const setAnswerReason = toAction(({ response }) => ({
  reason: (response && reasonByResponse[response]) ?? 'end_turn',
}))

const reasonByResponse: Partial<Record<NonNullable<AgentContext['response']>, Reason>> = {
  refusal: 'refusal',
  filtered: 'content_filter',
  truncated: 'max_tokens',
}

/** Enters a non-final state. The reason is kept only in resting states. */
export const enter = toAction<{ state: AgentState }>((context, _event, emit, { state }) => {
  // A resumed run re-enters its current state.
  const reason = isRestState(state) || context.state === state ? context.reason : null
  if (context.state === null) emit({ type: 'run_started', sessionId: context.sessionId })
  if (context.state !== state) {
    const wakeAt = state === 'PAUSED' && context.wakeAt !== null ? { wakeAt: context.wakeAt } : {}
    emit({ type: 'state_changed', from: context.state, to: state, reason, ...wakeAt })
  }
  return { state, reason, ...(state === 'PAUSED' && { pausing: false }) }
})

export const finish = toAction<{ state: FinalState }>((context, _event, emit, { state }) => {
  const reason = context.reason ?? 'internal'
  const error = state === 'COMPLETED' || state === 'CANCELLED' ? null : explainEnd(context, reason)
  const messages = maskMessages(context)
  for (const [i, message] of messages.entries()) {
    if (message.role === 'user' && message !== context.messages[i]) emit({ type: 'user_message', message })
  }
  if (context.steering.length > 0) {
    const text = context.features.inputShields ? uncleared : context.steering.join(' | ')
    const message = `The run ended before the model received the steering message: ${text}`
    emit({ type: 'warning', code: 'steering_not_delivered', message })
  }
  const problem = state === 'COMPLETED' ? findOutputProblem(context) : null
  if (problem !== null) emit({ type: 'warning', code: 'output_not_validated', message: problem })
  emit({ type: 'state_changed', from: context.state, to: state, reason })
  if (error) emit({ type: 'error', ...error })
  emit({ type: 'run_ended', state, reason })
  return { state, reason, error, messages, pausing: false, wakeAt: null }
})

const uncleared = '[withheld: pending shield review]'

/** Records that the log is no longer writable. Stored records are safe, but later events would be lost. */
export const noteStoreFailure = toActionOn('STORE_FAILED', (_context, { failure }) => ({
  error: { ...failure, recoverable: true },
}))

/** Calls that have not started will run in the process that resumes the run. */
export const noteRelease = toActionOn('RELEASED', (context, event, emit) => {
  const { usage = null, notStarted = [] } = event
  const cost = spendUsage(context, usage, emit, { isCut: true })
  if (notStarted.length === 0) return cost
  const ungranted = withoutGrants(context, notStarted)
  const calls = ungranted.calls.map((call) => {
    if (call.result !== undefined || !notStarted.includes(call.id)) return call
    const { started: _started, ...waiting } = call
    return waiting
  })
  return { ...cost, ...ungranted, calls }
})
