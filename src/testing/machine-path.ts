import { expectArgument, objectRule } from '../core/base/values.js'
import type { AnyEventObject, AnyMachineSnapshot } from 'xstate'
import type { StatePath } from '../core/chart/xstate-graph.js'
import { describeEvent, describeState } from '../core/chart/state-labels.js'
import type { NamedEvent, NamedInput } from './explore-options.js'
import type { DefinedTransition } from '../core/chart/transitions.js'

/** A reachable state: what the machine does next depends on nothing else. */
export interface Vertex {
  snapshot: AnyMachineSnapshot
  input: NamedInput
  /** Events from the start on the shortest way. */
  depth: number
  /** The last step of the shortest way; undefined at a start. */
  via: Edge | undefined
  /** The steps that took a transition; of several events that do the same, the first. */
  out: Edge[]
}

export interface Edge {
  from: Vertex
  to: Vertex
  event: NamedEvent
  taken: readonly DefinedTransition[]
}

/** One event of a path, and where it leads. */
export interface PathStep {
  /** The first step's is `{ type: 'xstate.init', input }`, as in paths of `@xstate/graph`. */
  event: AnyEventObject
  /** What people call the event. */
  label: string
  /** Where the machine rests after it. */
  state: AnyMachineSnapshot
  /** Ids of the transitions taken, in order. Empty where a counterexample does not need them. */
  transitions: string[]
  /** What the step emits, where that is what the path shows. */
  emitted?: readonly AnyEventObject[]
  /** What the machine puts out, where that is what the path shows. */
  output?: unknown
}

/** A way through a machine, from its start. It has the shape of the paths of `@xstate/graph` and more. */
export interface MachinePath extends StatePath<AnyMachineSnapshot, AnyEventObject> {
  /** `CANCEL, tools done → COMPLETED`. */
  name: string
  /** The label of the input it starts with. */
  input: string
  /** The first is the start. */
  steps: PathStep[]
}

/** The shortest way to a state. */
export function createPathTo(vertex: Vertex): MachinePath {
  const edges: Edge[] = []
  for (let at = vertex; at.via; at = at.via.from) edges.unshift(at.via)
  return createPathAlong(edges[0]?.from ?? vertex, [], edges)
}

/** The path that starts at `start` with the transitions `initial` and follows the edges. */
export function createPathAlong(
  start: Vertex,
  initial: readonly DefinedTransition[],
  edges: readonly Edge[],
): MachinePath {
  const steps: PathStep[] = [
    {
      event: createInitEvent(start.input),
      label: 'start',
      state: start.snapshot,
      transitions: listIds(initial),
    },
    ...edges.map(({ event, to, taken }) => ({
      event: event.event,
      label: event.label,
      state: to.snapshot,
      transitions: listIds(taken),
    })),
  ]
  const state = edges.at(-1)?.to.snapshot ?? start.snapshot
  return { name: formatPathName(steps, state), input: start.input.label, state, steps, weight: edges.length }
}

/**
 * One line a step: the event, and the state it leads to.
 *
 * @example for (const path of generatePaths(machine, { alphabet }).paths) console.log(formatPath(path))
 */
export function formatPath(path: Pick<MachinePath, 'steps'>): string {
  expectArgument('formatPath(path)', path, objectRule(['steps'], 'a path of generatePaths(…).paths'))
  const width = Math.max(...path.steps.map(({ label }) => label.length), 0)
  return path.steps.map(({ label, state }) => `  ${label.padEnd(width)} → ${describeState(state)}`).join('\n')
}

function createInitEvent(input: NamedInput): AnyEventObject {
  return input.value === undefined ? { type: 'xstate.init' } : { type: 'xstate.init', input: input.value }
}

/** The names of transitions. */
export function listIds(taken: readonly DefinedTransition[]): string[] {
  return taken.map(({ declared }) => declared.id)
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
