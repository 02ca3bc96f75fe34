import type { AgentContext } from '../../../machines/agent/context.js'

/**
 * The difference between the path's state and the live state, apart from the machine's position, or null when
 * they agree. Ignores ids, times and wordings. A path read from a file carries no context.
 */
export function agreement(planned: object | undefined, live: { context: AgentContext }): string | null {
  if (planned === undefined || !('context' in planned)) return null
  const expected = JSON.stringify(essence(planned.context as AgentContext))
  const actual = JSON.stringify(essence(live.context))
  return expected === actual ? null : `its context should be\n${expected}\nbut is\n${actual}`
}

function essence(context: AgentContext): unknown {
  const { state, reason, steps, attempt, rateLimits, pausing } = context
  const { recoveries, reprompts, emptyRetries, outputRepairs } = context
  return {
    state,
    reason,
    counters: { steps, attempt, rateLimits, recoveries, reprompts, emptyRetries, outputRepairs },
    isInvalid: context.outputProblem !== null,
    pausing,
    steering: context.steering,
    tokens: [context.usage.run.totalTokens, context.usage.session.totalTokens],
    calls: context.calls.map(({ id, needs, started, result }) => [id, needs, started, result?.status]),
    messages: context.messages.map(({ role, data }) => [role, data?.['status'] ?? data?.['reason']]),
    nudges: context.nudges.length,
    verdict: context.verdict?.guard,
    isError: context.error !== null,
  }
}
