import type { AgentConfig } from '../../../machines/agent/config.js'
import { guards } from '../../../guards/roster.js'
import { deepFreeze, isObject } from '../base/values.js'
import { type Problem, invalidInputError, checkInput } from './check-input.js'
import { defaultConfig, enabledGuards } from './defaults.js'
import { findPreset } from './presets.js'
import { type GivenConfig, agentSchema } from './agent-sections.js'

/** Merges settings over their preset and the base. Throws a ConfigError for an unknown preset or contradictory keys. */
export function mergeConfig(input: GivenConfig, base: AgentConfig, what: string): AgentConfig {
  const { preset } = input
  const under =
    preset === undefined ? base : mergeConfig(findPreset(preset, 'preset') as GivenConfig, base, what)
  const merged = deepFreeze(overlay(allGuardsOn, under, applyImpliedGuards(input, under)))
  const problems = findCrossedSteps('guardrails', merged.guardrails)
  if (problems.length > 0) throw invalidInputError(what, problems)
  return merged
}

/** Defaults for guards that are off in the base, used when one of their keys is set. */
const allGuardsOn = {
  ...defaultConfig,
  guardrails: { ...defaultConfig.guardrails, ...enabledGuards },
} satisfies AgentConfig

/** Merges settings over the base. A guard that is off in the base starts from its defaults. */
function overlay<Value>(defaults: Value, base: Value, value: unknown): Value
function overlay(defaults: unknown, base: unknown, value: unknown): unknown {
  if (!isObject(defaults) || value === null || (value === undefined && !isObject(base))) {
    return value === undefined ? base : value
  }
  const [under, over] = [isObject(base) ? base : defaults, isObject(value) ? value : {}]
  return Object.fromEntries(
    Object.keys(defaults).map((key) => [key, overlay(defaults[key], under[key], over[key])]),
  )
}

/**
 * Adds implied settings. `maxRepeatedToolSteps` configures the repeated-call guard, so a number enables it and `null`
 * disables it. A configured guard replaces its part of the progress guard.
 */
function applyImpliedGuards(input: GivenConfig, base: AgentConfig): unknown {
  if (!input.guardrails) return input
  const { maxRepeatedToolSteps, ...rest } = input.guardrails
  const guardrails: typeof input.guardrails = { ...rest }
  if (maxRepeatedToolSteps === null) guardrails.repeatedCall = null
  else if (maxRepeatedToolSteps !== undefined) {
    guardrails.maxRepeatedToolSteps = maxRepeatedToolSteps
    if (guardrails.repeatedCall === undefined && !base.guardrails.repeatedCall) guardrails.repeatedCall = {}
  }
  const { progress = base.guardrails.progress } = guardrails
  const replaced = guards.flatMap(([key, { insteadOf = [] }]) =>
    guardrails[key] === undefined ? [] : insteadOf,
  )
  if (progress === null || replaced.length === 0) return { ...input, guardrails }
  const named = Object.entries(guardrails.progress ?? {}).filter(([, value]) => value !== undefined)
  const parts = Object.fromEntries([...replaced.map((part) => [part, null] as const), ...named])
  return { ...input, guardrails: { ...guardrails, progress: parts } }
}

function findCrossedSteps(path: string, settings: unknown): Problem[] {
  if (typeof settings !== 'object' || settings === null) return []
  const { haltAt } = settings as { haltAt?: unknown }
  return Object.entries(settings).flatMap(([name, value]: [string, unknown]) => {
    const key = `${path}.${name}`
    const isStep = (name === 'nudgeAt' || name === 'blockAt') && typeof value === 'number'
    if (!isStep || typeof haltAt !== 'number' || value <= haltAt) return findCrossedSteps(key, value)
    return [{ path: key, sentence: `${key} (${value}) must not exceed ${path}.haltAt (${haltAt}).` }]
  })
}

export { defaultConfig }

/**
 * Validates a configuration, fills in the defaults and freezes it. Omitted keys use the value of `base`, and `null`
 * disables a limit or guard. `beside` lists the other options at the same level, for hints about misspellings. Throws
 * a ConfigError (`invalid_config`) with all problems, one per line. Its `subject` is the path of the first problem.
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

/** Overrides limits for one run. Throws a ConfigError, as `resolveConfig` does. */
export function overrideLimits(config: AgentConfig, limits: unknown): AgentConfig {
  return limits === undefined ? config : resolveConfig({ limits }, config)
}
