import type { Exploration } from './explore.js'
import type { ObservedMachine } from '../core/chart/observe-machine.js'
import type { MachinePath } from './machine-path.js'
import {
  listStateNodes,
  getStateName,
  type DeclaredTransition,
  type DefinedTransition,
} from '../core/chart/transitions.js'
import { explainUncovered, type UncoveredTransition } from './uncovered.js'

/** What a set of paths takes of a machine, and what nothing takes. Plain JSON. */
export interface Coverage {
  /** Its id. */
  machine: string
  /** How many there are. */
  paths: number
  /** Events of all paths together. */
  events: number
  /** What was looked at to find the paths. */
  explored: { inputs: string[]; states: number; events: number }
  /** Every state but history; whether some path goes through it. */
  states: { id: string; reached: boolean }[]
  /** Every transition that the machine declares. */
  transitions: (DeclaredTransition & {
    /** How often the paths take it. */
    taken: number
    /** Set when it cannot be taken with these inputs and this alphabet. */
    uncovered?: UncoveredTransition
  })[]
  /** Every reachable pair of transitions taken one right after the other; only with `transition-pairs`. */
  pairs?: { first: string; second: string; taken: number }[]
}

export function measureCoverage(
  observed: ObservedMachine,
  exploration: Exploration,
  paths: readonly MachinePath[],
  pairs: readonly (readonly [string, string])[] | undefined,
): Coverage {
  const runs = paths.map((path) => path.steps.flatMap((step) => step.transitions))
  const taken = countNames(runs.flat())
  const isTaken = ({ declared }: DefinedTransition): boolean => taken.has(declared.id)
  const coverage: Coverage = {
    machine: observed.machine.id,
    paths: paths.length,
    events: paths.reduce((sum, { weight }) => sum + weight, 0),
    explored: {
      inputs: exploration.starts.map(({ input }) => input.label),
      states: exploration.vertices.length,
      events: exploration.events,
    },
    // A history state is a way to a state, never one to be in.
    states: listStateNodes(observed.machine)
      .filter((node) => node.type !== 'history')
      .map((node) => ({ id: getStateName(node), reached: observed.reached.has(node) })),
    transitions: observed.transitions.map((transition) => ({
      ...transition.declared,
      taken: taken.get(transition.declared.id) ?? 0,
      ...(isTaken(transition)
        ? {}
        : { uncovered: explainUncovered(transition, observed, exploration, isTaken) }),
    })),
  }
  if (!pairs) return coverage
  const takenPairs = countNames(
    runs.flatMap((run) => run.slice(1).map((second, i) => toPairKey(run[i] ?? '', second))),
  )
  const counted = pairs.map(([first, second]) => ({
    first,
    second,
    taken: takenPairs.get(toPairKey(first, second)) ?? 0,
  }))
  return { ...coverage, pairs: counted }
}

function toPairKey(first: string, second: string): string {
  return `${first}\n${second}`
}

function countNames(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}
