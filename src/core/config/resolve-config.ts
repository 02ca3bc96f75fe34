import type { AgentConfig } from '../../../machines/agent/config.js'
import { checkInput } from './check-input.js'
import { defaultConfig } from './defaults.js'
import { mergeConfig } from './merge-config.js'
import { agentSchema } from './agent-sections.js'

export { defaultConfig }

/**
 * A whole configuration from what a user wrote: strict, with every default filled in, deep-frozen.
 *
 * An omitted (or undefined) key takes the value of `base`, by default of `defaultConfig`; `null` switches a limit or a
 * guard off. `beside` names options that stand next to these sections, so that a mistyped one can be recognised.
 *
 * Throws a ConfigError (`invalid_config`) that lists every problem, one a line; its `subject` is the first one's path.
 *
 * @example
 * resolveConfig({ limits: { maxSteps: null, costLimit: 2 } }).limits.maxSteps // null: no cap
 */
export function resolveConfig(
  input: unknown = {},
  base: AgentConfig = defaultConfig,
  beside: readonly string[] = [],
): AgentConfig {
  return mergeConfig(checkInput(agentSchema, input, 'configuration', { beside }), base, 'configuration')
}

/** The configuration with some limits changed for one run, key by key. Throws a ConfigError, as `resolveConfig` does. */
export function overrideLimits(config: AgentConfig, limits: unknown): AgentConfig {
  return resolveConfig({ limits }, config)
}
