import type { SnapshotFrom } from 'xstate'
import type { agentMachine } from '../../../machines/agent.machine.js'
import { budgetReason } from '../../../machines/agent/totals.js'

/** What the future of an agent depends on: everything that the chart's guards read, and nothing that only grows. */
export function agentStateKey({ context, value, historyValue }: SnapshotFrom<typeof agentMachine>): string {
  const { config, features, guardrails, steps, attempt, rateLimits, recoveries, reprompts, emptyRetries } = context
  return JSON.stringify([
    config,
    features,
    guardrails,
    [steps, attempt, rateLimits, recoveries, reprompts, emptyRetries],
    [context.state, context.reason, context.response, context.lastBatchFailed, context.pausing],
    [context.deadline, context.timeLeft, budgetReason(context)],
    [context.steering.length, context.inbox.length, context.nudges.length, context.verdict],
    context.calls.map(({ name, needs, started, result }) => [name, needs, started, result?.status, result?.content]),
    Object.values(historyValue as Record<string, { id: string }[]>).map((nodes) => nodes.map(({ id }) => id)),
    value,
  ])
}
