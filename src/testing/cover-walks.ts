import type { Item, WalkEdge, WalkGraph, WalkNode } from './walk-graph.js'

/** A walk from one of the starts. */
export interface Walk {
  start: WalkGraph['starts'][number]
  edges: WalkEdge[]
}

/**
 * A small set of walks that collects every item that can be collected.
 *
 * Farthest first: the shortest walk to the deepest item picks up shallow ones on its way. Each walk then goes on to
 * the nearest item that is left, as long as that is no longer than starting anew. In the end, walks whose items the
 * others collect too are dropped. Simple paths would be too many: they grow six-fold a step.
 */
export function coverItems(graph: WalkGraph): { walks: Walk[]; items: Set<Item> } {
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

/** 1 for what cannot be gone on from: of two equally deep items the other comes first. */
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

/** Where each item is met first, breadth first from all starts at once. */
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

/** The shortest walk from a node to an edge with an item that is left; of equal ones, one that does not dead-end. */
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

/** The shortest go first, as they are the likeliest to be part of the others. */
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
