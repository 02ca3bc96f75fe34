import { duplicates } from './duplicates.js'
import { cycle } from './presets/cycle.js'
import { failing } from './presets/failing.js'
import { repeatedCall } from './presets/repeated-call.js'
import { repeatedOutput } from './presets/repeated-output.js'
import { progress } from './progress.js'
import { terminalDelegation } from './terminal-delegation.js'
import type { Fact, Guard, Rule } from './types.js'

/**
 * Specific causes come first. State, configuration and reasons are derived from this table. The guards of presets are
 * off by default and replace rules of `progress`, so that a preset has its loop's thresholds.
 */
export const roster = {
  /** Detects sub-agents that failed permanently. */
  terminalDelegation,
  /** Replaces all rules of `progress` about failures and refusals. */
  failing,
  /** Replaces `progress.stale`. */
  repeatedCall,
  /** Replaces nothing. */
  repeatedOutput,
  /** Replaces `progress.mixed`. */
  cycle,
  /** The default guard against lack of progress. */
  progress,
}

const all = { ...roster, duplicates }

type All = typeof all
type Roster = typeof roster

export type GuardStates = { [Key in keyof All]: All[Key]['initial'] }

export type GuardName = Roster[keyof Roster]['reasons'][number]

/** The configuration of the guards. `null` disables a guard. Compatible with the `guardrails` of an `AgentConfig`. */
export type GuardrailsConfig = { [Key in keyof Roster]: Roster[Key]['defaults'] | null } & {
  /** Identical batches that may run in a row. Enables `repeatedCall`; null disables it and `progress.stale`. */
  maxRepeatedToolSteps: number
}

export type GuardKey = keyof Roster

export const guards = Object.entries(roster) as readonly [GuardKey, Guard<object, object, GuardName>][]

export const rules = Object.entries(all) as readonly [keyof All, AnyRule][]

export type AnyRule = Rule<object, object, GuardName>

export const guardNames: ReadonlySet<GuardName> = new Set(guards.flatMap(([, { reasons }]) => reasons))

export const noGuards = Object.fromEntries(guards.map(([key]) => [key, null])) as Record<GuardKey, null>

export function findSettings(key: keyof GuardStates, config: GuardrailsConfig): object | null {
  switch (key) {
    case 'duplicates':
      return config.progress?.stale?.blockAt == null ? null : config.progress.stale
    case 'repeatedCall': {
      const { maxRepeatedToolSteps, repeatedCall: settings, failing: failures } = config
      return settings && { ...settings, maxRepeatedToolSteps, leavesFailures: failures != null }
    }
    default:
      // The key is missing in logs that are older than the guard.
      return config[key] ?? null
  }
}

/** Filters a fact for a guard. If the failing guard is on, the other guards see no failures. */
export function filterFact(key: keyof GuardStates, fact: Fact, config: GuardrailsConfig): Fact {
  if (key !== 'progress' || config.failing === null || fact.type !== 'results') return fact
  return { ...fact, results: fact.results.filter((result) => result.ok || result.refused) }
}
