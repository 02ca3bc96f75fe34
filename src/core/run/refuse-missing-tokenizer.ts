import type { AgentConfig } from '../../../machines/agent/config.js'
import { ConfigError } from '../base/errors.js'
import type { AgentParts } from '../live/parts.js'
import { describe } from '../base/plain-error.js'

/**
 * Requests cannot be fitted when nobody can count them: before the first is sent, not when one has grown too large.
 * @throws {ConfigError} `missing_package`
 */
export async function refuseMissingTokenizer(
  { tokenizer }: AgentParts,
  { context }: AgentConfig,
): Promise<void> {
  if (context.window <= 0 || tokenizer) return
  const { defaultTokenizer } = await import('../context/tokenizer.js')
  try {
    await defaultTokenizer()
  } catch (error) {
    const message = `${describe(error)}. Or give createAgent a tokenizer of your own.`
    throw new ConfigError('missing_package', message, 'context.window', { cause: error })
  }
}
