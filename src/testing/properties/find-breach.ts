import { getOrCreate } from '../../core/base/values.js'
import { describeState, describeValue } from '../../core/chart/state-labels.js'
import {
  createFairTest,
  type Judge,
  type MomentGraph,
  type MomentMove,
  type MomentNode,
} from './moment-graph.js'

/** A violation of a property: a path from a start state in the graph, and a part that repeats. */
export interface Breach {
  reason: string
  start: MomentNode
  moves: MomentMove[]
  loop: MomentMove[] | null
}

export interface Finding {
  breach: Breach | undefined
  begun: number
}

export function findBreach(graph: MomentGraph, judge: Judge): Finding {
  const { property } = judge
  switch (property.kind) {
    case 'always':
    case 'never': {
      const isWrong = (node: MomentNode): boolean => node.verdict.p === (property.kind === 'never')
      return { breach: findMoment(graph, isWrong), begun: graph.nodes.length }
    }
    case 'leadsTo': {
      const begins = ({ verdict }: MomentNode): boolean => verdict.p
      return findEndlessWait(graph, judge, begins, () => true)
    }
    case 'until': {
      const begins = property.from === undefined ? undefined : ({ verdict }: MomentNode) => verdict.from
      return findEndlessWait(graph, judge, begins, ({ verdict }) => verdict.p)
    }
    case 'canReach':
      return findDeadEnd(graph, property.from === undefined ? () => true : ({ verdict }) => verdict.from)
    default:
      return { breach: findIdleCycle(graph), begun: graph.nodes.length }
  }
}

function traceNode(node: MomentNode): Pick<Breach, 'start' | 'moves'> {
  const moves: MomentMove[] = []
  for (let { via } = node; via; via = via.from?.via) moves.unshift(via)
  return { start: moves[0]?.from ?? node, moves }
}

function describeNode({ vertex }: MomentNode): string {
  return describeState(vertex.snapshot)
}

function findMoment({ nodes }: MomentGraph, isWrong: (node: MomentNode) => boolean): Breach | undefined {
  const node = nodes.find(isWrong)
  return node && { reason: `does not hold in ${describeNode(node)}`, ...traceNode(node), loop: null }
}

/** A node and the way on which a search has found it. */
interface Place {
  node: MomentNode
  via: { move: MomentMove; from: Place } | undefined
}

interface WaitPlace extends Place {
  isWaiting: boolean
  depth: number
}

/** The maximum number of loops to try. After that, the shortest story found so far is reported. */
const maxTries = 200

/** A run waits from a node that `begins`, or else from the start, until the goal holds. */
function findEndlessWait(
  graph: MomentGraph,
  judge: Judge,
  begins: ((node: MomentNode) => boolean) | undefined,
  mayStay: (node: MomentNode) => boolean,
): Finding {
  const isFair = createFairTest(judge.property)
  const regions = findFairRegions(
    graph.nodes.filter((node) => !node.verdict.q && mayStay(node)),
    isFair,
  )
  const begun = begins ? graph.nodes.filter(begins).length : graph.starts.length
  const seen = new Map<MomentNode, boolean[]>()
  const places: WaitPlace[] = []
  const go = (node: MomentNode, wasWaiting: boolean, via?: { move: MomentMove; from: WaitPlace }): void => {
    const isWaiting = (wasWaiting || begins?.(node) === true) && !node.verdict.q
    const known = getOrCreate(seen, node, () => [])
    if (known[Number(isWaiting)]) return
    known[Number(isWaiting)] = true
    places.push({ node, isWaiting, via, depth: via ? via.from.depth + 1 : 0 })
  }
  for (const start of graph.starts) go(start, begins === undefined)

  let best: { place: WaitPlace; round: MomentMove[] } | undefined
  let tries = 0
  for (let next = 0; next < places.length && tries < maxTries; next++) {
    const place = places[next]
    if (!place || (best && place.depth >= best.place.depth + best.round.length)) break
    const { node, isWaiting } = place
    if (isWaiting && !mayStay(node)) {
      const reason = `is violated in ${describeNode(node)} before the goal holds`
      return { breach: { reason, ...tracePlace(place), loop: null }, begun }
    }
    const region = isWaiting ? regions.get(node) : undefined
    if (region) {
      tries++
      const round = findFairRound(node, region)
      if (!best || place.depth + round.length < best.place.depth + best.round.length) best = { place, round }
    }
    for (const move of node.moves) go(move.to, isWaiting && !node.verdict.q, { move, from: place })
  }
  if (!best) return { breach: undefined, begun }
  const { place, round } = best
  const why =
    isFair === undefined
      ? ': without `fair`, no event has to happen'
      : round.length === 0
        ? ': no fair event is possible there'
        : ', even if every fair event that stays possible happens'
  return { breach: { reason: `${judge.goal} never holds${why}`, ...tracePlace(place), loop: round }, begun }
}

function tracePlace(place: Place): Pick<Breach, 'start' | 'moves'> {
  const moves: MomentMove[] = []
  let start = place
  for (; start.via; start = start.via.from) moves.unshift(start.via.move)
  return { start: start.node, moves }
}

/** Unexplored nodes may lead anywhere, so they count as reaching the goal. */
function findDeadEnd({ nodes }: MomentGraph, isOrigin: (node: MomentNode) => boolean): Finding {
  const isGoal = ({ verdict }: MomentNode): boolean => verdict.q
  const origins = nodes.filter(isOrigin)
  const into = new Map<MomentNode, MomentNode[]>()
  for (const node of nodes) for (const { to } of node.moves) getOrCreate(into, to, () => []).push(node)
  const reaching = new Set(nodes.filter((node) => isGoal(node) || !node.isExpanded))
  for (const node of reaching) for (const source of into.get(node) ?? []) reaching.add(source)
  const stuck = origins.find((node) => !reaching.has(node))
  if (!stuck) return { breach: undefined, begun: origins.length }
  const reason = nodes.some(isGoal)
    ? `the goal is unreachable from ${describeNode(stuck)}`
    : 'no reachable state satisfies it'
  return { breach: { reason, ...traceNode(stuck), loop: null }, begun: origins.length }
}

/** A step that raises the rank, or a cycle to the same state value that does not lower the rank. */
function findIdleCycle({ nodes }: MomentGraph): Breach | undefined {
  const isIdle = ({ to, isEffective }: MomentMove): boolean => isEffective && to.verdict.step === 0
  const values = new Map(nodes.map((node) => [node, describeValue(node.vertex.snapshot.value)]))
  const rise = nodes.find((node) => node.verdict.step > 0)
  const cycle = findValueCycle()
  if (!rise || (cycle && rise.depth > cycle.moves.length)) return cycle
  const reason = `the rank increases on the way to ${describeNode(rise)}`
  return { reason, ...traceNode(rise), loop: null }

  function findValueCycle(): Breach | undefined {
    const inside = new Set(nodes)
    const circling = listCirclingValues()
    for (const node of nodes) {
      const value = values.get(node)
      if (value === undefined || !circling.has(value)) continue
      const loop = findWay(node, inside, (move) => isIdle(move) && values.get(move.to) === value, isIdle)
      if (loop.length === 0) continue
      const unchanged = `the rank is unchanged when the machine returns to ${describeNode(node)}`
      return { reason: unchanged, ...traceNode(node), loop }
    }
    return undefined
  }

  /** State values that idle moves lead back to. */
  function listCirclingValues(): Set<string> {
    const next = new Map<string, Set<string>>()
    for (const node of nodes) {
      const targets = getOrCreate(next, values.get(node) ?? '', () => new Set<string>())
      for (const move of node.moves) if (isIdle(move)) targets.add(values.get(move.to) ?? '')
    }
    const listTargets = (value = ''): string[] => [...(next.get(value) ?? [])]
    const circling = findComponents([...next.keys()], listTargets).filter(
      ([value, ...others]) => others.length > 0 || listTargets(value).includes(value ?? ''),
    )
    return new Set(circling.flat())
  }
}

/** A strongly connected region in which every fair event that stays possible can be taken. */
interface FairRegion {
  nodes: ReadonlySet<MomentNode>
  /** Fair types that every round must take or find impossible. */
  types: readonly string[]
}

/** Where a run can stay forever. Beyond the limit, every fair event counts as possible. */
function findFairRegions(
  nodes: readonly MomentNode[],
  isFair: ((type: string) => boolean) | undefined,
): ReadonlyMap<MomentNode, FairRegion> {
  const inside = new Set(nodes)
  const found = new Map<MomentNode, FairRegion>()
  const possible = nodes.flatMap(({ moves }) => moves.filter(({ isEffective }) => isEffective))
  const everyType = new Set(possible.map(({ event }) => event.event.type).filter(isFair ?? (() => false)))
  const listTargets = ({ moves }: MomentNode): MomentNode[] =>
    moves.flatMap(({ to }) => (inside.has(to) ? [to] : []))
  for (const component of findComponents(nodes, listTargets)) {
    const types = [...everyType].filter((type) => component.every((node) => isPossible(node, type)))
    const members = new Set(component)
    const inner = component.flatMap(({ moves }) => moves.filter(({ to }) => members.has(to)))
    const isFairRegion = types.every((type) => inner.some((move) => isTaking(move, type)))
    const isSeen = isFair === undefined || component.some(({ isExpanded }) => isExpanded)
    if (!isFairRegion || !isSeen) continue
    const region = { nodes: members, types: [...everyType] }
    for (const node of component) found.set(node, region)
  }
  return found
}

/** Whether an event of the type takes a transition, or was not tried because of the limit. */
function isPossible(node: MomentNode, type: string): boolean {
  return !node.isExpanded || node.moves.some((move) => isTaking(move, type))
}

const isTaking = ({ event, isEffective }: MomentMove, type: string): boolean =>
  isEffective && event.event.type === type

/** Strongly connected components (iterative Tarjan). */
function findComponents<Node>(
  nodes: readonly Node[],
  listTargets: (node: Node) => readonly Node[],
): Node[][] {
  interface Mark {
    node: Node
    targets: Iterator<Node>
    index: number
    low: number
    isOpen: boolean
  }
  const marks = new Map<Node, Mark>()
  const open: Mark[] = []
  const components: Node[][] = []

  function enter(node: Node): Mark {
    const { size } = marks
    const mark = { node, targets: listTargets(node).values(), index: size, low: size, isOpen: true }
    marks.set(node, mark)
    open.push(mark)
    return mark
  }

  for (const root of nodes) {
    const path = marks.has(root) ? [] : [enter(root)]
    for (let mark = path.at(-1); mark; mark = path.at(-1)) {
      const { done, value } = mark.targets.next()
      if (!done) {
        const target = marks.get(value)
        if (!target) path.push(enter(value))
        else if (target.isOpen) mark.low = Math.min(mark.low, target.index)
        continue
      }
      path.pop()
      const above = path.at(-1)
      if (above) above.low = Math.min(above.low, mark.low)
      if (mark.low < mark.index) continue
      const component = open.splice(open.lastIndexOf(mark))
      for (const member of component) member.isOpen = false
      components.push(component.map((member) => member.node).reverse())
    }
  }
  return components
}

const maxExactTypes = 12

/** Empty if the run can rest there. The shortest round, approximated if there are many fair types. */
function findFairRound(start: MomentNode, { nodes, types }: FairRegion): MomentMove[] {
  const open = types.filter((type) => isPossible(start, type))
  if (open.length === 0) return []
  if (open.length > maxExactTypes) return findLongRound(start, nodes, open)
  const all = (1 << open.length) - 1
  const advance = (done: number, move: MomentMove): number => done | noteDone(move, open)
  return search(start, nodes, advance, (move, done) => done === all && move.to === start)
}

function noteDone(move: MomentMove, types: readonly string[]): number {
  const isDone = (type: string): boolean => isTaking(move, type) || !isPossible(move.to, type)
  return types.reduce((done, type, bit) => (isDone(type) ? done | (1 << bit) : done), 0)
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

function findWay(
  from: MomentNode,
  nodes: ReadonlySet<MomentNode>,
  isWanted: (move: MomentMove) => boolean,
  isEdge: (move: MomentMove) => boolean = () => true,
): MomentMove[] {
  return search(from, nodes, (_, move) => (isEdge(move) ? 0 : null), isWanted)
}

interface SearchedPlace extends Place {
  /** Bit mask of the types that the path has taken or found impossible. */
  done: number
}

/** Searches breadth first over nodes with their masks. `advance` returns the next mask, or null to skip a move. */
function search(
  start: MomentNode,
  nodes: ReadonlySet<MomentNode>,
  advance: (done: number, move: MomentMove) => number | null,
  isWanted: (move: MomentMove, done: number) => boolean,
): MomentMove[] {
  const seen = new Map([[start, new Set([0])]])
  const places: SearchedPlace[] = [{ node: start, done: 0, via: undefined }]
  for (const place of places) {
    for (const move of place.node.moves) {
      const done = nodes.has(move.to) ? advance(place.done, move) : null
      if (done === null) continue
      const reached = { node: move.to, done, via: { move, from: place } }
      if (isWanted(move, done)) return tracePlace(reached).moves
      const known = getOrCreate(seen, move.to, () => new Set<number>())
      if (known.has(done)) continue
      known.add(done)
      places.push(reached)
    }
  }
  return []
}
