import type { RunResult } from '../../../machines/agent/outcome.js'

/** What a sub-agent's provider says about the account and about the configuration: no second try mends either. */
const quota = /insufficient|billing|balance|payment|credit|quota|hard_limit|http_402/i
const configuration =
  /model|api_?key|auth|permission|forbidden|denied|access|unsupported|not_?found|deployment|parameter|invalid_(request|value|type)|unknown_(url|parameter)|http_4(00|01|03|04|05|22)\b/i
/** What a provider objects to in the content may pass with other content. */
const content = /content|prompt|policy|safety|moderation|filter/i

/**
 * The code of a sub-agent's error, as the guard against terminal delegation knows it: `provider_quota` when the account
 * is exhausted, `provider_config` when model, key or parameters were rejected. Judged by the code of the failed request,
 * and only when trying again is no use. Any other code stays as it is.
 */
export function childCode({ state, reason, error }: RunResult): string | null {
  if (error === undefined) return null
  if (state !== 'ERROR' || reason !== 'provider_error' || error.recoverable) return error.code
  if (quota.test(error.code)) return 'provider_quota'
  return configuration.test(error.code) && !content.test(error.code) ? 'provider_config' : error.code
}
