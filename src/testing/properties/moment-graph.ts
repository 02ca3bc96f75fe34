import { getOrCreate } from '../../core/base/values.js'
import type { AnyEventObject, AnyMachineSnapshot, AnyStateMachine } from 'xstate'
import { describeState } from '../../core/chart/state-labels.js'
import { PathError, getErrorMessage } from '../errors.js'
import { createStateTest, type Moment, type MomentCondition, type Property } from './property.js'
import type { NamedEvent } from '../explore-options.js'
import type { Exploration, Visit } from '../explore.js'
import { createInitEvent, type Vertex } from '../machine-path.js'

/** Evaluates the conditions of one property. Errors name the property. */
export interface Judge {
  name: string
  property: Property
  goal: string
  /** Missing conditions are false. */
  ask: (condition: 'p' | 'q' | 'from', moment: Moment) => boolean
  rank: (moment: Moment) => readonly number[]
}

export function createJudge(machine: AnyStateMachine, name: string, property: Property): Judge {
  const conditions = {
    p: compile('p' in property ? property.p : undefined),
    q: compile('q' in property ? property.q : undefined),
    from: compile('from' in property ? property.from : undefined),
  }

  function compile(condition: MomentCondition | undefined): (moment: Moment) => unknown {
    if (condition === undefined) return () => false
    if (typeof condition === 'function') return condition
    const isThere = createStateTest(machine, condition)
    return ({ snapshot }) => isThere(snapshot)
  }

  function call<Value>(ask: (moment: Moment) => Value, moment: Moment): Value {
    try {
      return ask(moment)
    } catch (cause) {
      const where = `after ${moment.event.type} in ${describeState(moment.snapshot)}`
      const text = `The property '${name}' threw ${where}: ${getErrorMessage(cause)}`
      throw new PathError('property_threw', text, name, { cause })
    }
  }

  return {
    name,
    property,
    goal: 'q' in property ? nameCondition(property.q) : '',
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
export interface MomentNode {
  vertex: Vertex
  depth: number
  via: MomentMove | undefined
  verdict: Verdict
  /** All events that were tried. The nodes of one vertex share this list. */
  moves: readonly MomentMove[]
  /** Whether all events were tried. False beyond the limit. */
  isExpanded: boolean
}

export interface MomentMove {
  event: NamedEvent
  to: MomentNode
  isEffective: boolean
  from?: MomentNode
}

/** `step` states whether the rank fell, stayed or rose. */
export interface Verdict {
  p: boolean
  q: boolean
  from: boolean
  step: -1 | 0 | 1
}

export interface MomentGraph {
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
    const linked = new Map<Vertex, MomentMove[]>()

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
        const { event, isEffective } = move
        const before = nodes.length
        const to = getNode(move, from)
        if (nodes.length > before) to.via = { event, to, isEffective, from }
        return { event, to, isEffective }
      })
    }

    const first = new Set(starts.map((start) => getNode(start)))
    for (const node of nodes) node.moves = getOrCreate(linked, node.vertex, () => linkMoves(node))
    return { starts: [...first], nodes }
  }
}

interface JudgedMove extends Omit<MomentMove, 'to' | 'from'> {
  to: Vertex
  verdicts: readonly Verdict[]
}

function isSame(one: Verdict, other: Verdict): boolean {
  return one.p === other.p && one.q === other.q && one.from === other.from && one.step === other.step
}
