import type { AnyStateMachine } from 'xstate'
import { describeState, type DefinedTransition } from '../core/chart/state-labels.js'
import { observeMachine, type ObservedMachine } from '../core/chart/observe-machine.js'
import { assertMachine, PathError } from './errors.js'
import { coarseStatesError, exploreMachine, type Exploration, type Start } from './explore.js'
import { measureCoverage, type Coverage } from './coverage.js'
import { type Edge, type Vertex, listIds, createPathAlong, type MachinePath } from './machine-path.js'
import { resolveSpace, type ExploreOptions } from './explore-options.js'

/** Options of `generatePaths`. */
export interface GeneratePathsOptions<TMachine extends AnyStateMachine = AnyStateMachine>
  extends ExploreOptions<TMachine> {
  /** `transition-pairs` also covers every pair of consecutive transitions. Default `transitions`. */
  coverage?: 'transitions' | 'transition-pairs'
}

/** Paths and their coverage. */
export interface GeneratedPaths {
  /** In the order of the inputs, then of discovery. Deterministic. */
  paths: MachinePath[]
  /** Plain JSON for `formatCoverage` or a diagram overlay. */
  coverage: Coverage
}

/**
 * Finds a small set of paths that takes every reachable transition, including each guard's branch, `always`, `after`,
 * `onDone`, `onError`, root handlers, and the initial macrostep. `coverage` explains transitions that cannot be
 * taken. No action is executed and no actor is started.
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
  assertMachine(machine)
  const space = resolveSpace(options as unknown as ExploreOptions)
  const { coverage = 'transitions' } = options
  if (coverage !== 'transitions' && coverage !== 'transition-pairs') {
    const text = `The option 'coverage' must be 'transitions' or 'transition-pairs'.`
    throw new PathError('bad_option', text, 'coverage')
  }
  const pairs = coverage === 'transition-pairs'
  const observed = observeMachine(machine)
  const exploration = exploreMachine(observed, space)
  const graph = createWalkGraph(exploration, pairs)
  const { walks, items } = coverItems(graph)
  // A second copy, so that retracing paths does not count as evidence.
  const again = observeMachine(machine)
  const order = new Map(graph.starts.map(({ start }, i) => [start, i]))
  const paths = walks
    .sort((a, b) => (order.get(a.start.start) ?? 0) - (order.get(b.start.start) ?? 0))
    .map((walk) => retracePath(again, walk))
  const reachable = [...items].map(graph.getName).filter((name) => name.length === 2)
  return { paths, coverage: measureCoverage(observed, exploration, paths, pairs ? reachable : undefined) }
}

/**
 * Replays a walk from its start. Explored states stand for all states with the same key; if the real states
 * take other transitions, the key is too coarse.
 */
function retracePath(observed: ObservedMachine, { start: { start }, edges }: Walk): MachinePath {
  const first = observed.start(start.input.value)
  let from: Vertex = { ...start.vertex, snapshot: first.snapshot }
  const real: Edge[] = edges.map(({ edge }) => {
    const { snapshot, taken } = observed.step(from.snapshot, edge.event.event)
    if (listIds(taken).join('\n') !== listIds(edge.taken).join('\n')) {
      const expected = describeState(edge.to.snapshot)
      throw coarseStatesError(start.input.label, edge.event.label, expected, describeState(snapshot))
    }
    const step = { from, to: { ...edge.to, snapshot }, event: edge.event, taken }
    from = step.to
    return step
  })
  return createPathAlong(real[0]?.from ?? from, first.taken, real)
}

interface Walk {
  start: WalkGraph['starts'][number]
  edges: WalkEdge[]
}

/**
 * Finds a small set of walks that collects every reachable item.
 *
 * Starts with the shortest walk to the deepest item, which collects shallow ones on the way, and extends it to
 * the nearest missing item while that is cheaper than a new walk. Finally drops walks whose items others also
 * collect. Enumerating simple paths instead would grow six-fold per step.
 */
function coverItems(graph: WalkGraph): { walks: Walk[]; items: Set<Item> } {
  const { first, shortest } = surveyGraph(graph)
  const left = new Set(first.keys())
  const walks: Walk[] = []

  for (const [item, { depth }] of [...first].sort(
    ([, a], [, b]) => b.depth - a.depth || getDeadEndRank(a) - getDeadEndRank(b),
  )) {
    if (!left.has(item)) continue
    const walk = shortest(item)
    for (const collected of listItems(walk)) left.delete(collected)
    extendWalk(walk, depth)
    walks.push(walk)
  }

  function extendWalk(walk: Walk, reach: number): void {
    for (;;) {
      const more = findNearest(walk.edges.at(-1)?.to ?? walk.start.node, left, reach)
      const item = more?.at(-1)?.items.find((candidate) => left.has(candidate))
      if (!more || item === undefined || more.length > (first.get(item)?.depth ?? 0)) return
      walk.edges.push(...more)
      for (const edge of more) for (const collected of edge.items) left.delete(collected)
    }
  }

  return { walks: removeRedundant(walks), items: new Set(first.keys()) }
}

/** Sorts dead ends last among equally deep items. */
function getDeadEndRank({ at }: FirstMeeting): number {
  return 'to' in at && at.to.edges().length === 0 ? 1 : 0
}

function listItems(walk: Walk): Item[] {
  return [...walk.start.items, ...walk.edges.flatMap(({ items }) => items)]
}

interface FirstMeeting {
  depth: number
  at: WalkEdge | WalkGraph['starts'][number]
}

/** First occurrence of each item, breadth first from all starts. */
function surveyGraph(graph: WalkGraph): { first: Map<Item, FirstMeeting>; shortest: (item: Item) => Walk } {
  const first = new Map<Item, FirstMeeting>()
  const via = new Map<WalkNode, WalkEdge | WalkGraph['starts'][number]>()
  let level: WalkNode[] = []
  for (const start of graph.starts) {
    for (const item of start.items) if (!first.has(item)) first.set(item, { depth: 0, at: start })
    if (via.has(start.node)) continue
    via.set(start.node, start)
    level.push(start.node)
  }
  for (let depth = 1; level.length > 0; depth++) {
    const next: WalkNode[] = []
    for (const edge of level.flatMap((node) => node.edges())) {
      for (const item of edge.items) if (!first.has(item)) first.set(item, { depth, at: edge })
      if (via.has(edge.to)) continue
      via.set(edge.to, edge)
      next.push(edge.to)
    }
    level = next
  }
  return {
    first,
    shortest: (item) => {
      const edges: WalkEdge[] = []
      let at = first.get(item)?.at
      while (at && 'edge' in at) {
        edges.unshift(at)
        at = via.get(at.from)
      }
      if (at === undefined) throw new Error(`No walk collects item ${item}.`)
      return { start: at, edges }
    },
  }
}

/** The shortest walk to an edge with a missing item, preferring edges that are not dead ends. */
function findNearest(from: WalkNode, left: ReadonlySet<Item>, reach: number): WalkEdge[] | undefined {
  if (left.size === 0) return undefined
  const via = new Map<WalkNode, WalkEdge | undefined>([[from, undefined]])
  let level = [from]
  for (let depth = 1; level.length > 0 && depth <= reach; depth++) {
    const next: WalkNode[] = []
    let found: WalkEdge | undefined
    for (const edge of level.flatMap((node) => node.edges())) {
      if (edge.items.some((item) => left.has(item))) {
        found ??= edge
        if (edge.to.edges().length > 0) return [...tracePath(via, edge.from), edge]
      }
      if (via.has(edge.to)) continue
      via.set(edge.to, edge)
      next.push(edge.to)
    }
    if (found) return [...tracePath(via, found.from), found]
    level = next
  }
  return undefined
}

function tracePath(via: ReadonlyMap<WalkNode, WalkEdge | undefined>, to: WalkNode): WalkEdge[] {
  const edges: WalkEdge[] = []
  for (let edge = via.get(to); edge; edge = via.get(edge.from)) edges.unshift(edge)
  return edges
}

/** Shortest first, because they are most likely contained in others. */
function removeRedundant(walks: Walk[]): Walk[] {
  const counts = new Map<Item, number>()
  const collected = new Map(walks.map((walk) => [walk, new Set(listItems(walk))]))
  for (const items of collected.values())
    for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1)
  for (const [walk, items] of [...collected].sort(([a], [b]) => a.edges.length - b.edges.length)) {
    if ([...items].some((item) => counts.get(item) === 1)) continue
    for (const item of items) counts.set(item, (counts.get(item) ?? 0) - 1)
    collected.delete(walk)
  }
  return [...collected.keys()]
}

/** A transition or a pair of transitions, as a number. */
type Item = number

interface WalkGraph {
  starts: { node: WalkNode; items: readonly Item[]; start: Start }[]
  getName: (item: Item) => [string] | [string, string]
}

interface WalkNode {
  edges: () => readonly WalkEdge[]
}

interface WalkEdge {
  from: WalkNode
  to: WalkNode
  items: readonly Item[]
  edge: Edge
}

/** A node is a state, or with `pairs` a state and the last transition. Nodes are expanded lazily. */
function createWalkGraph({ starts }: Exploration, pairs: boolean): WalkGraph {
  const numbers = new Map<string, Item>()
  const names: ([string] | [string, string])[] = []
  const nodes = new Map<Vertex, Map<DefinedTransition | undefined, WalkNode>>()

  function getItem(...name: [string] | [string, string]): Item {
    const key = name.join('\n')
    const known = numbers.get(key)
    if (known !== undefined) return known
    numbers.set(key, names.length)
    return names.push(name) - 1
  }

  function listItems(taken: readonly DefinedTransition[], last: DefinedTransition | undefined): Item[] {
    const singles = taken.map(({ declared }) => getItem(declared.id))
    if (!pairs) return singles
    const chain = last ? [last, ...taken] : taken
    const twos = chain.slice(1).map(({ declared }, i) => getItem(chain[i]?.declared.id ?? '', declared.id))
    return [...singles, ...twos]
  }

  function getNode(vertex: Vertex, last: DefinedTransition | undefined): WalkNode {
    const remembered = pairs ? last : undefined
    const siblings = nodes.get(vertex) ?? new Map<DefinedTransition | undefined, WalkNode>()
    nodes.set(vertex, siblings)
    const known = siblings.get(remembered)
    if (known) return known
    let laidOut: WalkEdge[] | undefined
    const node: WalkNode = {
      edges: () =>
        (laidOut ??= vertex.out.map((edge) => ({
          from: node,
          to: getNode(edge.to, edge.taken.at(-1) ?? last),
          items: listItems(edge.taken, last),
          edge,
        }))),
    }
    siblings.set(remembered, node)
    return node
  }

  return {
    starts: starts.map((start) => ({
      node: getNode(start.vertex, start.taken.at(-1)),
      items: listItems(start.taken, undefined),
      start,
    })),
    getName: (item) => names[item] ?? [''],
  }
}
