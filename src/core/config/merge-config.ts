import type { AgentConfig } from '../../../machines/agent/config.js'
import { type Problem, invalidInputError } from './check-input.js'
import { defaultConfig, enabledGuards } from './defaults.js'
import { deepFreeze } from '../base/freeze.js'
import { findCrossedSteps, applyImpliedGuards } from './guard-settings.js'
import { findPreset } from './presets.js'
import type { GivenConfig } from './agent-sections.js'

/**
 * Lays what was given over its preset, and that over the base, key by key. Throws a ConfigError for an unknown preset, and
 * where keys contradict each other.
 */
export function mergeConfig(given: GivenConfig, base: AgentConfig, what: string): AgentConfig {
  const { preset } = given
  const under =
    preset === undefined ? base : mergeConfig(findPreset(preset, 'preset') as GivenConfig, base, what)
  const merged = deepFreeze(overlay(allGuardsOn, under, applyImpliedGuards(given, under)))
  const problems = findContradictions(merged)
  if (problems.length > 0) throw invalidInputError(what, problems)
  return merged
}

/** What a guard starts from that is off, when a key of it is given. */
const allGuardsOn = {
  ...defaultConfig,
  guardrails: { ...defaultConfig.guardrails, ...enabledGuards },
} satisfies AgentConfig

/** A guard that the base has switched off starts from its defaults when a key of it is given. */
function overlay<Value>(defaults: Value, base: Value, given: unknown): Value
function overlay(defaults: unknown, base: unknown, given: unknown): unknown {
  if (!isObject(defaults) || given === null || (given === undefined && !isObject(base))) {
    return given === undefined ? base : given
  }
  const [under, over] = [isObject(base) ? base : defaults, isObject(given) ? given : {}]
  return Object.fromEntries(
    Object.keys(defaults).map((key) => [key, overlay(defaults[key], under[key], over[key])]),
  )
}

function findContradictions({ guardrails }: AgentConfig): Problem[] {
  return findCrossedSteps('guardrails', guardrails)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
