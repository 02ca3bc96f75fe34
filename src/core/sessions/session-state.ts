import { getInitialGuardrails } from '../../../guards/state.js'
import { type AgentContext, countNumbered, type SessionState } from '../../../machines/agent/context.js'
import { isRestState } from '../../../machines/agent/run-result.js'
import { listTurnEnds } from './find-turn.js'
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

export function toSessionState(context: AgentContext): SessionState {
  const { messages, usage, guardrails, warnedOfBudget, fit, loaded, terms, refusals, grants } = context
  const turnEnds = listTurnEnds(context).filter((end) => !isRestState(end.state))
  return {
    messages,
    usage: usage.session,
    guardrails,
    warnedOfBudget,
    fit,
    ...(loaded.length > 0 && { loaded }),
    ...(terms && { terms }),
    ...(turnEnds.length > 0 && { turnEnds }),
    ...(refusals && { refusals }),
    ...(grants && grants.length > 0 && { grants }),
  }
}

/** Cuts the transcript where a branch starts. Totals and guard state cover all branches. */
export function cutState(state: SessionState, { keep }: { keep: number }): SessionState {
  const { messages: all, fit, lastMessageNumber = 0, turnEnds = [], ...rest } = state
  const messages = all.slice(0, keep)
  const ids = new Set(messages.map(({ id }) => id))
  const keptEnds = turnEnds.filter(({ messageId }) => ids.has(messageId))
  return {
    ...rest,
    messages,
    ...(keptEnds.length > 0 && { turnEnds: keptEnds }),
    // The fit is computed again if the cut removes part of the gap.
    fit: fit !== null && fit.from > keep ? null : fit,
    lastMessageNumber: Math.max(lastMessageNumber, countNumbered(all)),
  }
}
