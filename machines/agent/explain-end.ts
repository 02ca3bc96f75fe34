import { formatBudgetMessage } from '../../guards/budget.js'
import { formatInvalidOutputMessage } from '../../guards/unusable-answer.js'
import { formatCallCapEnd, formatStepCapMessage } from '../../guards/call-caps.js'
import { omitUndefined } from '../../guards/lib/json.js'
import type { AgentContext } from './context.js'
import type { Reason, RunFailure } from './run-result.js'
import { findOutputProblem } from './to-result.js'
import { getBudgetTotals, toBudgetLimits } from './budget-totals.js'

export function explainEnd(context: AgentContext, reason: Reason): RunFailure {
  const { error } = context
  // A shared budget that cannot be reached is not exhausted.
  const isUnasked = reason === 'shared_budget' && error?.code !== reason
  if (error !== null && (isUnasked || !isLimit(reason))) return error
  // The error for a refused request includes the amount that the request would have needed.
  const wasRefused = (reason === 'token_budget' || reason === 'shared_budget') && error?.code === reason
  const message = wasRefused ? error.message : formatEndMessage(context, reason)
  // A limit ended the run before its output was checked.
  const note = isLimit(reason) && findOutputProblem(context) !== null ? ' The output was not validated.' : ''
  return {
    code: reason,
    message: message + note,
    recoverable: isLimit(reason),
    ...omitUndefined({ budget: wasRefused ? error.budget : undefined }),
  }
}

const limitReasons: readonly Reason[] = [
  'timeout',
  'max_steps',
  'max_tool_calls',
  'token_budget',
  'output_tokens',
  'cost_limit',
  'shared_budget',
]

function isLimit(reason: Reason): boolean {
  return limitReasons.includes(reason)
}

function formatEndMessage(context: AgentContext, reason: Reason): string {
  const { limits } = context.config
  switch (reason) {
    case 'timeout':
      return `The run took longer than limits.timeoutMs (${limits.timeoutMs} ms). Raise it, or continue with a new message.`
    case 'max_steps':
      return formatStepCapMessage(limits.maxSteps ?? context.steps)
    case 'max_tool_calls':
      return formatCallCapEnd(limits.maxToolCalls ?? 0)
    case 'token_budget':
    case 'output_tokens':
    case 'cost_limit':
      return formatBudgetMessage(reason, getBudgetTotals(context), toBudgetLimits(context.config))
    case 'max_tokens':
      return 'A tool call was cut off at the output limit and was not executed. Raise sampling.maxTokens or guardrails.maxTokensRecoveries.'
    case 'empty_response':
      return 'The model answered with neither text nor tool calls. Try again, or try another model.'
    case 'invalid_output':
      return formatInvalidOutputMessage(
        context.outputProblem ?? '',
        context.config.completion.maxOutputRepairs,
      )
    case 'shield':
      return 'A shield refused the content.'
    default:
      return `The run ended: ${reason}.`
  }
}
