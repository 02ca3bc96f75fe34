import type { Attributes } from '@opentelemetry/api'
import { scrubSecrets } from '../core/shields/scrub-secrets.js'
import { countBudgetTokens } from '../../guards/budget.js'
import type { EmittedEvent } from '../../machines/agent/announcements.js'
import type { AgentContext } from '../../machines/agent/context.js'
import { getBudgetTotals, toBudgetLimits } from '../../machines/agent/budget-totals.js'
import type { TelemetryRunInfo } from '../core/telemetry/telemetry.js'

/** End states that spans report as failures. */
export const failedStates: ReadonlySet<string> = new Set([
  'ERROR',
  'TIMED_OUT',
  'BUDGET_EXCEEDED',
  'MAX_STEPS',
  'BLOCKED',
])

/** What a stretch begins with: what samplers may decide by. */
export function createStretchStart(
  run: TelemetryRunInfo,
  agentName: string | undefined,
): { name: string; attributes: Attributes } {
  const attributes: Attributes = {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.conversation.id': run.sessionId,
    'gen_ai.request.model': run.model.model,
    'statewright.run.id': run.runId,
    'statewright.resumed': run.isResumed,
  }
  if (agentName === undefined) return { name: 'invoke_agent', attributes }
  attributes['gen_ai.agent.name'] = agentName
  return { name: `invoke_agent ${agentName}`, attributes }
}

/**
 * How the run stands when a stretch ends. Its tokens are told as `statewright.usage.*`: those of `gen_ai.usage.*` stand at
 * the requests, and a sum over all spans must not count them twice.
 */
export function createStretchEnd(
  context: AgentContext,
  state: string | null,
  reason: string | null,
): Attributes {
  const { steps, config } = context
  const { run: usage } = context.usage
  const { maxSteps, tokenBudget, outputTokens, costLimit } = config.limits
  const totals = getBudgetTotals(context)
  const attributes: Attributes = {
    'statewright.steps': steps,
    'statewright.usage.input_tokens': usage.inputTokens,
    'statewright.usage.output_tokens': usage.outputTokens,
    'statewright.usage.cache_read.input_tokens': usage.cachedInputTokens,
    'statewright.usage.reasoning.output_tokens': usage.reasoningTokens,
  }
  if (state !== null) attributes['statewright.outcome.state'] = state
  if (reason !== null) attributes['statewright.outcome.reason'] = reason
  if (usage.cost !== null) attributes['statewright.usage.cost_usd'] = usage.cost
  if (usage.estimated) attributes['statewright.usage.estimated'] = true
  const budget = (name: string, limit: number | null, used: number | null): void => {
    if (limit === null || limit === 0 || used === null) return
    attributes[`statewright.budget.${name}.limit`] = limit
    attributes[`statewright.budget.${name}.used`] = used
  }
  budget('steps', maxSteps, steps)
  budget('tokens', tokenBudget, countBudgetTokens(totals, toBudgetLimits(config)))
  budget('output_tokens', outputTokens, totals.outputTokens)
  budget('cost_usd', costLimit, totals.cost)
  return attributes
}

/** What is told in a stretch; what people, tools or models have said goes with it only where content is recorded. */
export function toSpanEvent(
  announcement: EmittedEvent,
  captureContent: boolean,
): { name: string; attributes: Attributes } | null {
  switch (announcement.type) {
    case 'state_changed': {
      const { from, to, reason, wakeAt } = announcement
      // Between its requests and its calls a run turns with every step: spans of these say so, and a span has room for few events.
      if (to === 'WAITING_FOR_TOOL' || (to === 'RUNNING' && from === 'WAITING_FOR_TOOL')) return null
      return createSpanEvent('state', {
        ...(from && { from }),
        to,
        ...(reason && { reason }),
        ...(wakeAt !== undefined && { wake_at: wakeAt }),
      })
    }
    case 'guardrail': {
      const { guard, action, rule, evidence, message } = announcement
      const content = captureContent
        ? { evidence: scrubSecrets(evidence), message: scrubSecrets(message) }
        : {}
      return createSpanEvent('guardrail', { guard, action, ...(rule !== undefined && { rule }), ...content })
    }
    case 'retry': {
      const { attempt, delayMs, code, message, model } = announcement
      const content = captureContent ? { message: scrubSecrets(message) } : {}
      return createSpanEvent('retry', {
        attempt,
        delay_ms: delayMs,
        code,
        ...(model !== undefined && { model }),
        ...content,
      })
    }
    case 'budget_warning': {
      const { remainingTokens: tokens, remainingCost: cost } = announcement
      const remaining = {
        ...(tokens !== null && { remaining_tokens: tokens }),
        ...(cost !== null && { remaining_cost_usd: cost }),
      }
      return createSpanEvent('budget_warning', remaining)
    }
    case 'tools_loaded':
      return createSpanEvent('tools_loaded', { names: announcement.names.join(', ') })
    case 'handed_off': {
      const { from, to } = announcement
      return createSpanEvent('handed_off', { ...(from !== null && { from }), to })
    }
    case 'step_prepared': {
      const { changes, model } = announcement
      return createSpanEvent('step_prepared', {
        changes: changes.join(', '),
        ...(model !== undefined && { model }),
      })
    }
    case 'context_fitted': {
      const { strategy, before, after, dropped } = announcement
      return createSpanEvent('context_fitted', { strategy, before, after, dropped })
    }
    default:
      return null
  }
}

function createSpanEvent(name: string, attributes: Attributes): { name: string; attributes: Attributes } {
  const entries = Object.entries(attributes).map(([key, value]) => [`statewright.${name}.${key}`, value])
  return { name: `statewright.${name}`, attributes: Object.fromEntries(entries) as Attributes }
}
