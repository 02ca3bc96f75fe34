import { type GuardrailsState, initialGuardrails } from '../../../guards/state.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { Fit } from '../../../machines/agent/fit.js'
import type { Message } from '../../../machines/agent/messages.js'
import { noUsage, type Usage } from '../../../machines/agent/usage.js'

/** What a session hands from one run to the next: plain JSON. */
export interface SessionState {
  messages: Message[]
  /** Totals of all runs. */
  usage: Usage
  guardrails: GuardrailsState
  /** Whether the session has had its one budget warning. */
  warnedOfBudget: boolean
  /** What requests leave out of the transcript; null while all of it fits. */
  fit: Fit | null
}

export function emptySession(): SessionState {
  return { messages: [], usage: noUsage, guardrails: initialGuardrails(), warnedOfBudget: false, fit: null }
}

/** What a run has made of its session. */
export function sessionStateOf(context: AgentContext): SessionState {
  const { messages, usage, guardrails, warnedOfBudget, fit } = context
  return { messages, usage: usage.session, guardrails, warnedOfBudget, fit }
}
