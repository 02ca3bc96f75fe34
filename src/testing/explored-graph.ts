import type { AnyEventObject, AnyStateMachine, SnapshotFrom } from 'xstate'
import { observeMachine } from '../core/chart/observe-machine.js'
import { assertMachine } from './assert-machine.js'
import { exploreMachine } from './explore.js'
import { type ExploreOptions, resolveSpace } from './explore-options.js'
import { createPathTo, listIds, type MachinePath, type Vertex } from './machine-path.js'

/** A state that the machine can be in, and what can happen there. */
export interface ExploredState<TMachine extends AnyStateMachine = AnyStateMachine> {
  /** Of several snapshots with one key, the first. */
  snapshot: SnapshotFrom<TMachine>
  /** The label of the input that it was reached from. */
  input: string
  /** Events from the start on the shortest way. */
  depth: number
  /** The events that take a transition here. */
  moves: ExploredMove<TMachine>[]
  /** Whether all its events were tried. False beyond the limit. */
  isExpanded: boolean
  /** The shortest way here. */
  readonly path: MachinePath
}

/** An event that takes a transition, and where it leads. */
export interface ExploredMove<TMachine extends AnyStateMachine = AnyStateMachine> {
  event: AnyEventObject
  /** What people call the event. */
  label: string
  to: ExploredState<TMachine>
  /** Ids of the transitions taken, in order. */
  transitions: string[]
}

/** What a machine can do, as a graph. */
export interface ExploredGraph<TMachine extends AnyStateMachine = AnyStateMachine> {
  /** Where it starts, one an input. */
  starts: ExploredState<TMachine>[]
  /** In breadth-first order. */
  states: ExploredState<TMachine>[]
  /** How many events were tried. */
  events: number
  /** Why not every state was visited; null when all were. */
  bounded: string | null
}

/**
 * Explores a machine: every state that it can reach, and every event that takes a transition there. What
 * `checkProperties`, `generatePaths` and `checkInvariants` look at, for questions of your own. At the limit it stops, and says so.
 *
 * @example
 * const { states, bounded } = explore(machine, { alphabet })
 * const dead = states.filter(({ snapshot, moves }) => snapshot.status === 'active' && moves.length === 0)
 * @throws {PathError} what is wrong with the machine or the options
 */
export function explore<TMachine extends AnyStateMachine>(
  machine: TMachine,
  options: ExploreOptions<TMachine>,
): ExploredGraph<TMachine> {
  assertMachine(machine)
  const states = new Map<Vertex, ExploredState<TMachine>>()
  const getState = (vertex: Vertex): ExploredState<TMachine> => {
    const known = states.get(vertex)
    if (known) return known
    const state: ExploredState<TMachine> = {
      snapshot: vertex.snapshot as SnapshotFrom<TMachine>,
      input: vertex.input.label,
      depth: vertex.depth,
      moves: [],
      isExpanded: true,
      get path() {
        return createPathTo(vertex)
      },
    }
    states.set(vertex, state)
    return state
  }
  const exploration = exploreMachine(
    observeMachine(machine),
    resolveSpace(options as unknown as ExploreOptions),
    ({ vertex, edge, taken }) => {
      const to = getState(vertex)
      if (!edge || (taken.length === 0 && vertex === edge.from)) return true
      const { event, label } = edge.event
      getState(edge.from).moves.push({ event, label, to, transitions: listIds(taken) })
      return true
    },
    { stopsAtLimit: true },
  )
  for (const vertex of exploration.vertices.slice(exploration.expanded)) getState(vertex).isExpanded = false
  return {
    starts: exploration.starts.map(({ vertex }) => getState(vertex)),
    states: [...states.values()],
    events: exploration.events,
    bounded: exploration.bounded?.message ?? null,
  }
}
