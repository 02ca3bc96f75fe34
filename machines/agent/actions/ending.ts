import { act } from '../act.js'
import type { EmittedEvent } from '../announcements.js'
import type { AgentContext } from '../context.js'
import type { AgentState, FinalState, Reason } from '../outcome.js'
import { explain } from '../explain.js'
import { outputProblemOf } from '../result-of.js'
import { budgetReason } from '../totals.js'
import { shownMessages } from '../unscreened.js'

/** Says why the run goes where it goes next. */
export const because = act<{ reason: Reason }>((_context, _event, _tell, { reason }) => ({ reason }))

/** A request that the budget refuses is not made, so nothing is spent yet. */
export const becauseOfBudget = act((context) => ({ reason: budgetReason(context) ?? 'token_budget' }))

/** A guard has paused the run, or somebody. */
export const becauseOfPause = act((context) => ({ reason: context.verdict?.guard ?? 'paused' }))

/** How the model has ended its turn. */
export const becauseOfAnswer = act(({ response }) => ({
  reason: (response && endings[response]) ?? 'end_turn',
}))

const endings: Partial<Record<NonNullable<AgentContext['response']>, Reason>> = {
  refusal: 'refusal',
  filtered: 'content_filter',
  truncated: 'max_tokens',
}

/** A non-final state is entered; only states of rest keep the reason that led to them. */
export const enter = act<{ state: AgentState }>((context, _event, tell, { state }) => {
  const rests = state === 'PAUSED' || state === 'WAITING_FOR_INPUT'
  // A run that is resumed enters the state that it is in.
  const reason = rests || context.state === state ? context.reason : null
  if (context.state === null) tell({ type: 'run_started', sessionId: context.sessionId })
  if (context.state !== state) tell({ type: 'state_changed', from: context.state, to: state, reason })
  return { state, reason, ...(state === 'PAUSED' && { pausing: false }) }
})

/** A final state is entered: one `error` event unless all is well, then the one terminal event. */
export const finish = act<{ state: FinalState }>((context, _event, tell, { state }) => {
  const reason = context.reason ?? 'internal'
  const error = state === 'COMPLETED' || state === 'CANCELLED' ? null : explain(context, reason)
  const messages = shownMessages(context)
  for (const [i, message] of messages.entries()) {
    if (message.role === 'user' && message !== context.messages[i]) tell({ type: 'user_message', message })
  }
  if (context.steering.length > 0) tell(undelivered(context))
  const problem = state === 'COMPLETED' ? outputProblemOf(context) : null
  if (problem !== null) tell({ type: 'warning', code: 'output_not_validated', message: problem })
  tell({ type: 'state_changed', from: context.state, to: state, reason })
  if (error) tell({ type: 'error', ...error })
  tell({ type: 'run_ended', state, reason })
  return { state, reason, error, messages, pausing: false }
})

/** Who steered knows what he said; where shields look at input, nobody else is told. */
function undelivered({ steering, features }: AgentContext): EmittedEvent {
  const said = features.inputShields ? 'what it was steered to' : steering.join(' | ')
  return {
    type: 'warning',
    code: 'steering_not_delivered',
    message: `The run ended before the model could be told: ${said}`,
  }
}
