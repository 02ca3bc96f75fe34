import type { AnyEventObject, AnyMachineSnapshot } from 'xstate'
import type { Macrostep, ObservedMachine } from '../../core/chart/observe-machine.js'
import type { DefinedTransition } from '../../core/chart/state-labels.js'
import { PathError } from '../errors.js'
import {
  stateLimitError,
  toMachineError,
  canHappen,
  listDelayedEvents,
  nameDelayedEvent,
} from '../explore.js'
import { type ExploreSpace, type NamedEvent, type NamedInput, createWriter } from '../explore-options.js'
import { listEmitted } from '../replay-path.js'
import type { Edge, Vertex } from '../machine-path.js'

export type Side = 'before' | 'after'

/** The effect of a step on one machine; no transitions if the event cannot happen. */
export interface SideStep {
  vertex: Vertex
  taken: readonly DefinedTransition[]
  emitted: AnyEventObject[]
}

export type MachineDifferenceKind = 'state' | 'emitted' | 'output'

/** A step in which the machines differ. */
export interface Parting {
  kind: MachineDifferenceKind
  before: SideStep
  after: SideStep
}

interface Pair {
  before: Vertex
  after: Vertex
}

export interface PairSpace extends Omit<ExploreSpace, 'listEvents'> {
  listEvents: (snapshot: AnyMachineSnapshot) => NamedEvent[]
}

export interface PairExploration {
  pairs: number
  events: number
  bounded: PathError | null
}

/**
 * Sends both machines the same events, breadth first, and reports every step in which they differ. It does not
 * continue from differing states because later steps cannot be compared.
 */
export function explorePairs(
  machines: Readonly<Record<Side, ObservedMachine>>,
  space: PairSpace,
  tell: (parting: Parting) => void,
): PairExploration {
  const write = createWriter()
  const pairs: Pair[] = []
  const known = new Map<NamedInput, Set<string>>()
  const exploration: PairExploration = { pairs: 0, events: 0, bounded: null }

  /** Queues the pair unless it is known or its states differ. */
  function meet(before: SideStep, after: SideStep): void {
    const kind = findKind(before, after)
    if (kind !== undefined) tell({ kind, before, after })
    if (kind === 'state') return
    const pair = { before: before.vertex, after: after.vertex }
    const { input } = pair.before
    const seen = known.get(input) ?? new Set<string>()
    known.set(input, seen)
    const key = `${space.toKey(pair.before.snapshot)}\n${space.toKey(pair.after.snapshot)}`
    if (seen.has(key)) return
    if (pairs.length >= space.limit) {
      throw stateLimitError(
        space.limit,
        pairs.map((one) => one.after),
      )
    }
    seen.add(key)
    pairs.push(pair)
  }

  function findKind(before: SideStep, after: SideStep): MachineDifferenceKind | undefined {
    const [one, other] = [before.vertex.snapshot, after.vertex.snapshot]
    if (one.status !== other.status || write(one.value) !== write(other.value)) return 'state'
    if (write(before.emitted) !== write(after.emitted)) return 'emitted'
    return write(one.output) === write(other.output) ? undefined : 'output'
  }

  function begin(side: Side, input: NamedInput): SideStep {
    const step = attempt(side, () => machines[side].start(input.value), input)
    return {
      vertex: { snapshot: step.snapshot, input, depth: 0, via: undefined, out: [] },
      taken: step.taken,
      emitted: listEmitted(step.actions),
    }
  }

  function go(side: Side, from: Vertex, event: NamedEvent): SideStep {
    const { snapshot: at, input } = from
    const isPossible = at.status === 'active' && canHappen(at, event.event)
    const step: Macrostep = isPossible
      ? attempt(side, () => machines[side].step(at, event.event), input, from, event)
      : { snapshot: at, taken: [], actions: [] }
    const { snapshot, taken, actions } = step
    const vertex: Vertex = { snapshot, input, depth: from.depth + 1, via: undefined, out: [] }
    const edge: Edge = { from, to: vertex, event, taken }
    vertex.via = edge
    return { vertex, taken, emitted: listEmitted(actions) }
  }

  function attempt(
    side: Side,
    step: () => Macrostep,
    input: NamedInput,
    from?: Vertex,
    event?: NamedEvent,
  ): Macrostep {
    try {
      return step()
    } catch (error) {
      const { code, message, subject } = toMachineError(machines[side], error, input, from, event)
      throw new PathError(code, `The machine ${side}: ${message}`, subject, { cause: error })
    }
  }

  function listEvents({ before, after }: Pair): NamedEvent[] {
    const found = new Map<string, NamedEvent>()
    for (const { snapshot } of [before, after]) {
      if (snapshot.status !== 'active') continue
      const offered = space.listEvents(snapshot)
      const types = new Set(offered.map(({ event }) => event.type))
      const late = listDelayedEvents(snapshot).filter((type) => !types.has(type))
      for (const event of [...offered, ...late.map(nameDelayedEvent)]) {
        const key = `${event.label}\n${event.event.type}`
        if (!found.has(key)) found.set(key, event)
      }
    }
    return [...found.values()].filter(({ event }) =>
      [before, after].some(({ snapshot }) => snapshot.status === 'active' && canHappen(snapshot, event)),
    )
  }

  function compareAll(): void {
    for (const input of space.inputs) meet(begin('before', input), begin('after', input))
    for (const pair of pairs) {
      for (const event of listEvents(pair)) {
        exploration.events++
        meet(go('before', pair.before, event), go('after', pair.after, event))
      }
    }
  }

  try {
    compareAll()
  } catch (error) {
    if (!(error instanceof PathError) || error.code !== 'state_limit') throw error
    exploration.bounded = error
  }
  exploration.pairs = pairs.length
  space.onProgress({ states: pairs.length, events: exploration.events, waiting: 0 })
  return exploration
}
