import type { ObservedMachine } from '../../core/chart/observe-machine.js'
import type { ExploreSpace, NamedEvent } from '../explore-options.js'
import { exploreMachine, type Exploration } from '../explore.js'
import type { Vertex } from '../machine-path.js'
import { compareRanks, createMoment, createStartEvent, type Judge } from './judge.js'
import type { Moment } from './property.js'

/** A state together with what the conditions of one property said as it was entered. */
export interface MomentNode {
  vertex: Vertex
  /** Events from the start on the shortest way. */
  depth: number
  /** The last step of the shortest way; undefined at a start. */
  via: MomentMove | undefined
  /** What the property's conditions said. */
  verdict: Verdict
  /** Every event that was tried here; the lists of nodes with one vertex are the same. */
  moves: readonly MomentMove[]
  /** Whether its events were all tried. False beyond the limit. */
  isExpanded: boolean
}

export interface MomentMove {
  event: NamedEvent
  to: MomentNode
  /** Whether it takes a transition; events that the machine ignores do not. */
  isEffective: boolean
  /** The node where the shortest way comes from, on a way. */
  from?: MomentNode
}

/** What conditions said. `step`: whether the rank fell, stayed or rose. */
export interface Verdict {
  p: boolean
  q: boolean
  from: boolean
  step: -1 | 0 | 1
}

export interface MomentGraph {
  starts: MomentNode[]
  /** In breadth-first order. */
  nodes: MomentNode[]
  exploration: Exploration
}

/** What an exploration saw, for all properties together. */
export interface JudgedExploration {
  exploration: Exploration
  /** The graph of the property at this place. */
  getGraph: (at: number) => MomentGraph
}

/** Explores the machine, and asks the conditions of all properties after each event. */
export function judgeMachine(
  observed: ObservedMachine,
  space: ExploreSpace,
  judges: readonly Judge[],
): JudgedExploration {
  const tables = new Map<string, { id: number; verdicts: Verdict[] }>()
  const moves = new Map<Vertex, JudgedMove[]>()
  const starts: { vertex: Vertex; truth: number }[] = []
  const ranks = judges.map(() => new Map<Vertex, readonly number[]>())

  function getTruth(moment: Moment, from: Vertex | undefined): number {
    const verdicts = judges.map((judge, i): Verdict => {
      const ask = (condition: 'p' | 'q' | 'from'): boolean => judge.ask(condition, moment)
      return { p: ask('p'), q: ask('q'), from: ask('from'), step: compareStep(judge, i, moment, from) }
    })
    const key = JSON.stringify(verdicts)
    const known = tables.get(key) ?? { id: tables.size, verdicts }
    tables.set(key, known)
    return known.id
  }

  function compareStep(judge: Judge, i: number, moment: Moment, from: Vertex | undefined): Verdict['step'] {
    if (judge.property.kind !== 'decreases') return 0
    const before = from && ranks[i]?.get(from)
    return before ? (Math.sign(compareRanks(judge.rank(moment), before)) as Verdict['step']) : 0
  }

  /** The rank of a state is that of the snapshot that stands for it. */
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
    ({ vertex, snapshot, taken, edge }) => {
      const event = edge?.event.event ?? createStartEvent(vertex.input.value)
      const moment = createMoment(snapshot, event)
      const truth = getTruth(moment, edge?.from)
      noteRanks(vertex, moment)
      if (!edge) {
        starts.push({ vertex, truth })
        return true
      }
      const isEffective = taken.length > 0 || vertex !== edge.from
      const list = moves.get(edge.from) ?? []
      moves.set(edge.from, list)
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
  return {
    exploration,
    getGraph: (at) =>
      linkNodes({ exploration, starts, moves, verdicts: verdicts.map((all) => all[at] ?? noVerdict) }),
  }
}

const noVerdict: Verdict = { p: false, q: false, from: false, step: 0 }

interface JudgedMove {
  event: NamedEvent
  to: Vertex
  /** The number of what the conditions said. */
  truth: number
  isEffective: boolean
}

interface JudgedMoves {
  exploration: Exploration
  starts: readonly { vertex: Vertex; truth: number }[]
  moves: ReadonlyMap<Vertex, readonly JudgedMove[]>
  /** By the numbers in `truth`. */
  verdicts: readonly Verdict[]
}

function linkNodes({ exploration, starts, moves, verdicts }: JudgedMoves): MomentGraph {
  const isOpen = new Set(exploration.vertices.slice(exploration.expanded))
  const nodes: MomentNode[] = []
  const byVertex = new Map<Vertex, MomentNode[]>()
  const linked = new Map<Vertex, MomentMove[]>()

  function getNode(vertex: Vertex, truth: number, from: MomentNode | undefined): MomentNode {
    const siblings = byVertex.get(vertex) ?? []
    byVertex.set(vertex, siblings)
    const verdict = verdicts[truth] ?? noVerdict
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
  for (const node of nodes) {
    const own = linked.get(node.vertex) ?? linkMoves(node)
    linked.set(node.vertex, own)
    node.moves = own
  }
  return { starts: [...first], nodes, exploration }
}

function isSame(one: Verdict, other: Verdict): boolean {
  return one.p === other.p && one.q === other.q && one.from === other.from && one.step === other.step
}
