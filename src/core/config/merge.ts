import type { AgentConfig } from '../../../machines/agent/config.js'
import { type Problem, refusal } from './check.js'
import { defaultConfig, guardsWhenOn } from './defaults.js'
import { deepFreeze } from '../base/freeze.js'
import { crossedSteps, withGuards } from './guard-settings.js'
import { findPreset } from './presets.js'
import type { GivenConfig } from './sections.js'

/**
 * Lays what was given over its preset, and that over the base, key by key. Throws a ConfigError for an unknown preset, and
 * where keys contradict each other.
 */
export function mergeConfig(given: GivenConfig, base: AgentConfig, what: string): AgentConfig {
  const { preset } = given
  const under =
    preset === undefined ? base : mergeConfig(findPreset(preset, 'preset') as GivenConfig, base, what)
  const merged = deepFreeze(overlay(everyGuard, under, withGuards(given, under)))
  const problems = contradictions(merged)
  if (problems.length > 0) throw refusal(what, problems)
  return merged
}

/** What a guard starts from that is off, when a key of it is given. */
const everyGuard = {
  ...defaultConfig,
  guardrails: { ...defaultConfig.guardrails, ...guardsWhenOn },
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

function contradictions({ guardrails }: AgentConfig): Problem[] {
  return crossedSteps('guardrails', guardrails)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
