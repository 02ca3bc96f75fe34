import type { AgentConfig } from '../../machines/agent/config.js'
import { ConfigError } from '../errors.js'
import type { Parts } from './parts.js'

/** A cost limit means nothing for a model whose price nobody knows: such a run does not start. */
export async function refuseUnknownPrice({ model, prices }: Parts, config: AgentConfig): Promise<void> {
  if (config.limits.costLimit === 0 || config.budget.onUnknownPrice !== 'error') return
  const tokens = { inputTokens: 1, outputTokens: 1, totalTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 }
  if ((await prices.price(model.provider, model.model, tokens)) !== null) return
  throw new ConfigError(
    'unknown_price',
    `limits.costLimit is set, but the price of '${model.model}' (${model.provider}) is not known. ` +
      `Give it in prices: { '${model.model}': { inputPerMillion, outputPerMillion } }, use limits.tokenBudget instead, ` +
      `or accept uncounted cost with budget.onUnknownPrice: 'warn'.`,
    'limits.costLimit',
  )
}
