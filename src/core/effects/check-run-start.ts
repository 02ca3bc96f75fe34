import type { AgentConfig } from '../../../machines/agent/config.js'
import type { Usage } from '../../../machines/agent/usage.js'
import { describeError, ConfigError } from '../base/errors.js'
import type { AgentParts } from '../live/agent-parts.js'
import type { ToolSet } from '../tools/tool-set.js'

/** A cost limit needs known costs, past and future: a run without them does not start. */
export async function checkPriceKnown(
  { model, prices }: Pick<AgentParts, 'model' | 'prices'>,
  { limits, budget }: AgentConfig,
  session: Usage,
): Promise<void> {
  if (limits.costLimit === 0 || budget.onUnknownPrice !== 'error') return
  if (budget.scope === 'session' && session.cost === null) {
    throw new ConfigError(
      'unknown_price',
      'limits.costLimit is set, but this session has used tokens before whose price is not known. ' +
        "Start a new session, count this run alone with budget.scope: 'run', or use limits.tokenBudget instead.",
      'limits.costLimit',
    )
  }
  for (const { provider, model: name } of [model, ...(model.fallbacks ?? [])]) {
    if ((await prices.price(provider, name, anyUsage)) !== null) continue
    throw new ConfigError(
      'unknown_price',
      `limits.costLimit is set, but the price of '${name}' (${provider}) is not known. ` +
        `Give it in prices: { '${name}': { inputPerMillion, outputPerMillion } }, use limits.tokenBudget instead, ` +
        `or accept uncounted cost with budget.onUnknownPrice: 'warn'.`,
      'limits.costLimit',
    )
  }
}

/**
 * A search for deferred tools needs a search engine. The check comes before the first request, not with the first search.
 * @throws {ConfigError} `missing_package`
 */
export async function checkSearchInstalled({ search }: Pick<ToolSet, 'search'>): Promise<void> {
  try {
    await search?.ready()
  } catch (error) {
    const message = `${describeError(error)}. Or give toolSearch a search of your own: toolSearch({ search: (query, tools) => names }).`
    throw new ConfigError('missing_package', message, 'tools', { cause: error })
  }
}

const anyUsage = {
  inputTokens: 1,
  outputTokens: 1,
  totalTokens: 2,
  cachedInputTokens: 0,
  reasoningTokens: 0,
}

/**
 * Fitting a request needs a tokenizer. The check comes before the first request, not when one has grown too large.
 * @throws {ConfigError} `missing_package`
 */
export async function checkTokenizerInstalled(
  { tokenizer }: AgentParts,
  { context }: AgentConfig,
): Promise<void> {
  if (context.window <= 0 || tokenizer) return
  const { loadDefaultTokenizer } = await import('../context/default-tokenizer.js')
  try {
    await loadDefaultTokenizer()
  } catch (error) {
    const message = `${describeError(error)}. Or give createAgent a tokenizer of your own.`
    throw new ConfigError('missing_package', message, 'context.window', { cause: error })
  }
}
