import type { AnyStateMachine, AnyStateNode } from 'xstate'
import {
  describeState,
  type DefinedTransition,
  listStateNodes,
  getStateName,
  type DeclaredTransition,
  describeEventType,
} from '../core/chart/state-labels.js'
import { observeMachine, type ObservedMachine } from '../core/chart/observe-machine.js'
import { PathError } from './errors.js'
import { coarseStatesError, exploreMachine, openSpace, type Exploration } from './explore.js'
import { type Edge, type Vertex, listIds, createPathAlong, type MachinePath } from './machine-path.js'
import type { ExploreOptions } from './explore-options.js'
import { getOrCreate, expectArgument, objectRule } from '../core/base/values.js'

/** Options for `generatePaths`. */
export interface GeneratePathsOptions<TMachine extends AnyStateMachine = AnyStateMachine>
  extends ExploreOptions<TMachine> {
  /** `transition-pairs` also covers every pair of consecutive transitions. Defaults to `transitions`. */
  coverage?: 'transitions' | 'transition-pairs'
}

/** Paths and their coverage. */
export interface GeneratedPaths {
  /** The paths, first in the order of the inputs, then in the order of discovery. Deterministic. */
  paths: MachinePath[]
  /** Plain JSON for `formatCoverage` or a diagram overlay. */
  coverage: Coverage
}

/**
 * Finds a small set of paths that together take every reachable transition, including each guard's branch, `always`,
 * `after`, `onDone`, `onError`, root handlers, and the initial macrostep. `coverage` explains transitions that cannot
 * be taken. No action is executed and no actor is started.
 *
 * ```ts
 * const { paths, coverage } = generatePaths(machine, {
 *   inputs: { plain: { retries: 0 }, retrying: { retries: 1 } },
 *   alphabet: { 'model answers': createDoneActorEvent('model', { text: 'Hi' }), CANCEL: { type: 'CANCEL' } },
 * })
 * console.log(formatCoverage(coverage))
 * ```
 *
 * @throws {PathError} `bad_option`, `state_limit`, `guard_threw`, …
 */
export function generatePaths<TMachine extends AnyStateMachine>(
  machine: TMachine,
  options: GeneratePathsOptions<TMachine>,
): GeneratedPaths {
  const { observed, space } = openSpace(machine, options)
  const { coverage = 'transitions' } = options
  if (coverage !== 'transitions' && coverage !== 'transition-pairs') {
    const text = `The option 'coverage' must be 'transitions' or 'transition-pairs'.`
    throw new PathError('bad_option', text, 'coverage')
  }
  return coverExploration(observed, exploreMachine(observed, space), coverage)
}

/** The paths of an exploration, which other checks can share. */
export function coverExploration(
  observed: ObservedMachine,
  exploration: Exploration,
  coverage: 'transitions' | 'transition-pairs',
): GeneratedPaths {
  const pairs = coverage === 'transition-pairs'
  const starts = createWalkGraph(exploration, pairs)
  const { walks, items } = coverItems(starts)
  // A second copy, so that retracing paths does not count as evidence.
  const again = observeMachine(observed.machine)
  const order = new Map(starts.map((start, i) => [start, i]))
  const paths = walks
    .sort(([a], [b]) => (order.get(a) ?? 0) - (order.get(b) ?? 0))
    .map((walk) => retracePath(again, walk))
  const reachable = pairs ? items.filter((item) => item.includes('\n')) : undefined
  return { paths, coverage: measureCoverage(observed, exploration, paths, reachable) }
}

/** Replays a walk. If it takes other transitions than states with the same keys did, the key is too coarse. */
function retracePath(observed: ObservedMachine, [start, ...steps]: Walk): MachinePath {
  const { input } = start.vertex
  const first = observed.start(input.value)
  let from: Vertex = { ...start.vertex, snapshot: first.snapshot }
  const real = steps.flatMap(({ edge }): Edge[] => {
    if (!edge) return []
    const { snapshot, transitions } = observed.step(from.snapshot, edge.event.event)
    if (listIds(transitions).join('\n') !== listIds(edge.transitions).join('\n')) {
      const expected = describeState(edge.to.snapshot)
      throw coarseStatesError(input.label, edge.event.label, expected, describeState(snapshot))
    }
    const step = { from, to: { ...edge.to, snapshot }, event: edge.event, transitions }
    from = step.to
    return [step]
  })
  return createPathAlong(real[0]?.from ?? from, first.transitions, real)
}

/** The id of a transition, or the ids of a pair of transitions in two lines. */
type Item = string

/** A state or, with `pairs`, a state and the last transition. Its steps are listed lazily. */
type WalkNode = () => readonly WalkStep[]

interface WalkStep {
  /** Undefined for a start, like the edge. */
  from?: WalkNode
  edge?: Edge
  vertex: Vertex
  to: WalkNode
  items: readonly Item[]
}

type Walk = [start: WalkStep, ...WalkStep[]]

/** The first way to each node. */
type Ways = Map<WalkNode, WalkStep | undefined>

function createWalkGraph({ starts }: Exploration, pairs: boolean): WalkStep[] {
  const nodes = new Map<Vertex, Map<DefinedTransition | undefined, WalkNode>>()

  function createStep(
    vertex: Vertex,
    transitions: readonly DefinedTransition[],
    last?: DefinedTransition,
  ): Pick<WalkStep, 'vertex' | 'to' | 'items'> {
    const ids = listIds(transitions)
    const items = pairs ? [...ids, ...listPairs(last ? [last.declared.id, ...ids] : ids)] : ids
    return { vertex, to: getNode(vertex, transitions.at(-1) ?? last), items }
  }

  function getNode(vertex: Vertex, last: DefinedTransition | undefined): WalkNode {
    const remembered = pairs ? last : undefined
    const siblings = getOrCreate(nodes, vertex, () => new Map<DefinedTransition | undefined, WalkNode>())
    return getOrCreate(siblings, remembered, () => {
      let steps: WalkStep[] | undefined
      const node: WalkNode = () =>
        (steps ??= vertex.out.map((edge) => ({
          ...createStep(edge.to, edge.transitions, last),
          from: node,
          edge,
        })))
      return node
    })
  }

  return starts.map(({ vertex, transitions }) => createStep(vertex, transitions))
}

/**
 * Finds a small set of walks that collects every reachable item.
 *
 * Starts with the shortest walk to the deepest item, which collects shallow ones on the way, and extends this walk to
 * the nearest missing item while that is cheaper than a new walk. Finally, drops walks whose items are all collected by
 * others. Enumerating simple paths instead would take six times as long per step.
 */
function coverItems(starts: readonly WalkStep[]): { walks: Walk[]; items: Item[] } {
  const first = new Map<Item, { depth: number; step: WalkStep }>()
  const ways: Ways = new Map()
  let depth = 0
  for (const level of listLevels(starts, ways)) {
    for (const step of level) for (const item of step.items) getOrCreate(first, item, () => ({ depth, step }))
    depth += 1
  }
  const left = new Set(first.keys())
  const collect = (steps: readonly WalkStep[]): void => {
    for (const { items } of steps) for (const item of items) left.delete(item)
  }
  const walks: Walk[] = []

  for (const [item, { depth: reach, step }] of [...first].sort(
    ([, a], [, b]) => b.depth - a.depth || getDeadEndRank(a.step) - getDeadEndRank(b.step),
  )) {
    if (!left.has(item)) continue
    const walk = traceWalk(step, ways)
    collect(walk)
    extendWalk(walk, reach)
    walks.push(walk)
  }

  function extendWalk(walk: Walk, reach: number): void {
    for (;;) {
      const more = findNearest((walk.at(-1) ?? walk[0]).to, left, reach)
      const item = more?.at(-1)?.items.find((candidate) => left.has(candidate))
      if (!more || item === undefined || more.length > (first.get(item)?.depth ?? 0)) return
      walk.push(...more)
      collect(more)
    }
  }

  return { walks: removeRedundant(walks), items: [...first.keys()] }
}

function getDeadEndRank({ from, to }: WalkStep): number {
  return from && to().length === 0 ? 1 : 0
}

/** The steps by their distance. Notes the first way to each node. */
function* listLevels(steps: readonly WalkStep[], ways: Ways): Generator<readonly WalkStep[]> {
  for (let level = steps; level.length > 0; ) {
    yield level
    const reached: WalkNode[] = []
    for (const step of level) {
      if (ways.has(step.to)) continue
      ways.set(step.to, step)
      reached.push(step.to)
    }
    level = reached.flatMap((node) => node())
  }
}

function traceWalk(last: WalkStep, ways: Ways): Walk {
  const walk: Walk = [last]
  for (let at = last.from && ways.get(last.from); at; at = at.from && ways.get(at.from)) walk.unshift(at)
  return walk
}

/** The shortest walk to a step with a missing item, preferring steps that are not dead ends. */
function findNearest(from: WalkNode, left: ReadonlySet<Item>, reach: number): Walk | undefined {
  if (left.size === 0) return undefined
  const ways: Ways = new Map([[from, undefined]])
  let depth = 0
  for (const steps of listLevels(from(), ways)) {
    if (++depth > reach) return undefined
    const found = steps.filter(({ items }) => items.some((item) => left.has(item)))
    const best = found.find(({ to }) => to().length > 0) ?? found[0]
    if (best) return traceWalk(best, ways)
  }
  return undefined
}

/** Removes walks, shortest first because they are most likely contained in others. */
function removeRedundant(walks: Walk[]): Walk[] {
  const collected = new Map(walks.map((walk) => [walk, new Set(walk.flatMap(({ items }) => items))]))
  const counts = countNames([...collected.values()].flatMap((items) => [...items]))
  for (const [walk, items] of [...collected].sort(([a], [b]) => a.length - b.length)) {
    if ([...items].some((item) => counts.get(item) === 1)) continue
    for (const item of items) counts.set(item, (counts.get(item) ?? 0) - 1)
    collected.delete(walk)
  }
  return [...collected.keys()]
}

/** The coverage of a set of paths. Plain JSON. */
export interface Coverage {
  /** Id of the machine. */
  machine: string
  /** Number of paths. */
  paths: number
  /** Number of events in all paths. */
  events: number
  explored: { inputs: string[]; states: number; events: number }
  /** All states except history states. */
  states: { id: string; reached: boolean }[]
  transitions: (DeclaredTransition & {
    /** How often the paths take the transition. */
    count: number
    /** Set if the transition cannot be taken with these inputs and this alphabet. */
    uncovered?: UncoveredTransition
  })[]
  /** All reachable pairs of consecutive transitions. Only with `transition-pairs`. */
  pairs?: { first: string; second: string; count: number }[]
}

function measureCoverage(
  observed: ObservedMachine,
  exploration: Exploration,
  paths: readonly MachinePath[],
  pairs: readonly Item[] | undefined,
): Coverage {
  const runs = paths.map((path) => path.steps.flatMap((step) => step.transitions))
  const counts = countNames(runs.flat())
  const isTaken = ({ declared }: DefinedTransition): boolean => counts.has(declared.id)
  const coverage: Coverage = {
    machine: observed.machine.id,
    paths: paths.length,
    events: paths.reduce((sum, { weight }) => sum + weight, 0),
    explored: {
      inputs: exploration.starts.map(({ vertex }) => vertex.input.label),
      states: exploration.vertices.length,
      events: exploration.events,
    },
    // A history state is never active.
    states: listStateNodes(observed.machine)
      .filter((node) => node.type !== 'history')
      .map((node) => ({ id: getStateName(node), reached: observed.reached.has(node) })),
    transitions: observed.transitions.map((transition) => ({
      ...transition.declared,
      count: counts.get(transition.declared.id) ?? 0,
      ...(!isTaken(transition) && {
        uncovered: explainUncovered(transition, observed, exploration, isTaken),
      }),
    })),
  }
  if (!pairs) return coverage
  const takenPairs = countNames(runs.flatMap(listPairs))
  const counted = pairs.map((pair) => {
    const [first = '', second = ''] = pair.split('\n')
    return { first, second, count: takenPairs.get(pair) ?? 0 }
  })
  return { ...coverage, pairs: counted }
}

const listPairs = (ids: readonly string[]): Item[] => ids.slice(1).map((second, i) => `${ids[i]}\n${second}`)

function countNames(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

/** Explains why a transition is never taken. */
export interface UncoveredTransition {
  /**
   * - `source_unreached`: the declaring state is never active
   * - `guard_false`: the guard of the transition never passed
   * - `event_absent`: the event of the transition never happens while the declaring state is active
   * - `shadowed`: another branch or a nested state always handles the event
   */
  reason: 'source_unreached' | 'guard_false' | 'event_absent' | 'shadowed'
  /** With `guard_false`: the guard that blocked the transition. */
  guard?: string
  /** With `guard_false`: how often the guard was false. */
  timesFalse?: number
  /** With `shadowed`: the transitions taken instead. */
  instead?: string[]
  message: string
}

function explainUncovered(
  transition: DefinedTransition,
  observed: ObservedMachine,
  exploration: Exploration,
  isTaken: (transition: DefinedTransition) => boolean,
): UncoveredTransition {
  const { declared, node } = transition
  if (!observed.reached.has(node)) {
    return { reason: 'source_unreached', message: `its source ${declared.source} is never active` }
  }
  const { passed, failed } = observed.evidence(transition)
  if (failed > 0 && passed === 0 && declared.guard !== null) {
    const times = failed === 1 ? 'the only time' : `all ${failed} times`
    const message = `its guard '${declared.guard}' was false ${times} it was evaluated`
    return { reason: 'guard_false', guard: declared.guard, timesFalse: failed, message }
  }
  const instead = observed.transitions
    .filter((other) => other !== transition && isTaken(other) && isWithin(other.node, node))
    .filter((other) => isOverlapping(declared.event, other.declared.event))
    .map((other) => other.declared.id)
  if (isOffered(declared, exploration) || instead.length > 0) {
    const others = instead.length > 0 ? `: ${instead.join('; ')}` : ''
    return { reason: 'shadowed', instead, message: `another transition always takes precedence${others}` }
  }
  const event = describeEventType(declared.event)
  const message = `the event '${event}' never happens while ${declared.source} is active. Check that the alphabet contains it`
  return { reason: 'event_absent', message }
}

function isOffered({ event, source }: DefinedTransition['declared'], { offered }: Exploration): boolean {
  if (event === '') return true
  return [...(offered.get(source) ?? [])].some((type) => isOverlapping(event, type))
}

/** Whether one event type can match both descriptors, such as `tool.*` and `tool.done`. */
function isOverlapping(one: string, other: string): boolean {
  if (one === other) return true
  if (one === '' || other === '') return false
  const [a, b] = [one, other].map((descriptor) => descriptor.replace(/\.?\*$/, ''))
  if (a === undefined || b === undefined) return false
  return (
    (one.endsWith('*') && `${b}.`.startsWith(a === '' ? '' : `${a}.`)) ||
    (other.endsWith('*') && `${a}.`.startsWith(b === '' ? '' : `${b}.`))
  )
}

function isWithin(node: AnyStateNode, ancestor: AnyStateNode): boolean {
  const [inner, outer] = [getStateName(node), getStateName(ancestor)]
  return outer === '(root)' || inner === outer || inner.startsWith(`${outer}.`)
}

/**
 * Formats coverage: totals, one row per transition, then what is not covered and why.
 *
 * ```text
 * agent: 82 of 82 transitions, 40 of 40 states, by 34 paths with 148 events
 * ```
 *
 * @example
 * const { coverage } = generatePaths(machine, { alphabet })
 * console.log(formatCoverage(coverage)) // what was never taken, and why
 */
export function formatCoverage(coverage: Coverage): string {
  expectArgument(
    'formatCoverage(coverage)',
    coverage,
    objectRule(['transitions', 'states'], 'the coverage that generatePaths(…) returned'),
  )
  const { transitions, states, pairs } = coverage
  const missed = transitions.filter(({ count }) => count === 0)
  const unreachable = states.filter(({ reached }) => !reached)
  const totals = [
    `${transitions.length - missed.length} of ${transitions.length} transitions`,
    `${states.length - unreachable.length} of ${states.length} states`,
    ...(pairs ? [`${pairs.filter(({ count }) => count > 0).length} of ${pairs.length} reachable pairs`] : []),
  ].join(', ')
  return [
    `${coverage.machine}: ${totals}, by ${coverage.paths} paths with ${coverage.events} events`,
    `explored ${coverage.explored.states} states and ${coverage.explored.events} events from ${coverage.explored.inputs.join(', ')}`,
    '',
    ...formatRows([
      ['count', 'transition'],
      ...transitions.map(({ count, id }) => [count === 0 ? '-' : String(count), id]),
    ]),
    ...formatSection('Not covered', missed, ({ id, uncovered }) => `${id}\n    ${uncovered?.message ?? ''}`),
    ...formatSection('Unreachable states', unreachable, ({ id }) => id),
    ...formatSection('Pairs', pairs, ({ first, second, count }) => `${count} × ${first}\n    then ${second}`),
    '',
  ].join('\n')
}

function formatSection<Row>(
  title: string,
  rows: readonly Row[] = [],
  format: (row: Row) => string,
): string[] {
  return rows.length === 0 ? [] : ['', `${title} (${rows.length}):`, ...rows.map((row) => `  ${format(row)}`)]
}

function formatRows(table: readonly string[][]): string[] {
  const width = Math.max(...table.map(([first = '']) => first.length))
  return table.map(([first = '', second = '']) => `${first.padStart(width)}  ${second}`)
}
