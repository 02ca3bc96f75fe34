import type { AgentConfig } from '../../machines/agent/config.js'
import { type Problem, refusal } from './check.js'
import { defaultConfig } from './defaults.js'
import { deepFreeze } from './freeze.js'
import type { GivenConfig } from './sections.js'

/** Lays what was given over the base, key by key. Throws a ConfigError where keys contradict each other. */
export function mergeConfig(given: GivenConfig, base: AgentConfig, what: string): AgentConfig {
  const merged = deepFreeze(overlay(defaultConfig, base, withoutRepetition(given)))
  const problems = contradictions(merged)
  if (problems.length > 0) throw refusal(what, problems)
  return merged
}

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

/** `maxRepeatedToolSteps: null` means no such guard: the number itself has no "off". */
function withoutRepetition(given: GivenConfig): unknown {
  if (given.guardrails?.maxRepeatedToolSteps !== null) return given
  const { maxRepeatedToolSteps: _, ...guardrails } = given.guardrails
  return { ...given, guardrails: { ...guardrails, repeatedCall: null } }
}

function contradictions({ guardrails: { cycle } }: AgentConfig): Problem[] {
  if (cycle === null || cycle.nudgeAt <= cycle.haltAt) return []
  const path = 'guardrails.cycle.nudgeAt'
  return [
    {
      path,
      sentence: `${path} (${cycle.nudgeAt}) must not exceed guardrails.cycle.haltAt (${cycle.haltAt}).`,
    },
  ]
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
