import type { Features } from '../../../machines/agent/context.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import type { ToolResult } from '../../../machines/agent/batch-calls.js'
import { limitText } from '../base/text.js'
import { isAccountExhausted } from '../models/to-model-failure.js'

/** What the model reads of a sub-agent that has ended. Only one that has completed has succeeded. */
export function toChildResult(
  result: RunResult,
  durationMs: number,
  maxChars: number,
  { resultShields }: Pick<Features, 'resultShields'>,
): ToolResult {
  const { state, error, output } = result
  // Guards repeat the message, and may do so before shields have seen the result.
  const child = { state, code: toChildErrorCode(result), message: (!resultShields && error?.message) || '' }
  if (state === 'COMPLETED') {
    return {
      status: 'ok',
      durationMs,
      child,
      ...limitText(output || 'It has ended without a word.', maxChars),
    }
  }
  const isTransient = result.reason === 'provider_error' && error?.recoverable === true
  return {
    status: 'error',
    errorKind: isTransient ? 'transient' : 'failed',
    durationMs,
    child,
    ...limitText(
      `The sub-agent did not finish: ${describeEnd(result)}\n${describeProgress(result)}`,
      maxChars,
    ),
  }
}

function describeEnd({ state, reason, steps, error }: RunResult): string {
  switch (state) {
    case 'MAX_STEPS':
      return `it reached its limit of ${steps} steps.`
    case 'BUDGET_EXCEEDED':
      return 'it has used up the budget that it was given.'
    case 'TIMED_OUT':
      return 'its time was up.'
    case 'CANCELLED':
      return 'it was cancelled.'
    case 'BLOCKED':
      return 'a shield refused what it was given or what it answered.'
    case 'PAUSED':
      return `a guardrail stopped it (${reason}).${error ? ` ${error.message}` : ''}`
    default:
      return `it failed (${error?.code ?? reason}).${error ? ` ${error.message}` : ''}`
  }
}

function describeProgress({ output, steps, messages }: RunResult): string {
  if (output !== '') return `What it had so far: ${output}`
  const called = messages.flatMap((message) =>
    message.role === 'assistant' ? (message.tool_calls ?? []).map((call) => call.function.name) : [],
  )
  if (called.length === 0) return 'It had nothing so far.'
  const counts = [...new Set(called)].map(
    (name) => `${name} (${called.filter((one) => one === name).length})`,
  )
  return `It had said nothing so far. In ${steps} steps it called ${counts.join(', ')}.`
}

/** What a sub-agent's provider says about the account and about the configuration: no second try mends either. */
const quota = /insufficient|billing|balance|payment|credit|quota|hard_limit|http_402/i
const configuration =
  /model|api_?key|auth|permission|forbidden|denied|access|unsupported|not_?found|deployment|parameter|invalid_(request|value|type)|unknown_(url|parameter)|http_4(00|01|03|04|05|22)\b/i
/** What a provider objects to in the content may pass with other content. */
const content = /content|prompt|policy|safety|moderation|filter/i

/**
 * The code of a sub-agent's error, as the guard against terminal delegation knows it: `provider_quota` when the account
 * is exhausted, `provider_config` when model, key or parameters were rejected. Judged by the code of the failed request and
 * by what its message says of the status and of the account, and only when trying again is no use. Any other code stays.
 */
function toChildErrorCode({ state, reason, error }: RunResult): string | null {
  if (error === undefined) return null
  if (state !== 'ERROR' || reason !== 'provider_error' || error.recoverable) return error.code
  if (quota.test(error.code) || /^Status 402\b/.test(error.message) || isAccountExhausted(error.message))
    return 'provider_quota'
  return configuration.test(error.code) && !content.test(error.code) ? 'provider_config' : error.code
}
