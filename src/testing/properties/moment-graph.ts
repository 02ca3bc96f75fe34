import { describeError } from '../../core/base/errors.js'
import type { AnyEventObject, AnyMachineSnapshot, AnyStateMachine } from 'xstate'
import { getOrCreate } from '../../core/base/values.js'
import { describeState, describeValue } from '../../core/chart/state-labels.js'
import { PathError } from '../errors.js'
import { createStateTest, type Moment, type MomentCondition, type Property } from './property.js'
import type { NamedEvent } from '../explore-options.js'
import type { Exploration, Visit } from '../explore.js'
import { createInitEvent, type Vertex } from '../machine-path.js'

/** Evaluates the conditions of one property. Errors name the property. */
export interface Judge {
  name: string
  property: Property
  goal: string
  /** Whether a run waits for the goal from its start, and not only after a moment of `from`. */
  isWaiting: boolean
  /** `leadsTo(p, q)` is asked as `until`, from `p` on, with a condition that always holds. */
  ask: (condition: 'p' | 'q' | 'from', moment: Moment) => boolean
  rank: (moment: Moment) => readonly number[]
}

export function createJudge(machine: AnyStateMachine, name: string, property: Property): Judge {
  const { p, q, from } = (
    property.kind === 'leadsTo' ? { q: property.q, from: property.p } : property
  ) as Partial<Record<'p' | 'q' | 'from', MomentCondition>>
  const { kind } = property
  const conditions = {
    p: compile(p, true),
    q: compile(q, false),
    from: compile(from, kind === 'canReach'),
  }

  function compile(condition: MomentCondition | undefined, missing: boolean): (moment: Moment) => unknown {
    if (condition === undefined) return () => missing
    if (typeof condition === 'function') return condition
    const isThere = createStateTest(machine, condition)
    return ({ snapshot }) => isThere(snapshot)
  }

  function call<Value>(ask: (moment: Moment) => Value, moment: Moment): Value {
    try {
      return ask(moment)
    } catch (cause) {
      const where = `after ${moment.event.type} in ${describeState(moment.snapshot)}`
      const text = `The property '${name}' threw ${where}: ${describeError(cause)}`
      throw new PathError('property_threw', text, name, { cause })
    }
  }

  return {
    name,
    property,
    goal: q === undefined ? '' : nameCondition(q),
    isWaiting: kind === 'until' && from === undefined,
    ask: (condition, moment) => {
      const answer = call(conditions[condition], moment)
      if (typeof answer === 'boolean') return answer
      const found =
        typeof answer === 'object' && answer !== null && 'then' in answer ? 'a promise' : typeof answer
      const text = `The property '${name}' must synchronously return true or false, but a condition returned ${found}.`
      throw new PathError('bad_option', text, name)
    },
    rank: (moment) => {
      if (property.kind !== 'decreases') return []
      const rank: unknown = call(property.rank, moment)
      const numbers = [rank].flat()
      if (numbers.every((number): number is number => typeof number === 'number' && !Number.isNaN(number)))
        return numbers
      const text = `The rank of the property '${name}' must be a number, or a list of numbers.`
      throw new PathError('bad_option', text, name)
    },
  }
}

export function createMoment(snapshot: AnyMachineSnapshot, event: AnyEventObject): Moment {
  const { value, status } = snapshot
  return { value, context: snapshot.context as unknown, status, event, snapshot }
}

/** Lexicographic comparison; negative if `one` is smaller. */
export function compareRanks(one: readonly number[], other: readonly number[]): number {
  for (let at = 0; at < Math.max(one.length, other.length); at++) {
    const difference = (one[at] ?? 0) - (other[at] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

export function createFairTest(property: Property): ((type: string) => boolean) | undefined {
  if (!('fair' in property)) return undefined
  const { fair } = property
  if (fair === true) return () => true
  if (fair.length === 0) return undefined
  return (type) => fair.some((pattern) => matchesType(pattern, type))
}

export function matchesType(pattern: string, type: string): boolean {
  return pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern
}

function nameCondition(condition: MomentCondition): string {
  if (typeof condition === 'string') return `'${condition}'`
  // An inline function gets the name of its object key.
  return ['', 'q'].includes(condition.name) ? 'the condition' : condition.name
}

/** A state together with the verdicts on entering it. */
interface MomentNode {
  vertex: Vertex
  depth: number
  via: Way<MomentNode>
  verdict: Verdict
  /** All events that were tried. The nodes of one vertex share this list. */
  moves: readonly MomentMove[]
  /** Whether all events were tried. False beyond the limit. */
  isExpanded: boolean
}

interface MomentMove {
  event: NamedEvent
  to: MomentNode
  isEffective: boolean
}

/** The last move to a place. Undefined for a start. */
type Way<Place> = { move: MomentMove; from: Place } | undefined

/** `step` states whether the rank fell, stayed or rose. */
export interface Verdict {
  p: boolean
  q: boolean
  from: boolean
  step: -1 | 0 | 1
}

interface MomentGraph {
  starts: MomentNode[]
  nodes: MomentNode[]
}

/**
 * Judges the visits of an exploration. Afterwards `getGraph` returns the graph of the judge at this index, as if events of the types
 * in `untried` had not been tried.
 */
export function judgeVisits(judges: readonly Judge[]) {
  const tables = new Map<string, readonly Verdict[]>()
  const moves = new Map<Vertex, JudgedMove[]>()
  const starts: Pick<JudgedMove, 'to' | 'verdicts'>[] = []
  /** The ranks of a state are those of its representative snapshot. */
  const ranks = new Map<Vertex, (readonly number[])[]>()
  const areRanked = judges.some(({ property }) => property.kind === 'decreases')

  /** One verdict per judge. Equal lists are one object. */
  function judgeMoment(moment: Moment, from: Vertex | undefined): readonly Verdict[] {
    const verdicts = judges.map(({ ask, rank }, i): Verdict => {
      const asked = { p: ask('p', moment), q: ask('q', moment), from: ask('from', moment) }
      const before = from && ranks.get(from)?.[i]
      const step = before ? Math.sign(compareRanks(rank(moment), before)) : 0
      return { ...asked, step: step as Verdict['step'] }
    })
    return getOrCreate(tables, JSON.stringify(verdicts), () => verdicts)
  }

  function visit({ vertex, snapshot, transitions, edge }: Visit): void {
    const event = edge?.event.event ?? createInitEvent(vertex.input.value)
    const moment = createMoment(snapshot, event)
    const verdicts = judgeMoment(moment, edge?.from)
    if (areRanked) getOrCreate(ranks, vertex, () => judges.map(({ rank }) => rank(moment)))
    if (!edge) {
      starts.push({ to: vertex, verdicts })
      return
    }
    const isEffective = transitions.length > 0 || vertex !== edge.from
    const list = getOrCreate(moves, edge.from, () => [])
    const isKnown = list.some(
      (move) =>
        move.to === vertex &&
        move.verdicts === verdicts &&
        move.isEffective === isEffective &&
        move.event.event.type === event.type,
    )
    if (!isKnown) list.push({ event: edge.event, to: vertex, verdicts, isEffective })
  }

  return { visit, getGraph }

  function getGraph(
    { vertices, expanded }: Exploration,
    at: number,
    untried: readonly string[] = [],
  ): MomentGraph {
    const isOpen = new Set(vertices.slice(expanded))
    const nodes: MomentNode[] = []
    const byVertex = new Map<Vertex, MomentNode[]>()
    const movesFrom = new Map<Vertex, MomentMove[]>()

    function getNode({ to, verdicts }: (typeof starts)[number], from?: MomentNode): MomentNode {
      const siblings = getOrCreate(byVertex, to, () => [])
      const verdict = verdicts[at] as Verdict
      const known = siblings.find((node) => isSame(node.verdict, verdict))
      if (known) return known
      const depth = from ? from.depth + 1 : 0
      const node = { vertex: to, depth, via: undefined, verdict, moves: [], isExpanded: !isOpen.has(to) }
      siblings.push(node)
      nodes.push(node)
      return node
    }

    function linkMoves(from: MomentNode): MomentMove[] {
      const tried = (moves.get(from.vertex) ?? []).filter(({ event }) => !untried.includes(event.event.type))
      return tried.map((move) => {
        const before = nodes.length
        const to = getNode(move, from)
        const linked = { event: move.event, to, isEffective: move.isEffective }
        if (nodes.length > before) to.via = { move: linked, from }
        return linked
      })
    }

    const first = new Set(starts.map((start) => getNode(start)))
    for (const node of nodes) node.moves = getOrCreate(movesFrom, node.vertex, () => linkMoves(node))
    return { starts: [...first], nodes }
  }
}

interface JudgedMove extends Omit<MomentMove, 'to'> {
  to: Vertex
  verdicts: readonly Verdict[]
}

function isSame(one: Verdict, other: Verdict): boolean {
  return one.p === other.p && one.q === other.q && one.from === other.from && one.step === other.step
}

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
    case 'leadsTo':
    case 'until':
      return findEndlessWait(graph, judge)
    case 'canReach':
      return findDeadEnd(graph)
    default:
      return { breach: findIdleCycle(graph), begun: graph.nodes.length }
  }
}

function trace<Place extends { via: Way<Place> }>(place: Place): { start: Place; moves: MomentMove[] } {
  const moves: MomentMove[] = []
  let start = place
  for (; start.via; start = start.via.from) moves.unshift(start.via.move)
  return { start, moves }
}

function describeNode({ vertex }: MomentNode): string {
  return describeState(vertex.snapshot)
}

function findMoment({ nodes }: MomentGraph, isWrong: (node: MomentNode) => boolean): Breach | undefined {
  const node = nodes.find(isWrong)
  return node && { reason: `does not hold in ${describeNode(node)}`, ...trace(node), loop: null }
}

/** A node that a search has found, in a run that waits for the goal or not. */
interface WaitPlace {
  node: MomentNode
  via: Way<WaitPlace>
  isWaiting: boolean
  depth: number
}

/** The maximum number of loops to try. After that, the shortest story found so far is reported. */
const maxTries = 200

function findEndlessWait({ starts, nodes }: MomentGraph, judge: Judge): Finding {
  const isFair = createFairTest(judge.property)
  const waiting = nodes.filter(({ verdict: { p, q } }) => p && !q)
  const regions = findFairRegions(waiting, isFair)
  const begun = judge.isWaiting ? starts.length : nodes.filter(({ verdict }) => verdict.from).length
  const seen = new Map<MomentNode, boolean[]>()
  const places: WaitPlace[] = []
  const go = (node: MomentNode, wasWaiting: boolean, via?: { move: MomentMove; from: WaitPlace }): void => {
    const isWaiting = (wasWaiting || node.verdict.from) && !node.verdict.q
    const known = getOrCreate(seen, node, () => [])
    if (known[Number(isWaiting)]) return
    known[Number(isWaiting)] = true
    places.push({ node, isWaiting, via, depth: via ? via.from.depth + 1 : 0 })
  }
  for (const start of starts) go(start, judge.isWaiting)

  let best: { place: WaitPlace; round: MomentMove[] } | undefined
  let tries = 0
  for (let next = 0; next < places.length && tries < maxTries; next++) {
    const place = places[next]
    if (!place || (best && place.depth >= best.place.depth + best.round.length)) break
    const { node, isWaiting } = place
    if (isWaiting && !node.verdict.p) {
      const reason = `is violated in ${describeNode(node)} before the goal holds`
      return { breach: { reason, ...traceWait(place), loop: null }, begun }
    }
    const region = isWaiting ? regions.get(node) : undefined
    if (region) {
      tries++
      const round = findFairRound(node, region)
      if (!best || place.depth + round.length < best.place.depth + best.round.length) best = { place, round }
    }
    for (const move of node.moves) go(move.to, isWaiting, { move, from: place })
  }
  if (!best) return { breach: undefined, begun }
  const { place, round } = best
  const why =
    isFair === undefined
      ? ': without `fair`, no event has to happen'
      : round.length === 0
        ? ': no fair event is possible there'
        : ', even if every fair event that stays possible happens'
  return { breach: { reason: `${judge.goal} never holds${why}`, ...traceWait(place), loop: round }, begun }
}

function traceWait(place: WaitPlace): Pick<Breach, 'start' | 'moves'> {
  const { start, moves } = trace(place)
  return { start: start.node, moves }
}

/** Unexplored nodes may lead anywhere, so they count as reaching the goal. */
function findDeadEnd({ nodes }: MomentGraph): Finding {
  const isGoal = ({ verdict }: MomentNode): boolean => verdict.q
  const origins = nodes.filter(({ verdict }) => verdict.from)
  const into = new Map<MomentNode, MomentNode[]>()
  for (const node of nodes) for (const { to } of node.moves) getOrCreate(into, to, () => []).push(node)
  const reaching = new Set(nodes.filter((node) => isGoal(node) || !node.isExpanded))
  for (const node of reaching) for (const source of into.get(node) ?? []) reaching.add(source)
  const stuck = origins.find((node) => !reaching.has(node))
  if (!stuck) return { breach: undefined, begun: origins.length }
  const reason = nodes.some(isGoal)
    ? `the goal is unreachable from ${describeNode(stuck)}`
    : 'no reachable state satisfies it'
  return { breach: { reason, ...trace(stuck), loop: null }, begun: origins.length }
}

/** A step that raises the rank, or a cycle to the same state value that does not lower the rank. */
function findIdleCycle({ nodes }: MomentGraph): Breach | undefined {
  const isIdle = ({ to, isEffective }: MomentMove): boolean => isEffective && to.verdict.step === 0
  const values = new Map(nodes.map((node) => [node, describeValue(node.vertex.snapshot.value)]))
  const rise = nodes.find((node) => node.verdict.step > 0)
  const cycle = findValueCycle()
  if (!rise || (cycle && rise.depth > cycle.moves.length)) return cycle
  const reason = `the rank increases on the way to ${describeNode(rise)}`
  return { reason, ...trace(rise), loop: null }

  function findValueCycle(): Breach | undefined {
    const inside = new Set(nodes)
    const circling = listCirclingValues()
    for (const node of nodes) {
      const value = values.get(node)
      if (value === undefined || !circling.has(value)) continue
      const loop = findWay(node, inside, (move) => isIdle(move) && values.get(move.to) === value, isIdle)
      if (loop.length === 0) continue
      const unchanged = `the rank is unchanged when the machine returns to ${describeNode(node)}`
      return { reason: unchanged, ...trace(node), loop }
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

interface SearchedPlace {
  node: MomentNode
  via: Way<SearchedPlace>
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
      const reached: SearchedPlace = { node: move.to, done, via: { move, from: place } }
      if (isWanted(move, done)) return trace(reached).moves
      const known = getOrCreate(seen, move.to, () => new Set<number>())
      if (known.has(done)) continue
      known.add(done)
      places.push(reached)
    }
  }
  return []
}
