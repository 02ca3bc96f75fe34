import type { Exploration, Start } from './explore.js'
import type { Edge, Vertex } from './machine-path.js'
import type { DefinedTransition } from '../core/chart/transitions.js'

/** An item to cover: a transition or a pair of transitions, as a number. */
export type Item = number

/** The explored graph as something to walk on: each edge collects items. */
export interface WalkGraph {
  starts: { node: WalkNode; items: readonly Item[]; start: Start }[]
  /** What the items stand for. */
  getName: (item: Item) => [string] | [string, string]
}

export interface WalkNode {
  edges: () => readonly WalkEdge[]
}

export interface WalkEdge {
  from: WalkNode
  to: WalkNode
  items: readonly Item[]
  edge: Edge
}

/**
 * A node is a state; with `pairs` it is a state and the transition that came last, because what the next event adds
 * depends on both. Nodes are laid out when they are first walked on.
 */
export function createWalkGraph({ starts }: Exploration, pairs: boolean): WalkGraph {
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
