import type { AnyStateMachine, AnyEventObject, AnyMachineSnapshot } from 'xstate'
import { isObject } from '../../core/base/values.js'
import { observeMachine, type ObservedMachine, type Macrostep } from '../../core/chart/observe-machine.js'
import { PathError } from '../errors.js'
import {
  type ExploreOptions,
  type ExploreSpace,
  type NamedEvent,
  createStateKey,
} from '../explore-options.js'
import { type Exploration, exploreMachine, openSpace, type Visit } from '../explore.js'
import {
  findBreach,
  type Breach,
  createJudge,
  matchesType,
  type Judge,
  judgeVisits,
  compareRanks,
  createFairTest,
  createMoment,
} from './moment-graph.js'
import type { Property, Moment } from './property.js'
import { describeEvent, describeState, describeValue } from '../../core/chart/state-labels.js'
import {
  createInitEvent,
  createPath,
  createStep,
  type PathStep,
  formatPath,
  type MachinePath,
} from '../machine-path.js'

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
  const { observed, space } = openSpace(machine, options)
  const check = createPropertyCheck(machine, properties)
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
      const where = states === 1 ? 'its only state' : `all ${states} states`
      const checked = `no violation in ${states} ${states === 1 ? 'state' : 'states'}`
      const verdict = bounded === null ? `holds in ${where}` : `${checked}. ${bounded}`
      const message = counterexample?.toString() ?? `${judge.name}: ${verdict}`
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

/** The result of {@link checkStory}. */
export interface StoryReport {
  holds: boolean
  /** How the property is violated, or null. */
  message: string | null
}

/** What judges a story. */
interface Court {
  observed: ObservedMachine
  space: ExploreSpace
  judge: Judge
}

interface Walk {
  moments: Moment[]
  steps: PathStep[]
  /** Index of the first loop step. */
  loopFrom: number
  isEndless: boolean
}

/**
 * Replays one story on the machine and reports whether the property holds. Use it as a regression test for a
 * counterexample from `checkProperties`. Write such tests with `generateStoryTests`.
 *
 * @example
 * const { holds, message } = checkStory(machine, never('open'), { steps: [{ type: 'OPEN' }] }, { alphabet })
 * console.log(holds, message) // → false the story: does not hold after OPEN in open
 * @throws {PathError} as `checkProperties`
 */
export function checkStory<TMachine extends AnyStateMachine>(
  machine: TMachine,
  property: Property<TMachine>,
  story: ReplayedStory,
  options: ExploreOptions<TMachine>,
): StoryReport {
  const { observed, space } = openSpace(machine, options)
  if (typeof story !== 'object' || story === null || !Array.isArray(story.steps)) {
    throw new PathError('bad_option', 'A story must be { input, steps, loop } with lists of events.', 'story')
  }
  const judge = createJudge(machine, 'the story', property as unknown as Property)
  const court = { observed, space, judge }
  const nameEvent = (event: AnyEventObject): NamedEvent => ({ event, label: describeEvent(event) })
  const { input, steps, loop } = story
  const walk = walkStory(observed, input, steps.map(nameEvent), loop?.map(nameEvent) ?? null)
  const message = judgeWalk(court, walk)
  return { holds: message === null, message }
}

/** If the property holds along the actual states, the key is too coarse. @throws {PathError} `coarse_states` */
function playBreach(court: Court, { reason, start, moves, loop }: Breach): PropertyStory {
  const { observed, space, judge } = court
  const { input } = start.vertex
  const steps = moves.map(({ event }) => event)
  const round = loop?.map(({ event }) => event) ?? null
  const walk = walkStory(observed, input.value, steps, round)
  const nodes = [start, ...moves.map(({ to }) => to), ...(loop ?? []).map(({ to }) => to)]
  const isSame = nodes.every(({ vertex }, i) => {
    const snapshot = walk.moments[i]?.snapshot
    return snapshot && space.toKey(snapshot) === space.toKey(vertex.snapshot)
  })
  if (!isSame || judgeWalk(court, walk) === null) {
    const text =
      `serializeState merges different states: the story that should violate the property '${judge.name}' does not when ` +
      'replayed. Include everything that guards and properties read.'
    throw new PathError('coarse_states', text, 'serializeState')
  }
  const path = createPath(input, walk.steps.slice(0, walk.loopFrom))
  const repeated = round && walk.steps.slice(walk.loopFrom, walk.loopFrom + round.length)
  const toString = (): string => {
    const way = `${judge.name}: ${reason}\nStarting with ${path.input}:\n${formatPath(path)}`
    if (repeated === null) return way
    if (repeated.length === 0) return `${way}\nand stays there forever.`
    return `${way}\nand then repeats:\n${formatPath({ steps: repeated })}`
  }
  return { property: judge.name, reason, path, loop: repeated, toString }
}

/** A loop that changes values outside the key counts as endless after this many repetitions. */
const maxRounds = 64

function walkStory(
  observed: ObservedMachine,
  input: unknown,
  steps: readonly NamedEvent[],
  loop: readonly NamedEvent[] | null,
): Walk {
  const toFullKey = createStateKey()
  const walk: Walk = { moments: [], steps: [], loopFrom: steps.length + 1, isEndless: loop !== null }
  let at!: AnyMachineSnapshot
  const note = (named: NamedEvent, { snapshot, transitions }: Macrostep): void => {
    at = snapshot
    walk.moments.push(createMoment(snapshot, named.event))
    walk.steps.push(createStep(named, snapshot, transitions))
  }
  const go = (named: NamedEvent): void => note(named, observed.step(at, named.event))
  note({ event: createInitEvent(input), label: 'start' }, observed.start(input))
  steps.forEach(go)
  const seen = new Set<string>()
  const round = loop ?? []
  for (let rounds = 0; round.length > 0 && rounds < maxRounds; rounds++) {
    const key = toFullKey(at)
    if (seen.has(key)) break
    seen.add(key)
    round.forEach(go)
  }
  return walk
}

function judgeWalk(court: Court, walk: Walk): string | null {
  const { judge } = court
  const { property } = judge
  const { moments } = walk
  const found = (): Found => {
    switch (property.kind) {
      case 'always':
      case 'never': {
        const wrong = moments.find((moment) => judge.ask('p', moment) === (property.kind === 'never'))
        return wrong ? ['does not hold', wrong] : null
      }
      case 'leadsTo':
      case 'until':
        return judgeWait(court, walk)
      case 'canReach': {
        const last = moments.at(-1)
        return last && !leadsToGoal(court, last) ? ['the goal is unreachable', last] : null
      }
      default:
        return judgeRanks(judge, walk)
    }
  }
  const [what, at] = found() ?? []
  return at
    ? `${judge.name}: ${what} after ${describeEvent(at.event)} in ${describeState(at.snapshot)}`
    : null
}

type Found = [what: string, at: Moment | undefined] | null

function judgeWait(court: Court, walk: Walk): Found {
  const { judge } = court
  let { isWaiting } = judge
  for (const [i, moment] of walk.moments.entries()) {
    isWaiting ||= judge.ask('from', moment)
    if (judge.ask('q', moment)) {
      if (i >= walk.loopFrom) return null
      isWaiting = false
    }
    if (isWaiting && !judge.ask('p', moment)) return ['is violated before the goal holds', moment]
  }
  const isLost = walk.isEndless && isWaiting && isRound(court, walk) && isFairRound(court, walk)
  return isLost ? [`${judge.goal} never holds`, walk.moments.at(-1)] : null
}

function isRound({ space }: Court, { moments, loopFrom }: Walk): boolean {
  const [begin, end] = [moments[loopFrom - 1], moments.at(-1)]
  return begin !== undefined && end !== undefined && space.toKey(begin.snapshot) === space.toKey(end.snapshot)
}

/** Whether every fair event happens or is impossible somewhere in the loop. */
function isFairRound(court: Court, { moments, steps, loopFrom }: Walk): boolean {
  const isFair = createFairTest(court.judge.property)
  if (!isFair) return true
  const taken = steps.slice(loopFrom).filter(({ transitions }) => transitions.length > 0)
  const takenTypes = new Set(taken.map(({ event }) => event.type))
  const possible = moments.slice(loopFrom - 1).map(({ snapshot }) => listPossible(court, snapshot))
  const always = [...(possible[0] ?? [])].filter((type) => possible.every((types) => types.has(type)))
  return always.every((type) => !isFair(type) || takenTypes.has(type))
}

function listPossible(court: Court, snapshot: AnyMachineSnapshot): Set<string> {
  const types = new Set<string>()
  exploreFrom(court, snapshot, Number.MAX_SAFE_INTEGER, ({ vertex, edge, transitions }) => {
    if (edge && edge.from.depth > 0) return false
    if (edge && (transitions.length > 0 || vertex !== edge.from)) types.add(edge.event.event.type)
    return true
  })
  return types
}

function leadsToGoal(court: Court, moment: Moment): boolean {
  const { judge, space } = court
  let isFound = judge.ask('q', moment)
  if (isFound) return true
  const isBounded = exploreFrom(court, moment.snapshot, space.limit, ({ snapshot, edge }) => {
    if (edge) isFound ||= judge.ask('q', createMoment(snapshot, edge.event.event))
    return !isFound
  })
  return isFound || isBounded
}

/** Explores from a snapshot. Returns whether the limit was reached. */
function exploreFrom(
  { observed, space }: Court,
  snapshot: AnyMachineSnapshot,
  limit: number,
  visit: (visit: Visit) => boolean,
): boolean {
  const here = { ...observed, start: () => ({ snapshot, transitions: [], actions: [] }) }
  const inputs = [{ label: 'here', value: undefined }]
  const around = { ...space, inputs, limit, onProgress: () => undefined }
  return exploreMachine(here, around, visit, { stopsAtLimit: true }).bounded !== null
}

function judgeRanks(judge: Judge, { moments, steps, loopFrom }: Walk): Found {
  const ranks = moments.map((moment) => judge.rank(moment))
  const compare = (one: number, other: number): number => compareRanks(ranks[one] ?? [], ranks[other] ?? [])
  const rise = moments.findIndex((_, i) => i > 0 && compare(i, i - 1) > 0)
  if (rise > 0) return ['the rank increases', moments[rise]]
  const begin = moments[loopFrom - 1]
  const idle = moments.findIndex((end, i) => {
    if (i < loopFrom || !begin || describeValue(begin.value) !== describeValue(end.value)) return false
    const isEffective = steps.slice(loopFrom, i + 1).every(({ transitions }) => transitions.length > 0)
    return isEffective && compare(i, loopFrom - 1) === 0
  })
  return idle < 0 ? null : ['the rank is unchanged', moments[idle]]
}

/** A path that violates a property, followed by a loop for liveness properties. */
export interface PropertyStory {
  property: string
  reason: string
  /** Shortest path to the violation, or to the start of the loop. */
  path: MachinePath
  /**
   * The steps that are repeated forever. Empty if the run rests there forever. Null if the path alone violates the
   * property.
   */
  loop: PathStep[] | null
  /** Property, reason, path and loop as text. */
  toString(): string
}

/** A story without states, for a test that replays it. */
export interface ReplayedStory {
  input?: unknown
  /** Events after the start. */
  steps: readonly AnyEventObject[]
  /** The events of the loop. Null or absent if the steps alone violate the property. */
  loop?: readonly AnyEventObject[] | null
}
