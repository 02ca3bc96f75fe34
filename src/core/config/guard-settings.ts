import type { ProgressConfig } from '../../../guards/config.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { Problem } from './check.js'
import type { GivenConfig } from './sections.js'

/**
 * What each of the guards that are off by default watches for, in terms of the progress guard. Naming such a guard, to
 * set it or to switch it off, takes this out of the hands of the progress guard, so that no two numbers contradict each
 * other; unless a part of the progress guard is named as well.
 */
const partsOf = {
  repeatedCall: ['stale', 'duplicates'],
  repeatedOutput: ['sameOutput'],
  cycle: ['mixed', 'mostly', 'beside', 'recurring'],
  failing: ['failing', 'failingTool', 'sameError', 'unknownTools', 'refused', 'policyDenied', 'transient'],
} as const satisfies Record<string, readonly (keyof ProgressConfig)[]>

/**
 * The settings with what they imply: `maxRepeatedToolSteps` is the repeated-call guard's number, so giving it switches
 * that guard on, and `null` switches it off; and each guard that is named takes its part from the progress guard.
 */
export function withGuards(given: GivenConfig, base: AgentConfig): unknown {
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
  const taken = Object.entries(partsOf).flatMap(([name, parts]) =>
    guardrails[name as keyof typeof partsOf] === undefined ? [] : parts,
  )
  if (taken.length === 0) return { ...given, guardrails }
  const named = Object.entries(progress ?? {}).filter(([, value]) => value !== undefined)
  const parts = Object.fromEntries([...taken.map((part) => [part, null] as const), ...named])
  return { ...given, guardrails: { ...guardrails, progress: parts } }
}

/** A guard that speaks up only after it has halted never does. */
export function crossedSteps(path: string, steps: unknown): Problem[] {
  if (typeof steps !== 'object' || steps === null) return []
  const { haltAt } = steps as { haltAt?: unknown }
  if (typeof haltAt !== 'number') return []
  return Object.entries(steps).flatMap(([name, value]) => {
    if ((name !== 'nudgeAt' && name !== 'blockAt') || typeof value !== 'number' || value <= haltAt) return []
    const key = `${path}.${name}`
    return [{ path: key, sentence: `${key} (${value}) must not exceed ${path}.haltAt (${haltAt}).` }]
  })
}
