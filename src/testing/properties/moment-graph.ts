import { getOrCreate } from '../../core/base/values.js'
import type { AnyEventObject, AnyMachineSnapshot, AnyStateMachine } from 'xstate'
import { describeState } from '../../core/chart/state-labels.js'
import { PathError, getErrorMessage } from '../errors.js'
import { createStateTest, type Moment, type MomentCondition, type Property } from './property.js'
import type { ObservedMachine } from '../../core/chart/observe-machine.js'
import type { ExploreSpace, NamedEvent } from '../explore-options.js'
import { exploreMachine } from '../explore.js'
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

/** `getGraph` returns the graph of the judge at this index. */
export function judgeMachine(observed: ObservedMachine, space: ExploreSpace, judges: readonly Judge[]) {
  const tables = new Map<string, { id: number; verdicts: Verdict[] }>()
  const moves = new Map<Vertex, JudgedMove[]>()
  const starts: { vertex: Vertex; truth: number }[] = []
  const ranks = judges.map(() => new Map<Vertex, readonly number[]>())

  function getTruth(moment: Moment, from: Vertex | undefined): number {
    const verdicts = judges.map((judge, i): Verdict => {
      const ask = (condition: 'p' | 'q' | 'from'): boolean => judge.ask(condition, moment)
      return { p: ask('p'), q: ask('q'), from: ask('from'), step: compareStep(judge, i, moment, from) }
    })
    return getOrCreate(tables, JSON.stringify(verdicts), () => ({ id: tables.size, verdicts })).id
  }

  function compareStep(judge: Judge, i: number, moment: Moment, from: Vertex | undefined): Verdict['step'] {
    if (judge.property.kind !== 'decreases') return 0
    const before = from && ranks[i]?.get(from)
    return before ? (Math.sign(compareRanks(judge.rank(moment), before)) as Verdict['step']) : 0
  }

  /** The rank of a state is the rank of its representative snapshot. */
  function noteRanks(vertex: Vertex, moment: Moment): void {
    for (const [i, judge] of judges.entries()) {
      const known = ranks[i]
      if (judge.property.kind === 'decreases' && known && !known.has(vertex))
        known.set(vertex, judge.rank(moment))
    }
  }

  const exploration = exploreMachine(
    observed,
    space,
    ({ vertex, snapshot, transitions, edge }) => {
      const event = edge?.event.event ?? createInitEvent(vertex.input.value)
      const moment = createMoment(snapshot, event)
      const truth = getTruth(moment, edge?.from)
      noteRanks(vertex, moment)
      if (!edge) {
        starts.push({ vertex, truth })
        return true
      }
      const isEffective = transitions.length > 0 || vertex !== edge.from
      const list = getOrCreate(moves, edge.from, () => [])
      const isKnown = list.some(
        (move) =>
          move.to === vertex &&
          move.truth === truth &&
          move.isEffective === isEffective &&
          move.event.event.type === event.type,
      )
      if (!isKnown) list.push({ event: edge.event, to: vertex, truth, isEffective })
      return true
    },
    { stopsAtLimit: true },
  )

  const verdicts = [...tables.values()].map((table) => table.verdicts)
  return { exploration, getGraph: (at: number) => linkNodes(verdicts.map((all) => all[at] ?? noVerdict)) }

  function linkNodes(verdictsOf: readonly Verdict[]): MomentGraph {
    const isOpen = new Set(exploration.vertices.slice(exploration.expanded))
    const nodes: MomentNode[] = []
    const byVertex = new Map<Vertex, MomentNode[]>()
    const linked = new Map<Vertex, MomentMove[]>()

    function getNode(vertex: Vertex, truth: number, from: MomentNode | undefined): MomentNode {
      const siblings = getOrCreate(byVertex, vertex, () => [])
      const verdict = verdictsOf[truth] ?? noVerdict
      const known = siblings.find((node) => isSame(node.verdict, verdict))
      if (known) return known
      const depth = from ? from.depth + 1 : 0
      const node = { vertex, depth, via: undefined, verdict, moves: [], isExpanded: !isOpen.has(vertex) }
      siblings.push(node)
      nodes.push(node)
      return node
    }

    function linkMoves(from: MomentNode): MomentMove[] {
      return (moves.get(from.vertex) ?? []).map(({ event, to, truth, isEffective }) => {
        const before = nodes.length
        const target = getNode(to, truth, from)
        if (nodes.length > before) target.via = { event, to: target, isEffective, from }
        return { event, to: target, isEffective }
      })
    }

    const first = new Set(starts.map(({ vertex, truth }) => getNode(vertex, truth, undefined)))
    for (const node of nodes) node.moves = getOrCreate(linked, node.vertex, () => linkMoves(node))
    return { starts: [...first], nodes }
  }
}

const noVerdict: Verdict = { p: false, q: false, from: false, step: 0 }

interface JudgedMove {
  event: NamedEvent
  to: Vertex
  truth: number
  isEffective: boolean
}

function isSame(one: Verdict, other: Verdict): boolean {
  return one.p === other.p && one.q === other.q && one.from === other.from && one.step === other.step
}
