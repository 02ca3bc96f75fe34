import { expectArgument, objectRule } from '../core/base/values.js'
import type { AnyEventObject, AnyMachineSnapshot } from 'xstate'
import type { StatePath } from '../core/chart/xstate-graph.js'
import { describeEvent, describeState, type DefinedTransition } from '../core/chart/state-labels.js'
import type { NamedEvent, NamedInput } from './explore-options.js'

/** A reachable state, which alone determines the machine's future. */
export interface Vertex {
  snapshot: AnyMachineSnapshot
  input: NamedInput
  depth: number
  /** Last step of the shortest path. Undefined for a start state. */
  via: Edge | undefined
  /** Steps that took a transition. If several events are equivalent, only the first one is included. */
  out: Edge[]
}

export interface Edge {
  from: Vertex
  to: Vertex
  event: NamedEvent
  transitions: readonly DefinedTransition[]
}

export interface PathStep {
  /** The first step's event is `{ type: 'xstate.init', input }`, as in paths from `@xstate/graph`. */
  event: AnyEventObject
  label: string
  /** The state after the event. */
  state: AnyMachineSnapshot
  /** Ids of the transitions taken, in order. Empty if a counterexample does not need them. */
  transitions: string[]
  /** The emitted events, if the path is about them. */
  emitted?: readonly AnyEventObject[]
  /** The machine's output, if the path is about it. */
  output?: unknown
}

/** A path through a machine. Extends the shape of `@xstate/graph` paths. */
export interface MachinePath extends StatePath<AnyMachineSnapshot, AnyEventObject> {
  /** The name, such as `CANCEL, tools done → COMPLETED`. */
  name: string
  /** Label of the initial input. */
  input: string
  /** The first step is the start. */
  steps: PathStep[]
}

export function createPathTo(vertex: Vertex): MachinePath {
  const edges: Edge[] = []
  for (let at = vertex; at.via; at = at.via.from) edges.unshift(at.via)
  return createPathAlong(edges[0]?.from ?? vertex, [], edges)
}

export function createPathAlong(
  { snapshot, input }: Vertex,
  initial: readonly DefinedTransition[],
  edges: readonly Edge[],
): MachinePath {
  const start = createStep({ event: createInitEvent(input.value), label: 'start' }, snapshot, initial)
  const more = edges.map(({ event, to, transitions }) => createStep(event, to.snapshot, transitions))
  return createPath(input, [start, ...more])
}

export function createStep(
  { event, label }: NamedEvent,
  state: AnyMachineSnapshot,
  transitions: readonly DefinedTransition[],
): PathStep {
  return { event, label, state, transitions: listIds(transitions) }
}

export function createPath({ label }: NamedInput, steps: PathStep[]): MachinePath {
  const { state } = steps.at(-1) as PathStep
  return { name: formatPathName(steps, state), input: label, state, steps, weight: steps.length - 1 }
}

/**
 * Formats a path as one line per step, with the event and its target state.
 *
 * @example for (const path of generatePaths(machine, { alphabet }).paths) console.log(formatPath(path))
 */
export function formatPath(path: Pick<MachinePath, 'steps'>): string {
  expectArgument('formatPath(path)', path, objectRule(['steps'], 'a path of generatePaths(…).paths'))
  const width = Math.max(...path.steps.map(({ label }) => label.length), 0)
  return path.steps.map(({ label, state }) => `  ${label.padEnd(width)} → ${describeState(state)}`).join('\n')
}

export function createInitEvent(input: unknown): AnyEventObject {
  return input === undefined ? { type: 'xstate.init' } : { type: 'xstate.init', input }
}

export function listIds(transitions: readonly DefinedTransition[]): string[] {
  return transitions.map(({ declared }) => declared.id)
}

const maxNamedSteps = 6

function formatPathName(steps: readonly PathStep[], state: AnyMachineSnapshot): string {
  const labels = steps
    .slice(1)
    .map(({ label, event }) => (label.length > 40 ? describeEvent({ type: event.type }) : label))
  const shown =
    labels.length <= maxNamedSteps
      ? labels
      : [...labels.slice(0, 2), '…', ...labels.slice(-(maxNamedSteps - 3))]
  return `${shown.join(', ') || 'start'} → ${describeState(state)}`
}
