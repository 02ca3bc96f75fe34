import { duplicates } from './duplicates.js'
import { presetGuards, repeatedCallSettings } from './presets/roster.js'
import { progress } from './progress.js'
import { terminalDelegation } from './terminal-delegation.js'
import type { Fact, Guard, Rule } from './types.js'

/**
 * The guards of calls and results, by configuration key. Guards with a more specific cause come first. State,
 * configuration and reasons derive from this table, so a new guard needs a file, a line here, and tests.
 */
export const roster = {
  /** Sub-agents that failed permanently. */
  terminalDelegation,
  ...presetGuards,
  /** The default guard against lack of progress. */
  progress,
}

/** Adds the rules configured under another guard's key. */
const all = { ...roster, duplicates }

type All = typeof all
type Roster = typeof roster

/** State of each guard. */
export type GuardStates = { [Key in keyof All]: All[Key]['initial'] }

/** The reason of a run that a guard halted. */
export type GuardName = Roster[keyof Roster]['reasons'][number]

/** Configuration of the guards; `null` disables one. The `guardrails` of an `AgentConfig` satisfies it. */
export type GuardrailsConfig = { [Key in keyof Roster]: Roster[Key]['defaults'] | null } & {
  /**
   * Identical consecutive batches that run, if `repeatedCall` is on. A number enables that guard; `null` disables it
   * and `progress.stale`.
   */
  maxRepeatedToolSteps: number
}

/** A guard's configuration key. */
export type GuardKey = keyof Roster

/** The guards of the roster, with their types erased. */
export const guards = Object.entries(roster) as readonly [GuardKey, Guard<object, object, GuardName>][]

/** All rules. */
export const rules = Object.entries(all) as readonly [keyof All, AnyRule][]

export type AnyRule = Rule<object, object, GuardName>

/** Reasons of runs that a guard halted. */
export const guardNames: ReadonlySet<GuardName> = new Set(guards.flatMap(([, { reasons }]) => reasons))

/** The configuration with all guards off. */
export const noGuards = Object.fromEntries(guards.map(([key]) => [key, null])) as Record<GuardKey, null>

/** The settings of a guard; null if it is off. */
export function findSettings(key: keyof GuardStates, config: GuardrailsConfig): object | null {
  switch (key) {
    case 'duplicates':
      return config.progress?.stale?.blockAt == null ? null : config.progress.stale
    case 'repeatedCall':
      return repeatedCallSettings(config)
    default:
      // Missing in logs that predate the guard.
      return config[key] ?? null
  }
}

/** The part of a fact that a guard observes. If the failing guard is on, only it sees failures. */
export function filterFact(key: keyof GuardStates, fact: Fact, config: GuardrailsConfig): Fact {
  if (key !== 'progress' || config.failing === null || fact.type !== 'results') return fact
  return { ...fact, results: fact.results.filter((result) => result.ok || result.refused) }
}
