import type { AnyEventObject, AnyMachineSnapshot, AnyStateMachine } from 'xstate'
import { describeEvent, describeState, describeValue } from '../../core/chart/state-labels.js'
import { observeMachine, type ObservedMachine } from '../../core/chart/observe-machine.js'
import { assertMachine, PathError } from '../errors.js'
import {
  type ExploreOptions,
  type ExploreSpace,
  type NamedEvent,
  resolveSpace,
  createStateKey,
} from '../explore-options.js'
import { exploreMachine } from '../explore.js'
import {
  createPathAlong,
  listIds,
  type PathStep,
  type Vertex,
  formatPath,
  type MachinePath,
} from '../machine-path.js'
import {
  compareRanks,
  createFairTest,
  createJudge,
  createMoment,
  createStartEvent,
  type Judge,
} from './moment-graph.js'
import type { Breach } from './find-breach.js'
import type { Moment, Property } from './property.js'

/** The result of {@link checkStory}. */
export interface StoryReport {
  holds: boolean
  /** How the property is violated, or null. */
  message: string | null
}

interface Played {
  input: unknown
  steps: readonly NamedEvent[]
  loop: readonly NamedEvent[] | null
}

interface Walk {
  moments: Moment[]
  steps: PathStep[]
  /** Index of the first loop step. */
  loopFrom: number
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
  assertMachine(machine)
  if (typeof story !== 'object' || story === null || !Array.isArray(story.steps)) {
    throw new PathError('bad_option', 'A story must be { input, steps, loop } with lists of events.', 'story')
  }
  const judge = createJudge(machine, 'the story', property as unknown as Property)
  const space = resolveSpace(options as unknown as ExploreOptions)
  const observed = observeMachine(machine)
  const nameEvent = (event: AnyEventObject): NamedEvent => ({ event, label: describeEvent(event) })
  const played = {
    input: story.input,
    steps: story.steps.map(nameEvent),
    loop: story.loop?.map(nameEvent) ?? null,
  }
  const message = judgeWalk(observed, space, judge, walkStory(observed, played), played)
  return { holds: message === null, message }
}

/** If the property holds along the actual states, the key is too coarse. @throws {PathError} `coarse_states` */
export function playBreach(
  observed: ObservedMachine,
  space: ExploreSpace,
  judge: Judge,
  { reason, start, moves, loop }: Breach,
): PropertyStory {
  const { input } = start.vertex
  const played: Played = {
    input: input.value,
    steps: moves.map(({ event }) => event),
    loop: loop?.map(({ event }) => event) ?? null,
  }
  const walk = walkStory(observed, played)
  const nodes = [start, ...moves.map(({ to }) => to), ...(loop ?? []).map(({ to }) => to)]
  const parting = nodes.findIndex(({ vertex }, i) => {
    const snapshot = walk.moments[i]?.snapshot
    return !snapshot || space.toKey(snapshot) !== space.toKey(vertex.snapshot)
  })
  if (parting >= 0 || judgeWalk(observed, space, judge, walk, played) === null)
    throw coarseStoryError(judge.name)
  const vertices: Vertex[] = walk.moments.map((moment, i) => ({
    snapshot: moment.snapshot,
    input,
    depth: i,
    via: undefined,
    out: [],
  }))
  const first = vertices[0] ?? start.vertex
  const edges = moves.map(({ event }, i) => ({
    from: vertices[i] ?? first,
    to: vertices[i + 1] ?? first,
    event,
    transitions: [],
  }))
  const path = createPathAlong(first, [], edges)
  const steps = path.steps.map((step, i) => ({ ...step, transitions: walk.steps[i]?.transitions ?? [] }))
  const round = loop === null ? null : walk.steps.slice(walk.loopFrom, walk.loopFrom + loop.length)
  return createStory(judge.name, reason, { ...path, steps }, round)
}

function coarseStoryError(name: string): PathError {
  return new PathError(
    'coarse_states',
    `serializeState merges different states: the story that should violate the property '${name}' does not when ` +
      'replayed. Include everything that guards and properties read.',
    'serializeState',
  )
}

/** A loop that changes values outside the key counts as endless after this many repetitions. */
const maxRounds = 64

function walkStory(observed: ObservedMachine, { input, steps, loop }: Played): Walk {
  const toFullKey = createStateKey()
  const begun = observed.start(input)
  const first = createStartEvent(input)
  const walk: Walk = {
    moments: [createMoment(begun.snapshot, first)],
    steps: [{ event: first, label: 'start', state: begun.snapshot, transitions: listIds(begun.transitions) }],
    loopFrom: steps.length + 1,
  }
  let at = begun.snapshot
  const go = ({ event, label }: NamedEvent): void => {
    const { snapshot, transitions } = observed.step(at, event)
    at = snapshot
    walk.moments.push(createMoment(snapshot, event))
    walk.steps.push({ event, label, state: snapshot, transitions: listIds(transitions) })
  }
  steps.forEach(go)
  const seen = new Set<string>()
  const round = loop ?? []
  for (let rounds = 0; round.length > 0 && rounds < maxRounds; rounds++) {
    const key = toFullKey(at)
    if (rounds > 0 && seen.has(key)) break
    seen.add(key)
    round.forEach(go)
  }
  return walk
}

function judgeWalk(
  observed: ObservedMachine,
  space: ExploreSpace,
  judge: Judge,
  walk: Walk,
  { loop }: Played,
): string | null {
  const { property, name } = judge
  const { moments } = walk
  const describe: Tell = (what, { event, snapshot }) =>
    `${name}: ${what} after ${describeEvent(event)} in ${describeState(snapshot)}`
  switch (property.kind) {
    case 'always':
    case 'never': {
      const wrong = moments.find((moment) => judge.ask('p', moment) === (property.kind === 'never'))
      return wrong ? describe('does not hold', wrong) : null
    }
    case 'leadsTo':
    case 'until':
      return judgeWait(observed, space, judge, walk, loop !== null, describe)
    case 'canReach': {
      const last = moments.at(-1)
      return last && !leadsToGoal(observed, space, judge, last)
        ? describe('the goal is unreachable', last)
        : null
    }
    default:
      return judgeRanks(judge, walk, describe)
  }
}

type Tell = (what: string, moment: Moment) => string

function judgeWait(
  observed: ObservedMachine,
  space: ExploreSpace,
  judge: Judge,
  walk: Walk,
  isEndless: boolean,
  describe: Tell,
): string | null {
  const { property } = judge
  const isUntil = property.kind === 'until'
  let isWaiting = isUntil && property.from === undefined
  for (const [i, moment] of walk.moments.entries()) {
    isWaiting ||= judge.ask(isUntil ? 'from' : 'p', moment)
    if (judge.ask('q', moment)) {
      if (i >= walk.loopFrom) return null
      isWaiting = false
    }
    if (isUntil && isWaiting && !judge.ask('p', moment))
      return describe('is violated before the goal holds', moment)
  }
  const last = walk.moments.at(-1)
  if (!last || !isEndless || !isWaiting || !isRound(space, walk)) return null
  return isFairRound(observed, space, judge, walk) ? describe(`${judge.goal} never holds`, last) : null
}

/** Whether the loop returns to its first state. */
function isRound(space: ExploreSpace, { moments, loopFrom }: Walk): boolean {
  const [begin, end] = [moments[loopFrom - 1], moments.at(-1)]
  return begin !== undefined && end !== undefined && space.toKey(begin.snapshot) === space.toKey(end.snapshot)
}

/** Whether every fair event happens or is impossible somewhere in the loop. */
function isFairRound(observed: ObservedMachine, space: ExploreSpace, judge: Judge, walk: Walk): boolean {
  const isFair = createFairTest(judge.property)
  if (!isFair) return true
  const inLoop = walk.moments.slice(walk.loopFrom - 1).map(({ snapshot }) => snapshot)
  const takenTypes = new Set(
    walk.steps
      .slice(walk.loopFrom)
      .filter(({ transitions }) => transitions.length > 0)
      .map(({ event }) => event.type),
  )
  const possible = inLoop.map((snapshot) => listPossible(observed, space, snapshot))
  const always = [...(possible[0] ?? [])].filter((type) => possible.every((types) => types.has(type)))
  return always.every((type) => !isFair(type) || takenTypes.has(type))
}

function listPossible(
  observed: ObservedMachine,
  space: ExploreSpace,
  snapshot: AnyMachineSnapshot,
): Set<string> {
  const types = new Set<string>()
  const here = exploreFrom(observed, snapshot)
  exploreMachine(
    here,
    { ...standHere(space), limit: Number.MAX_SAFE_INTEGER },
    ({ vertex, edge, transitions }) => {
      if (!edge) return true
      if (edge.from.depth > 0) return false
      if (transitions.length > 0 || vertex !== edge.from) types.add(edge.event.event.type)
      return true
    },
  )
  return types
}

function leadsToGoal(
  observed: ObservedMachine,
  space: ExploreSpace,
  judge: Judge,
  { snapshot, event }: Moment,
): boolean {
  if (judge.ask('q', createMoment(snapshot, event))) return true
  let isFound = false
  const { bounded } = exploreMachine(
    exploreFrom(observed, snapshot),
    standHere(space),
    (visit) => {
      if (visit.edge) isFound ||= judge.ask('q', createMoment(visit.snapshot, visit.edge.event.event))
      return !isFound
    },
    { stopsAtLimit: true },
  )
  return isFound || bounded !== null
}

function standHere(space: ExploreSpace): ExploreSpace {
  return { ...space, inputs: [{ label: 'here', value: undefined }], onProgress: () => undefined }
}

function exploreFrom(observed: ObservedMachine, snapshot: AnyMachineSnapshot): ObservedMachine {
  return { ...observed, start: () => ({ snapshot, transitions: [], actions: [] }) }
}

function judgeRanks(judge: Judge, { moments, steps, loopFrom }: Walk, describe: Tell): string | null {
  const ranks = moments.map((moment) => judge.rank(moment))
  const compare = (one: number, other: number): number => compareRanks(ranks[one] ?? [], ranks[other] ?? [])
  const rise = moments.findIndex((_, i) => i > 0 && compare(i, i - 1) > 0)
  if (rise > 0 && moments[rise]) return describe('the rank increases', moments[rise])
  for (let i = loopFrom; i < moments.length; i++) {
    const [begin, end] = [moments[loopFrom - 1], moments[i]]
    if (!begin || !end || describeValue(begin.value) !== describeValue(end.value)) continue
    const isEffective = steps.slice(loopFrom, i + 1).every(({ transitions }) => transitions.length > 0)
    if (isEffective && compare(i, loopFrom - 1) === 0) return describe('the rank is unchanged', end)
  }
  return null
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

function createStory(
  property: string,
  reason: string,
  path: MachinePath,
  loop: PathStep[] | null,
): PropertyStory {
  return {
    property,
    reason,
    path,
    loop,
    toString: () => {
      const way = `${property}: ${reason}\nStarting with ${path.input}:\n${formatPath(path)}`
      if (loop === null) return way
      return loop.length === 0
        ? `${way}\nand stays there forever.`
        : `${way}\nand then repeats:\n${formatPath({ steps: loop })}`
    },
  }
}
