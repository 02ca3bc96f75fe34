import type { AnyStateMachine } from 'xstate'
import { assertMachine } from './assert-machine.js'
import { coarseStatesError } from './explore-errors.js'
import { coverItems, type Walk } from './cover-walks.js'
import { measureCoverage, type Coverage } from './coverage.js'
import { PathError } from './errors.js'
import { exploreMachine } from './explore.js'
import type { Edge, Vertex } from './machine-path.js'
import { describeState } from '../core/chart/state-labels.js'
import { observeMachine, type ObservedMachine } from '../core/chart/observe-machine.js'
import { listIds, createPathAlong, type MachinePath } from './machine-path.js'
import { resolveSpace, type ExploreOptions } from './explore-options.js'
import { createWalkGraph } from './walk-graph.js'

/** What is explored, and how thoroughly it is covered. */
export interface GeneratePathsOptions<TMachine extends AnyStateMachine = AnyStateMachine>
  extends ExploreOptions<TMachine> {
  /** `transition-pairs` takes every two transitions that can follow each other, too. Default `transitions`. */
  coverage?: 'transitions' | 'transition-pairs'
}

/** Paths, and what they take of the machine. */
export interface GeneratedPaths {
  /** In the order of the inputs, then of discovery; the same for the same machine and options. */
  paths: MachinePath[]
  /** Plain JSON: for `formatCoverage`, or an overlay on a diagram. */
  coverage: Coverage
}

/**
 * Finds a small set of paths that takes every transition that the machine declares and that can be taken: each guard's
 * branch, `always`, `after`, `onDone`, `onError`, the root's handlers, and those of the initial macrostep. What cannot
 * be taken is in `coverage`, with the reason.
 *
 * No action is executed and no actor started.
 *
 * ```ts
 * const { paths, coverage } = generatePaths(machine, {
 *   inputs: { plain: { retries: 0 }, retrying: { retries: 1 } },
 *   alphabet: { 'model answers': createDoneActorEvent('model', { text: 'Hi' }), CANCEL: { type: 'CANCEL' } },
 * })
 * console.log(formatCoverage(coverage))
 * ```
 *
 * @throws {PathError} `bad_option`, `state_limit`, `guard_threw`, …
 */
export function generatePaths<TMachine extends AnyStateMachine>(
  machine: TMachine,
  options: GeneratePathsOptions<TMachine>,
): GeneratedPaths {
  assertMachine(machine)
  const space = resolveSpace(options as unknown as ExploreOptions)
  const { coverage = 'transitions' } = options
  if (coverage !== 'transitions' && coverage !== 'transition-pairs') {
    const text = `The option 'coverage' must be 'transitions' or 'transition-pairs'.`
    throw new PathError('bad_option', text, 'coverage')
  }
  const pairs = coverage === 'transition-pairs'
  const observed = observeMachine(machine)
  const exploration = exploreMachine(observed, space)
  const graph = createWalkGraph(exploration, pairs)
  const { walks, items } = coverItems(graph)
  // A second copy, so that walking the paths does not count as evidence.
  const again = observeMachine(machine)
  const order = new Map(graph.starts.map(({ start }, i) => [start, i]))
  const paths = walks
    .sort((a, b) => (order.get(a.start.start) ?? 0) - (order.get(b.start.start) ?? 0))
    .map((walk) => retracePath(again, walk))
  const reachable = [...items].map(graph.getName).filter((name) => name.length === 2)
  return { paths, coverage: measureCoverage(observed, exploration, paths, pairs ? reachable : undefined) }
}

/**
 * Walks a path again from its start. The explored states stand for all that have the same key; the path's are the
 * real ones, and when they go another way, the key was too coarse.
 */
function retracePath(observed: ObservedMachine, { start: { start }, edges }: Walk): MachinePath {
  const first = observed.start(start.input.value)
  let from: Vertex = { ...start.vertex, snapshot: first.snapshot }
  const real: Edge[] = edges.map(({ edge }) => {
    const { snapshot, taken } = observed.step(from.snapshot, edge.event.event)
    if (listIds(taken).join('\n') !== listIds(edge.taken).join('\n')) {
      const expected = describeState(edge.to.snapshot)
      throw coarseStatesError(start.input.label, edge.event.label, expected, describeState(snapshot))
    }
    const step = { from, to: { ...edge.to, snapshot }, event: edge.event, taken }
    from = step.to
    return step
  })
  return createPathAlong(real[0]?.from ?? from, first.taken, real)
}
