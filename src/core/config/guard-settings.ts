import { guards } from '../../../guards/roster.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { Problem } from './check-input.js'
import type { GivenConfig } from './agent-sections.js'

/**
 * The settings with what they imply: `maxRepeatedToolSteps` is the repeated-call guard's number, so giving it switches
 * that guard on, and `null` switches it off; and each guard that is named takes its part from the progress guard.
 */
export function applyImpliedGuards(given: GivenConfig, base: AgentConfig): unknown {
  if (!given.guardrails) return given
  const { maxRepeatedToolSteps, ...rest } = given.guardrails
  const guardrails: typeof given.guardrails = { ...rest }
  if (maxRepeatedToolSteps === null) guardrails.repeatedCall = null
  else if (maxRepeatedToolSteps !== undefined) {
    guardrails.maxRepeatedToolSteps = maxRepeatedToolSteps
    if (guardrails.repeatedCall === undefined && !base.guardrails.repeatedCall) guardrails.repeatedCall = {}
  }
  const { progress } = guardrails
  if (progress === null || (progress === undefined && base.guardrails.progress === null)) {
    return { ...given, guardrails }
  }
  const taken = guards.flatMap(([key, { insteadOf = [] }]) =>
    guardrails[key] === undefined ? [] : insteadOf,
  )
  if (taken.length === 0) return { ...given, guardrails }
  const named = Object.entries(progress ?? {}).filter(([, value]) => value !== undefined)
  const parts = Object.fromEntries([...taken.map((part) => [part, null] as const), ...named])
  return { ...given, guardrails: { ...guardrails, progress: parts } }
}

/** A guard that speaks up only after it has halted never does. */
export function findCrossedSteps(path: string, settings: unknown): Problem[] {
  if (typeof settings !== 'object' || settings === null) return []
  const { haltAt } = settings as { haltAt?: unknown }
  return Object.entries(settings).flatMap(([name, value]: [string, unknown]) => {
    const key = `${path}.${name}`
    const isStep = (name === 'nudgeAt' || name === 'blockAt') && typeof value === 'number'
    if (!isStep || typeof haltAt !== 'number' || value <= haltAt) return findCrossedSteps(key, value)
    return [{ path: key, sentence: `${key} (${value}) must not exceed ${path}.haltAt (${haltAt}).` }]
  })
}
