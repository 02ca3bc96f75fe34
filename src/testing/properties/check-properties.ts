import { isObject } from '../../core/base/values.js'
import type { AnyStateMachine } from 'xstate'
import { observeMachine, type ObservedMachine } from '../../core/chart/observe-machine.js'
import { assertMachine, PathError } from '../errors.js'
import { type ExploreOptions, type ExploreSpace, resolveSpace } from '../explore-options.js'
import { type Exploration, exploreMachine } from '../explore.js'
import { findBreach } from './find-breach.js'
import { createJudge, matchesType, type Judge, judgeVisits } from './moment-graph.js'
import { playBreach, type PropertyStory } from './play-story.js'
import type { Property } from './property.js'

/**
 * The result for one property.
 *
 * @example
 * const { closed } = checkProperties(machine, { closed: always('closed') }, { alphabet, limit: 1 })
 * console.log(closed.holds, closed.bounded?.slice(0, 31)) // → null Stopped at the limit of 1 state
 */
export interface PropertyReport {
  /** Whether the property holds. Null if no counterexample was found but the exploration is incomplete. */
  holds: boolean | null
  states: number
  /**
   * Number of explored moments in which the property applies: where `p` holds for `leadsTo`, or `from` for `until`. 0
   * means that the result proves nothing.
   */
  begun: number
  /** Why the exploration is incomplete, or null. */
  bounded: string | null
  /** A shortest counterexample, or null. */
  counterexample: PropertyStory | null
  /** The result as a sentence, with the counterexample. */
  message: string
}

/**
 * Checks temporal properties over every possible run: `always`, `never`, `leadsTo`, `until`, `canReach`,
 * `decreases`. States are explored once for all properties. If the machine has more than `limit` states, the
 * report is marked as bounded. States with the same `serializeState` key must behave alike. No action is
 * executed and no actor is started.
 *
 * ```ts
 * const { closing } = checkProperties(
 *   machine,
 *   { closing: leadsTo('open', 'closed', { fair: ['CLOSE'] }) },
 *   { alphabet },
 * )
 * if (!closing.holds) console.error(closing.message)
 * ```
 *
 * @throws {PathError} `property_threw`, `unknown_state`, `coarse_states`, …, or for an invalid machine
 */
export function checkProperties<TMachine extends AnyStateMachine, Name extends string>(
  machine: TMachine,
  properties: Readonly<Record<Name, Property<TMachine>>>,
  options: ExploreOptions<TMachine>,
): Record<Name, PropertyReport> {
  assertMachine(machine)
  const check = createPropertyCheck(machine, properties)
  const space = resolveSpace(options as unknown as ExploreOptions)
  const observed = observeMachine(machine)
  const exploration = exploreMachine(observed, space, check.visit, { stopsAtLimit: true })
  return check.report(observed, space, exploration)
}

/**
 * Judges the visits of an exploration, which other checks can share. `untried` excludes event types from the runs that a property
 * judges.
 */
export function createPropertyCheck<TMachine extends AnyStateMachine, Name extends string>(
  machine: TMachine,
  properties: Readonly<Record<Name, Property<TMachine>>>,
  untried: Partial<Record<Name, readonly string[]>> = {},
) {
  const judges = createJudges(machine, properties as unknown as Record<string, Property>)
  const { visit, getGraph } = judgeVisits(judges)
  return { visit, report }

  function report(
    observed: ObservedMachine,
    space: ExploreSpace,
    exploration: Exploration,
  ): Record<Name, PropertyReport> {
    for (const judge of judges) expectFairTypes(judge, exploration, observed)
    // A second copy, so that replaying stories does not affect the exploration.
    const again = observeMachine(observed.machine)
    const bounded = exploration.bounded?.message ?? null
    const states = exploration.vertices.length
    const reports = judges.map((judge, at): [string, PropertyReport] => {
      const { breach, begun } = findBreach(getGraph(exploration, at, untried[judge.name as Name]), judge)
      const counterexample = breach ? playBreach({ observed: again, space, judge }, breach) : null
      const holds = counterexample ? false : bounded === null ? true : null
      const message = counterexample
        ? counterexample.toString()
        : `${judge.name}: ${bounded === null ? `holds in ${states === 1 ? 'its only state' : `all ${states} states`}` : `no violation in ${states} ${states === 1 ? 'state' : 'states'}. ${bounded}`}`
      return [judge.name, { holds, states, begun, bounded, counterexample, message }]
    })
    return Object.fromEntries(reports) as Record<Name, PropertyReport>
  }
}

const kinds: readonly unknown[] = ['always', 'never', 'leadsTo', 'until', 'canReach', 'decreases']

function createJudges(machine: AnyStateMachine, properties: Readonly<Record<string, Property>>): Judge[] {
  const entries = Object.entries(isObject(properties) ? properties : {})
  if (entries.length === 0) {
    const text = `Pass at least one property by name: { 'the cap is kept': always(({ context }) => …) }.`
    throw new PathError('bad_option', text, 'properties')
  }
  return entries.map(([name, property]) => {
    if (kinds.includes((property as Property | null)?.kind)) return createJudge(machine, name, property)
    const text = `The property '${name}' must be created by always, never, leadsTo, until, canReach or decreases.`
    throw new PathError('bad_option', text, name)
  })
}

/** Rejects misspelled event types, because they would make fairness meaningless. */
function expectFairTypes(
  { name, property }: Judge,
  { bounded, offered }: Exploration,
  { transitions }: ObservedMachine,
): void {
  if (!('fair' in property) || property.fair === true || bounded !== null) return
  const declared = transitions.map((transition) => transition.declared.event).filter(Boolean)
  const types = new Set([...[...offered.values()].flatMap((some) => [...some]), ...declared])
  for (const pattern of property.fair) {
    if ([...types].some((type) => matchesType(pattern, type))) continue
    const text = `The property '${name}': no event of the machine matches '${pattern}' in { fair }. Event types: ${[...types].sort().join(', ')}.`
    throw new PathError('bad_option', text, name)
  }
}
