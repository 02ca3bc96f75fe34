import { describeError } from '../core/base/errors.js'
import type { AnyEventObject, AnyStateMachine, SnapshotFrom } from 'xstate'
import { PathError } from './errors.js'
import { type Exploration, exploreMachine, openSpace, type Visit } from './explore.js'
import type { MachineAction } from '../core/chart/observe-machine.js'
import {
  createInitEvent,
  createPath,
  createPathAlong,
  createPathTo,
  createStep,
  formatPath,
  listIds,
  type MachinePath,
} from './machine-path.js'
import type { ExploreOptions } from './explore-options.js'

/**
 * How the machine reached a state. For an initial state, `previous` is undefined and `event` is `xstate.init`.
 *
 * @example
 * const noSilentEnd = {
 *   name: 'an end says so',
 *   holds: (after: { status: string }, { actions }: Arrival) => after.status !== 'done' || actions.length > 0,
 * }
 * checkInvariants(machine, [noSilentEnd], { alphabet })
 */
export interface Arrival<TMachine extends AnyStateMachine = AnyStateMachine> {
  previous: SnapshotFrom<TMachine> | undefined
  event: AnyEventObject
  /** The actions that the machine would execute: `xstate.emit`, `xstate.spawnChild`, and custom actions by name. */
  actions: readonly MachineAction[]
  /** Ids of the transitions taken, in order. */
  transitions: readonly string[]
  /** The shortest path to the state. */
  readonly path: MachinePath
}

/**
 * A rule that must hold in every reachable state.
 *
 * @example const rule: Invariant = { name: 'never both', holds: ({ context }) => !(context.a && context.b) }
 */
export interface Invariant<TMachine extends AnyStateMachine = AnyStateMachine> {
  /** The rule as a sentence. */
  name: string
  /**
   * Called for every start state, and after every possible event in a reachable state. To report a violation, return
   * false, return a sentence, or throw. The `expect` of a test works too.
   */
  holds: (snapshot: SnapshotFrom<TMachine>, arrival: Arrival<TMachine>) => boolean | string | void
}

/** The shortest path that violates an invariant. */
export interface Counterexample {
  invariant: string
  reason: string
  path: MachinePath
  /** Invariant, reason and path as text. */
  toString(): string
}

/** The result of `checkInvariants`. */
export interface InvariantReport {
  holds: boolean
  /** The violations, at most one for each invariant. */
  violations: Counterexample[]
  /** Number of distinct states visited. Exploration stops once every invariant is violated. */
  states: number
  events: number
}

/**
 * Checks that rules hold in every reachable state, after every event.
 *
 * ```ts
 * const report = checkInvariants(machine, [{ name: 'the cap is kept', holds: (s) => s.context.steps <= 2 }], { alphabet })
 * if (!report.holds) throw new Error(report.violations.join('\n'))
 * ```
 *
 * @throws {PathError}
 */
export function checkInvariants<TMachine extends AnyStateMachine>(
  machine: TMachine,
  invariants: readonly Invariant<TMachine>[],
  options: ExploreOptions<TMachine>,
): InvariantReport {
  const { observed, space } = openSpace(machine, options)
  const check = createInvariantCheck(invariants)
  return check.report(exploreMachine(observed, space, check.visit))
}

/** Checks the visits of an exploration, which other checks can share. */
export function createInvariantCheck<TMachine extends AnyStateMachine>(
  invariants: readonly Invariant<TMachine>[],
) {
  assertInvariants(invariants)
  const open = new Set(invariants)
  const violations: Counterexample[] = []

  function visit(visited: Visit): boolean {
    const arrival = createArrival(visited) as Arrival<TMachine>
    for (const invariant of open) {
      const reason = findBreach(invariant, visited.snapshot as SnapshotFrom<TMachine>, arrival)
      if (reason === undefined) continue
      open.delete(invariant)
      const { name } = invariant
      const { path } = arrival
      const toString = (): string => `${name}: ${reason}\nStarting with ${path.input}:\n${formatPath(path)}`
      violations.push({ invariant: name, reason, path, toString })
    }
    return open.size > 0
  }

  const report = ({ vertices, events }: Exploration): InvariantReport => ({
    holds: violations.length === 0,
    violations,
    states: vertices.length,
    events,
  })
  return { visit, report }
}

function assertInvariants(invariants: readonly Invariant[]): void {
  const fine =
    Array.isArray(invariants) &&
    invariants.length > 0 &&
    invariants.every((invariant: unknown) => typeof (invariant as Invariant | null)?.holds === 'function')
  if (fine) return
  throw new PathError('bad_option', 'Pass at least one invariant: { name, holds(snapshot) }.', 'invariants')
}

function createArrival({ vertex, snapshot, actions, edge, transitions }: Visit): Arrival {
  return {
    previous: edge?.from.snapshot,
    event: edge?.event.event ?? createInitEvent(vertex.input.value),
    actions,
    transitions: listIds(transitions),
    get path() {
      if (!edge) return createPathAlong(vertex, transitions, [])
      const step = createStep(edge.event, snapshot, edge.transitions)
      return createPath(vertex.input, [...createPathTo(edge.from).steps, step])
    },
  }
}

function findBreach<TMachine extends AnyStateMachine>(
  invariant: Invariant<TMachine>,
  snapshot: SnapshotFrom<TMachine>,
  arrival: Arrival<TMachine>,
): string | undefined {
  let verdict: unknown
  try {
    verdict = invariant.holds(snapshot, arrival)
  } catch (error) {
    return describeError(error)
  }
  if (typeof verdict === 'object' && verdict !== null && 'then' in verdict) {
    const text = `The invariant '${invariant.name}' is asynchronous. It must be synchronous.`
    throw new PathError('bad_option', text, invariant.name)
  }
  return verdict === false ? 'does not hold' : typeof verdict === 'string' ? verdict : undefined
}
