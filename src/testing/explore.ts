import { describeError } from '../core/base/errors.js'
import { getOrCreate, isObject } from '../core/base/values.js'
import type { AnyEventObject, AnyStateMachine, SnapshotFrom, AnyMachineSnapshot } from 'xstate'
import {
  observeMachine,
  listActiveStates,
  type Macrostep,
  type MachineAction,
  type ObservedMachine,
} from '../core/chart/observe-machine.js'
import { assertMachine, PathError } from './errors.js'
import {
  type ExploreOptions,
  resolveSpace,
  type NamedEvent,
  type NamedInput,
  type ExploreSpace,
  createWriter,
  isActor,
} from './explore-options.js'
import {
  createPathTo,
  listIds,
  type MachinePath,
  type Vertex,
  type Edge,
  formatPath,
} from './machine-path.js'
import { getStateName, type DefinedTransition, describeState } from '../core/chart/state-labels.js'

/** A reachable state and its transitions. */
export interface ExploredState<TMachine extends AnyStateMachine = AnyStateMachine> {
  /** The first of the snapshots with the same key. */
  snapshot: SnapshotFrom<TMachine>
  /** Label of the input that led to the state. */
  input: string
  /** Length of the shortest path. */
  depth: number
  /** Events that take a transition. */
  moves: ExploredMove<TMachine>[]
  /** Whether all events were tried. False beyond the limit. */
  isExpanded: boolean
  /** The shortest path to the state. */
  readonly path: MachinePath
}

export interface ExploredMove<TMachine extends AnyStateMachine = AnyStateMachine> {
  event: AnyEventObject
  label: string
  to: ExploredState<TMachine>
  /** Ids of the transitions taken, in order. */
  transitions: string[]
}

export interface ExploredGraph<TMachine extends AnyStateMachine = AnyStateMachine> {
  /** The start states, one per input. */
  starts: ExploredState<TMachine>[]
  /** The states in breadth-first order. */
  states: ExploredState<TMachine>[]
  events: number
  /** Why the exploration is incomplete, or null. */
  bounded: string | null
}

/**
 * Explores every reachable state and every event that takes a transition. Use it for custom analyses of the graph
 * behind `checkProperties`, `generatePaths` and `checkInvariants`. Stops at the limit and reports it.
 *
 * @example
 * const { states, bounded } = explore(machine, { alphabet })
 * const dead = states.filter(({ snapshot, moves }) => snapshot.status === 'active' && moves.length === 0)
 * @throws {PathError} for an invalid machine or invalid options
 */
export function explore<TMachine extends AnyStateMachine>(
  machine: TMachine,
  options: ExploreOptions<TMachine>,
): ExploredGraph<TMachine> {
  const { observed, space } = openSpace(machine, options)
  const states = new Map<Vertex, ExploredState<TMachine>>()
  const getState = (vertex: Vertex): ExploredState<TMachine> =>
    getOrCreate(states, vertex, () => ({
      snapshot: vertex.snapshot as SnapshotFrom<TMachine>,
      input: vertex.input.label,
      depth: vertex.depth,
      moves: [],
      isExpanded: true,
      get path() {
        return createPathTo(vertex)
      },
    }))
  const exploration = exploreMachine(
    observed,
    space,
    ({ vertex, edge, transitions }) => {
      const to = getState(vertex)
      if (!edge || (transitions.length === 0 && vertex === edge.from)) return
      const { event, label } = edge.event
      getState(edge.from).moves.push({ event, label, to, transitions: listIds(transitions) })
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

/** The machine and the space to explore. @throws {PathError} for an invalid machine or invalid options */
export function openSpace<TMachine extends AnyStateMachine>(
  machine: TMachine,
  options: ExploreOptions<TMachine>,
): { observed: ObservedMachine; space: ExploreSpace } {
  assertMachine(machine)
  return { observed: observeMachine(machine), space: resolveSpace(options as unknown as ExploreOptions) }
}

export interface Exploration {
  starts: { vertex: Vertex; transitions: readonly DefinedTransition[] }[]
  vertices: Vertex[]
  /** Number of leading vertices with all their edges. Smaller than the total only if the limit was reached. */
  expanded: number
  bounded: PathError | null
  events: number
  /** Event types that were tried while a state was active, by dotted path. */
  offered: ReadonlyMap<string, ReadonlySet<string>>
}

export interface Visit {
  vertex: Vertex
  snapshot: AnyMachineSnapshot
  actions: readonly MachineAction[]
  transitions: readonly DefinedTransition[]
  edge: Edge | undefined
}

const progressEvery = 500

/**
 * Visits every reachable state once, breadth first, so the first path to a state is a shortest one. `visit` is called
 * for every step and returns false to stop. At the limit it throws or, with `stopsAtLimit`, sets `bounded`.
 * @throws {PathError} `state_limit`, or a machine error with its path
 */
export function exploreMachine(
  observed: ObservedMachine,
  space: ExploreSpace,
  visit: (visit: Visit) => boolean | void = () => undefined,
  { stopsAtLimit = false } = {},
): Exploration {
  const vertices: Vertex[] = []
  const starts: Exploration['starts'] = []
  const offered = new Map<string, Set<string>>()
  const byInput = new Map<NamedInput, Map<string, Vertex>>()
  const lists = new Map<string, readonly DefinedTransition[]>()
  const exploration: Exploration = { starts, vertices, expanded: 0, bounded: null, events: 0, offered }

  function getVertex(
    snapshot: AnyMachineSnapshot,
    input: NamedInput,
    via: Omit<Edge, 'to'> | undefined,
  ): Vertex {
    const known = getOrCreate(byInput, input, () => new Map<string, Vertex>())
    return getOrCreate(known, space.toKey(snapshot), () => {
      if (vertices.length >= space.limit) throw stateLimitError(space.limit, vertices)
      const vertex: Vertex = { snapshot, input, depth: via ? via.from.depth + 1 : 0, via: undefined, out: [] }
      if (via) vertex.via = { ...via, to: vertex }
      vertices.push(vertex)
      return vertex
    })
  }

  /** Most steps take one of a few sequences, so equal sequences share one array. */
  function shareTransitions(transitions: DefinedTransition[]): readonly DefinedTransition[] {
    return getOrCreate(lists, listIds(transitions).join('\n'), () => transitions)
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
      const { snapshot, transitions, actions } = tryStep(
        () => observed.step(from.snapshot, event.event),
        from.input,
        from,
        event,
      )
      const step = { from, event, transitions: shareTransitions(transitions) }
      const vertex = getVertex(snapshot, from.input, step)
      const edge: Edge =
        vertex.via?.from === from && vertex.via.event === event ? vertex.via : { ...step, to: vertex }
      const isNew = !from.out.some((known) => known.to === vertex && known.transitions === edge.transitions)
      if (isNew && (transitions.length > 0 || vertex !== from)) from.out.push(edge)
      if (visit({ vertex, snapshot, actions, transitions, edge }) === false) return false
    }
    return true
  }

  function listEvents(snapshot: AnyMachineSnapshot): NamedEvent[] {
    if (snapshot.status !== 'active') return []
    const events = listOffered(space, snapshot).filter(({ event }) => canHappen(snapshot, event))
    for (const node of listActiveStates(snapshot)) {
      const types = getOrCreate(offered, getStateName(node), () => new Set<string>())
      for (const { event } of events) types.add(event.type)
    }
    return events
  }

  function reportProgress(waiting: number): void {
    space.onProgress({ states: vertices.length, events: exploration.events, waiting })
  }

  function visitAll(): void {
    for (const input of space.inputs) {
      const { snapshot, transitions, actions } = tryStep(() => observed.start(input.value), input)
      const vertex = getVertex(snapshot, input, undefined)
      starts.push({ vertex, transitions: shareTransitions(transitions) })
      if (visit({ vertex, snapshot, actions, transitions, edge: undefined }) === false) return
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

export function canHappen(snapshot: AnyMachineSnapshot, event: AnyEventObject): boolean {
  const actor = /^xstate\.(?:done|error)\.actor\.(.+)$/.exec(event.type)?.[1]
  return actor === undefined || actor in snapshot.children
}

/** The events of the alphabet, and the `after` events of active states that it does not list. */
export function listOffered(space: ExploreSpace, snapshot: AnyMachineSnapshot): NamedEvent[] {
  const events = space.listEvents(snapshot)
  const listed = new Set(events.map(({ event }) => event.type))
  const late = listActiveStates(snapshot)
    .flatMap((node) => [...node.transitions.keys()])
    .filter((type) => type.startsWith('xstate.after.') && !listed.has(type))
    .map((type) => ({ event: { type }, label: `after ${type.split('.')[2] ?? ''}` }))
  return [...events, ...late]
}

/** Converts an error from the machine to an error that names the faulty part and the path to that part. */
export function toMachineError(
  observed: ObservedMachine,
  error: unknown,
  input: NamedInput,
  from: Vertex | undefined,
  event: NamedEvent | undefined,
): PathError {
  const where =
    from && event
      ? `on ${event.label} in ${describeState(from.snapshot)}`
      : `at the start with ${input.label}`
  const way = from && from.depth > 0 ? `\nPath:\n${formatPath(createPathTo(from))}` : ''
  const options = { cause: error }
  const broken = observed.brokenGuard()
  if (broken) {
    const { guard, id } = broken.declared
    const missing = /^Guard '(.+?)' is not implemented/.exec(describeError(broken.error))?.[1]
    if (missing !== undefined) {
      const text = `The guard '${missing}' has no implementation. Provide one in setup({ guards }) or machine.provide().`
      return new PathError('guard_missing', text, missing, options)
    }
    const text = `The guard '${guard}' threw ${where}: ${describeError(broken.error)}\nTransition: ${id}${way}`
    return new PathError('guard_threw', text, guard ?? undefined, options)
  }
  const message = describeError(error)
  if (message.startsWith('Infinite loop detected')) {
    const text = `The machine never settles ${where}: its always transitions or raised events form an endless loop.`
    return new PathError('endless_loop', text + way, undefined, options)
  }
  const text = `An action, or a function for input or context, threw ${where}: ${message}${way}`
  return new PathError('action_threw', text, undefined, options)
}

export function stateLimitError(limit: number, vertices: readonly Vertex[]): PathError {
  const growing = listGrowingKeys(vertices)
  const cause =
    growing.length > 0
      ? `These context keys keep taking new values: ${growing.join(', ')}. Limit them`
      : 'No single context key keeps growing, but their combinations do. Use fewer events, raise the limit'
  return new PathError(
    'state_limit',
    `Stopped at the limit of ${limit} states; ${vertices.length} were seen, the deepest ${vertices.at(-1)?.depth ?? 0} ` +
      `events from the start. ${cause}, or pass a serializeState that keeps only what guards read.`,
    'limit',
  )
}

const maxShownKeys = 5
const maxNesting = 4

/** Keys that take new values in the later half of the exploration, most varied first. */
function listGrowingKeys(vertices: readonly Vertex[]): string[] {
  const write = createWriter()
  const values = new Map<string, { all: Set<string>; early: number }>()

  function note(key: string, value: unknown, depth: number): void {
    if (depth < maxNesting && isObject(value) && !isActor(value)) {
      for (const [name, part] of Object.entries(value))
        note(key === '' ? name : `${key}.${name}`, part, depth + 1)
      return
    }
    getOrCreate(values, key, () => ({ all: new Set(), early: 0 })).all.add(write(value))
  }

  vertices.forEach((vertex, i) => {
    if (i === Math.floor(vertices.length / 2)) for (const seen of values.values()) seen.early = seen.all.size
    note('', vertex.snapshot.context, 0)
  })
  return [...values]
    .filter(([key, { all, early }]) => key !== '' && early > 1 && all.size > early)
    .sort(([, a], [, b]) => b.all.size - a.all.size)
    .slice(0, maxShownKeys)
    .map(([key, { all }]) => `${key} (${all.size} values)`)
}

export function coarseStatesError(input: string, label: string, expected: string, actual: string): PathError {
  return new PathError(
    'coarse_states',
    `serializeState merges different states: starting with ${input}, '${label}' should have led to ` +
      `${expected}, but led to ${actual}. Include everything that guards read.`,
    'serializeState',
  )
}
