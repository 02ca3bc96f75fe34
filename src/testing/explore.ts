import type { AnyEventObject, AnyMachineSnapshot } from 'xstate'
import { PathError } from './errors.js'
import { toMachineError, stateLimitError } from './explore-errors.js'
import {
  listActiveStates,
  type Macrostep,
  type MachineAction,
  type ObservedMachine,
} from '../core/chart/observe-machine.js'
import type { Edge, Vertex } from './machine-path.js'
import type { NamedEvent, NamedInput, ExploreSpace } from './explore-options.js'
import { getStateName, type DefinedTransition } from '../core/chart/transitions.js'

export interface Start {
  vertex: Vertex
  input: NamedInput
  /** The transitions of the initial macrostep. */
  taken: readonly DefinedTransition[]
}

export interface Exploration {
  starts: Start[]
  /** In breadth-first order. */
  vertices: Vertex[]
  /** Of the first vertices, this many have all their edges. All, unless the limit stopped the exploration. */
  expanded: number
  /** Why not every state was visited; null when all were. */
  bounded: PathError | null
  /** How many events were tried. */
  events: number
  /** The event types that were tried while a state (by its dotted path) was active. */
  offered: ReadonlyMap<string, ReadonlySet<string>>
}

/** One step of the exploration, new state or not; without `edge` it is the start of an input. */
export interface Visit {
  vertex: Vertex
  snapshot: AnyMachineSnapshot
  actions: readonly MachineAction[]
  taken: readonly DefinedTransition[]
  edge: Edge | undefined
}

const progressEvery = 500

/**
 * Visits every reachable state once, breadth first, so the first way found to a state is a shortest one.
 * `visit` sees every step and stops the exploration by returning false. At the limit it throws, or, if it `stopsAtLimit`,
 * says so in `bounded`.
 * @throws {PathError} `state_limit`, or what is wrong with the machine and the path that shows it
 */
export function exploreMachine(
  observed: ObservedMachine,
  space: ExploreSpace,
  visit: (visit: Visit) => boolean = () => true,
  { stopsAtLimit = false } = {},
): Exploration {
  const vertices: Vertex[] = []
  const starts: Start[] = []
  const offered = new Map<string, Set<string>>()
  const byInput = new Map<NamedInput, Map<string, Vertex>>()
  const lists = new Map<string, readonly DefinedTransition[]>()
  const exploration: Exploration = { starts, vertices, expanded: 0, bounded: null, events: 0, offered }

  function getVertex(
    snapshot: AnyMachineSnapshot,
    input: NamedInput,
    via: Omit<Edge, 'to'> | undefined,
  ): Vertex {
    const known = byInput.get(input) ?? new Map<string, Vertex>()
    byInput.set(input, known)
    const key = space.toKey(snapshot)
    const before = known.get(key)
    if (before) return before
    if (vertices.length >= space.limit) throw stateLimitError(space.limit, vertices)
    const vertex: Vertex = { snapshot, input, depth: via ? via.from.depth + 1 : 0, via: undefined, out: [] }
    if (via) vertex.via = { ...via, to: vertex }
    known.set(key, vertex)
    vertices.push(vertex)
    return vertex
  }

  /** Most steps take one of a few sequences: each is kept once. */
  function shareTransitions(taken: DefinedTransition[]): readonly DefinedTransition[] {
    const key = taken.map((transition) => transition.declared.id).join('\n')
    const before = lists.get(key)
    if (!before) lists.set(key, taken)
    return before ?? taken
  }

  function tryStep(apply: () => Macrostep, input: NamedInput, from?: Vertex, event?: NamedEvent): Macrostep {
    try {
      return apply()
    } catch (error) {
      throw toMachineError(observed, error, input, from, event)
    }
  }

  function expandVertex(from: Vertex): boolean {
    for (const event of listEvents(from.snapshot)) {
      exploration.events++
      const { snapshot, taken, actions } = tryStep(
        () => observed.step(from.snapshot, event.event),
        from.input,
        from,
        event,
      )
      const step = { from, event, taken: shareTransitions(taken) }
      const vertex = getVertex(snapshot, from.input, step)
      const edge: Edge =
        vertex.via?.from === from && vertex.via.event === event ? vertex.via : { ...step, to: vertex }
      const isNew = !from.out.some((known) => known.to === vertex && known.taken === edge.taken)
      if (isNew && (taken.length > 0 || vertex !== from)) from.out.push(edge)
      if (!visit({ vertex, snapshot, actions, taken, edge })) return false
    }
    return true
  }

  function listEvents(snapshot: AnyMachineSnapshot): NamedEvent[] {
    if (snapshot.status !== 'active') return []
    const events = space.listEvents(snapshot).filter(({ event }) => canHappen(snapshot, event))
    const listed = new Set(events.map(({ event }) => event.type))
    const late = listDelayedEvents(snapshot).filter((type) => !listed.has(type))
    for (const type of late) {
      listed.add(type)
      events.push(nameDelayedEvent(type))
    }
    for (const node of listActiveStates(snapshot)) {
      const name = getStateName(node)
      const types = offered.get(name)
      if (types) for (const type of listed) types.add(type)
      else offered.set(name, new Set(listed))
    }
    return events
  }

  function reportProgress(waiting: number): void {
    space.onProgress({ states: vertices.length, events: exploration.events, waiting })
  }

  function visitAll(): void {
    for (const input of space.inputs) {
      const { snapshot, taken, actions } = tryStep(() => observed.start(input.value), input)
      const vertex = getVertex(snapshot, input, undefined)
      starts.push({ vertex, input, taken: shareTransitions(taken) })
      if (!visit({ vertex, snapshot, actions, taken, edge: undefined })) return
    }
    for (let next = 0; next < vertices.length; next++) {
      const vertex = vertices[next]
      if (vertex && !expandVertex(vertex)) break
      exploration.expanded = next + 1
      if ((next + 1) % progressEvery === 0) reportProgress(vertices.length - next - 1)
    }
    reportProgress(0)
  }

  try {
    visitAll()
  } catch (error) {
    if (!stopsAtLimit || !(error instanceof PathError) || error.code !== 'state_limit') throw error
    exploration.bounded = error
  }
  return exploration
}

/** Whether the event can happen: an actor reports only while it runs. */
export function canHappen(snapshot: AnyMachineSnapshot, event: AnyEventObject): boolean {
  const actor = /^xstate\.(?:done|error)\.actor\.(.+)$/.exec(event.type)?.[1]
  return actor === undefined || actor in snapshot.children
}

/** The types of the `after` events that can happen in a snapshot. */
export function listDelayedEvents(snapshot: AnyMachineSnapshot): string[] {
  return listActiveStates(snapshot).flatMap((node) =>
    [...node.transitions.keys()].filter((type) => type.startsWith('xstate.after.')),
  )
}

export function nameDelayedEvent(type: string): NamedEvent {
  return { event: { type }, label: `after ${type.split('.')[2] ?? ''}` }
}
