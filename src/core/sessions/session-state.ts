import { getInitialGuardrails } from '../../../guards/state.js'
import type { AgentContext, SessionState } from '../../../machines/agent/context.js'
import { noUsage } from '../../../machines/agent/usage.js'

export function createSessionState(): SessionState {
  return {
    messages: [],
    usage: noUsage,
    guardrails: getInitialGuardrails(),
    warnedOfBudget: false,
    fit: null,
  }
}

/** What a run has made of its session. */
export function toSessionState(context: AgentContext): SessionState {
  const { messages, usage, guardrails, warnedOfBudget, fit } = context
  return { messages, usage: usage.session, guardrails, warnedOfBudget, fit }
}
