import type { MomentMove, MomentNode } from './moment-graph.js'

/** For each node, the region where a run can stay forever under fairness. */
export type FairRegions = ReadonlyMap<MomentNode, FairRegion>

/** A strongly connected region in which every fair event that stays possible can be taken. */
export interface FairRegion {
  nodes: ReadonlySet<MomentNode>
  /** Fair types that every round must take or find impossible. */
  types: readonly string[]
}

export function listPossibleTypes({ moves }: MomentNode): Set<string> {
  return new Set(moves.filter(({ isEffective }) => isEffective).map(({ event }) => event.event.type))
}

/**
 * Finds where a run can stay within `nodes` forever, including resting where no fair event is possible. Beyond
 * the limit every fair event counts as possible, so unexplored behavior is never reported.
 */
export function findFairRegions(
  nodes: readonly MomentNode[],
  isFair: ((type: string) => boolean) | undefined,
): FairRegions {
  const inside = new Set(nodes)
  const found = new Map<MomentNode, FairRegion>()
  const everyType = new Set(
    nodes.flatMap((node) => [...listPossibleTypes(node)]).filter(isFair ?? (() => false)),
  )
  for (const component of findComponents(nodes, inside)) {
    const types = [...everyType].filter((type) => component.every((node) => isPossible(node, type)))
    const members = new Set(component)
    const isFairRegion = types.every((type) =>
      component.some(({ moves }) =>
        moves.some(
          ({ event, to, isEffective }) => isEffective && event.event.type === type && members.has(to),
        ),
      ),
    )
    const isSeen = isFair === undefined || component.some(({ isExpanded }) => isExpanded)
    if (!isFairRegion || !isSeen) continue
    const region = { nodes: members, types: [...everyType] }
    for (const node of component) found.set(node, region)
  }
  return found
}

/** Whether an event of the type takes a transition, or was not tried because of the limit. */
export function isPossible(node: MomentNode, type: string): boolean {
  return (
    !node.isExpanded || node.moves.some(({ event, isEffective }) => isEffective && event.event.type === type)
  )
}

/** Strongly connected components (iterative Tarjan). */
export function findComponents(
  nodes: readonly MomentNode[],
  inside: ReadonlySet<MomentNode>,
  isEdge: (move: MomentMove) => boolean = () => true,
): MomentNode[][] {
  const order = new Map<MomentNode, { index: number; low: number; isOpen: boolean }>()
  const open: MomentNode[] = []
  const components: MomentNode[][] = []

  function enter(node: MomentNode): { node: MomentNode; next: number } {
    order.set(node, { index: order.size, low: order.size, isOpen: true })
    open.push(node)
    return { node, next: 0 }
  }

  for (const root of nodes) {
    if (order.has(root)) continue
    const frames = [enter(root)]
    for (let frame = frames.at(-1); frame; frame = frames.at(-1)) {
      const mark = order.get(frame.node)
      if (!mark) break
      const move = frame.node.moves[frame.next++]
      if (move) {
        if (!inside.has(move.to) || !isEdge(move)) continue
        const target = order.get(move.to)
        if (!target) frames.push(enter(move.to))
        else if (target.isOpen) mark.low = Math.min(mark.low, target.index)
        continue
      }
      frames.pop()
      const parent = frames.at(-1)
      const above = parent && order.get(parent.node)
      if (above) above.low = Math.min(above.low, mark.low)
      if (mark.low === mark.index) components.push(closeComponent(frame.node))
    }
  }

  function closeComponent(root: MomentNode): MomentNode[] {
    const component: MomentNode[] = []
    for (let node = open.pop(); node; node = open.pop()) {
      component.push(node)
      const mark = order.get(node)
      if (mark) mark.isOpen = false
      if (node === root) break
    }
    return component
  }

  return components
}

const maxExactTypes = 12

/**
 * The shortest fair round from `start` through its region; empty if the run can rest there. Approximate for
 * many fair types.
 */
export function findFairRound(start: MomentNode, { nodes, types }: FairRegion): MomentMove[] {
  const open = types.filter((type) => isPossible(start, type))
  if (open.length === 0) return []
  return open.length <= maxExactTypes ? findExactRound(start, nodes, open) : findLongRound(start, nodes, open)
}

interface Place {
  node: MomentNode
  /** Bit mask of types taken or found impossible. */
  done: number
  via: { move: MomentMove; from: Place } | undefined
}

function findExactRound(
  start: MomentNode,
  nodes: ReadonlySet<MomentNode>,
  types: readonly string[],
): MomentMove[] {
  const all = (1 << types.length) - 1
  const seen = new Map<MomentNode, Set<number>>()
  let level: Place[] = [{ node: start, done: 0, via: undefined }]
  while (level.length > 0) {
    const next: Place[] = []
    for (const place of level) {
      for (const move of place.node.moves) {
        if (!nodes.has(move.to)) continue
        const done = place.done | noteDone(move, types)
        const known = seen.get(move.to) ?? new Set<number>()
        seen.set(move.to, known)
        if (known.has(done)) continue
        known.add(done)
        const reached = { node: move.to, done, via: { move, from: place } }
        if (done === all && move.to === start) return listMoves(reached)
        next.push(reached)
      }
    }
    level = next
  }
  return []
}

function noteDone({ event, to, isEffective }: MomentMove, types: readonly string[]): number {
  return types.reduce((done, type, bit) => {
    const isTaken = isEffective && event.event.type === type
    return isTaken || !isPossible(to, type) ? done | (1 << bit) : done
  }, 0)
}

/** Takes one type after the other, then returns to the start. */
function findLongRound(
  start: MomentNode,
  nodes: ReadonlySet<MomentNode>,
  types: readonly string[],
): MomentMove[] {
  const round: MomentMove[] = []
  let at = start
  for (const type of types) {
    if (round.some((move) => noteDone(move, [type]) === 1)) continue
    round.push(...findWay(at, nodes, (move) => noteDone(move, [type]) === 1))
    at = round.at(-1)?.to ?? at
  }
  return at === start ? round : [...round, ...findWay(at, nodes, ({ to }) => to === start)]
}

/** The shortest path whose last move satisfies `isWanted`. */
export function findWay(
  from: MomentNode,
  nodes: ReadonlySet<MomentNode>,
  isWanted: (move: MomentMove) => boolean,
  isEdge: (move: MomentMove) => boolean = () => true,
): MomentMove[] {
  const seen = new Set([from])
  let level: Place[] = [{ node: from, done: 0, via: undefined }]
  while (level.length > 0) {
    const next: Place[] = []
    for (const place of level) {
      for (const move of place.node.moves) {
        if (!nodes.has(move.to) || !isEdge(move)) continue
        const reached = { node: move.to, done: 0, via: { move, from: place } }
        if (isWanted(move)) return listMoves(reached)
        if (seen.has(move.to)) continue
        seen.add(move.to)
        next.push(reached)
      }
    }
    level = next
  }
  return []
}

function listMoves(place: Place): MomentMove[] {
  const moves: MomentMove[] = []
  for (let { via }: Place = place; via; via = via.from.via) moves.unshift(via.move)
  return moves
}
