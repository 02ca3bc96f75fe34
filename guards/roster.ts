import { duplicates } from './duplicates.js'
import { presetGuards, repeatedCallSettings } from './presets/roster.js'
import { progress } from './progress.js'
import { terminalDelegation } from './terminal-delegation.js'
import type { Fact, Guard, Rule } from './types.js'

/**
 * The guards that watch calls and their results, by the keys of their configuration; who knows more about a cause
 * stands before who knows less. Their state, their configuration, the reasons of a run and who reads any of these follow
 * from this table: another guard is a file beside it, a line in it, and its tests.
 */
export const roster = {
  /** Sub-agents that no second try helps. */
  terminalDelegation,
  ...presetGuards,
  /** The default policy: progress is news. */
  progress,
}

/** The same, and what is configured under a key of another. */
const all = { ...roster, duplicates }

type All = typeof all
type Roster = typeof roster

/** What each guard remembers. */
export type GuardStates = { [Key in keyof All]: All[Key]['initial'] }

/** The reason of a run that one of them has halted. */
export type GuardName = Roster[keyof Roster]['reasons'][number]

/** What the guards that watch tool calls need to know. `null` is off. The `guardrails` of an `AgentConfig` is one. */
export type GuardrailsConfig = { [Key in keyof Roster]: Roster[Key]['defaults'] | null } & {
  /**
   * Identical consecutive batches that execute, where `repeatedCall` is on. Giving a number switches that guard on;
   * `null` switches it off, and `progress.stale` with it.
   */
  maxRepeatedToolSteps: number
}

/** The key of a guard's configuration. */
export type GuardKey = keyof Roster

/** The guards of the roster, whatever each remembers and is told. */
export const guards = Object.entries(roster) as readonly [GuardKey, Guard<object, object, GuardName>][]

/** All that observes. */
export const rules = Object.entries(all) as readonly [keyof All, AnyRule][]

export type AnyRule = Rule<object, object, GuardName>

/** The reasons of runs that a guard has halted. */
export const guardNames: ReadonlySet<GuardName> = new Set(guards.flatMap(([, { reasons }]) => reasons))

/** The configuration in which none of them is on. */
export const noGuards = Object.fromEntries(guards.map(([key]) => [key, null])) as Record<GuardKey, null>

/** The settings of a guard; null when it is off. */
export function findSettings(key: keyof GuardStates, config: GuardrailsConfig): object | null {
  switch (key) {
    case 'duplicates':
      return config.progress?.stale?.blockAt == null ? null : config.progress.stale
    case 'repeatedCall':
      return repeatedCallSettings(config)
    default:
      // A log of an older version has no configuration of a guard that it did not know.
      return config[key] ?? null
  }
}

/** The part of a fact that a guard observes. Where the failing guard is on, only that guard sees failures. */
export function filterFact(key: keyof GuardStates, fact: Fact, config: GuardrailsConfig): Fact {
  if (key !== 'progress' || config.failing === null || fact.type !== 'results') return fact
  return { ...fact, results: fact.results.filter((result) => result.ok || result.refused) }
}
