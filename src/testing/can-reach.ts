import { expectArgument, objectRule } from '../core/base/values.js'
import { type AnyMachineSnapshot, type AnyStateMachine, type SnapshotFrom } from 'xstate'
import { assertMachine, PathError } from './errors.js'
import { exploreMachine } from './explore.js'
import { type Vertex, createPathTo, formatPath, type MachinePath } from './machine-path.js'
import { describeState } from '../core/chart/state-labels.js'
import { observeMachine } from '../core/chart/observe-machine.js'
import { resolveSpace, type ExploreOptions } from './explore-options.js'
import {
  createReachProperty,
  type MomentCondition,
  type Property,
  createStateTest,
} from './properties/property.js'

/** Selects states: a dotted path (`RUNNING.asking.requesting`) or a predicate. */
export type StateCondition<TMachine extends AnyStateMachine = AnyStateMachine> =
  | string
  | ((snapshot: SnapshotFrom<TMachine>) => boolean)

/** The result of `canReach`. */
export interface ReachReport {
  /** Whether every reachable `from` state can reach a `to` state. */
  holds: boolean
  /** Number of reachable `from` and `to` states. */
  from: number
  to: number
  /** Number of `from` states that cannot reach a `to` state. */
  stuck: number
  /** The shortest path to one of them. */
  example?: MachinePath
  /** The result as a sentence, with the example. */
  message: string
}

/**
 * Matches every state, for `canReach`.
 *
 * @example
 * const { holds, message } = canReach(machine, anyState, isFinal, { alphabet })
 */
export const anyState = (): boolean => true

/**
 * Matches the states in which the machine is done, for `canReach`.
 *
 * @example
 * const { holds, message } = canReach(machine, anyState, isFinal, { alphabet })
 */
export const isFinal = (snapshot: { status: string }): boolean => {
  expectArgument('isFinal(snapshot)', snapshot, objectRule(['status'], 'a snapshot'))
  return snapshot.status === 'done'
}

/**
 * From every reachable state, a state that satisfies `q` can be reached. A property for `checkProperties`.
 *
 * @example checkProperties(machine, { 'there is a way out': canReach(isFinal) }, { alphabet })
 */
export function canReach<TMachine extends AnyStateMachine = AnyStateMachine>(
  q: MomentCondition<TMachine>,
): Property<TMachine>
/**
 * Checks whether every reachable `from` state can reach some `to` state.
 *
 * ```ts
 * canReach(machine, anyState, isFinal, { alphabet }).holds
 * ```
 *
 * @throws {PathError} `unknown_state` for a name that the machine does not have, and what `generatePaths` throws
 */
export function canReach<TMachine extends AnyStateMachine>(
  machine: TMachine,
  from: StateCondition<TMachine>,
  to: StateCondition<TMachine>,
  options: ExploreOptions<TMachine>,
): ReachReport
export function canReach(
  ...args: [MomentCondition] | [AnyStateMachine, StateCondition, StateCondition, ExploreOptions]
): Property | ReachReport {
  return args.length === 1 ? createReachProperty(args[0]) : reportReach(...args)
}

function reportReach(
  machine: AnyStateMachine,
  from: StateCondition,
  to: StateCondition,
  options: ExploreOptions,
): ReachReport {
  assertMachine(machine)
  const isFrom = createPredicate(machine, from, 'from')
  const isTo = createPredicate(machine, to, 'to')
  const { vertices } = exploreMachine(observeMachine(machine), resolveSpace(options))
  const origins = vertices.filter(({ snapshot }) => isFrom(snapshot))
  const targets = vertices.filter(({ snapshot }) => isTo(snapshot))
  const reaching = findReaching(vertices, targets)
  const stuck = origins.filter((vertex) => !reaching.has(vertex))
  const [first] = stuck
  const counts = { from: origins.length, to: targets.length, stuck: stuck.length }
  if (origins.length === 0)
    return { ...counts, holds: false, message: `No reachable state is ${formatWhere(from)}.` }
  if (first === undefined) {
    const message = `From each of ${origins.length} states there is a way to ${formatWhere(to)}.`
    return { ...counts, holds: true, message }
  }
  const example = createPathTo(first)
  const none = to === isFinal && !hasFinal(machine) ? ': the machine declares no final state' : ''
  const what =
    targets.length === 0
      ? `No reachable state is ${formatWhere(to)}${none}.`
      : `${stuck.length} of ${origins.length} states have no way to ${formatWhere(to)}; the nearest is ${describeState(first.snapshot)}:`
  const message = targets.length === 0 ? what : `${what}\n${formatPath(example)}`
  return { ...counts, holds: false, example, message }
}

function createPredicate(
  machine: AnyStateMachine,
  where: StateCondition,
  option: string,
): (snapshot: AnyMachineSnapshot) => boolean {
  if (typeof where === 'function') return (snapshot) => where(snapshot)
  if (typeof where !== 'string') {
    const text = `'${option}' must be the dotted path of a state, or a function of the snapshot.`
    throw new PathError('bad_option', text, option)
  }
  return createStateTest(machine, where)
}

function findReaching(vertices: readonly Vertex[], targets: readonly Vertex[]): Set<Vertex> {
  const into = new Map<Vertex, Vertex[]>()
  for (const edge of vertices.flatMap(({ out }) => out)) {
    const sources = into.get(edge.to)
    if (sources) sources.push(edge.from)
    else into.set(edge.to, [edge.from])
  }
  const reaching = new Set(targets)
  for (const vertex of reaching) for (const source of into.get(vertex) ?? []) reaching.add(source)
  return reaching
}

function hasFinal(machine: AnyStateMachine): boolean {
  return Object.values(machine.root.states).some((node) => node.type === 'final')
}

function formatWhere(where: unknown): string {
  if (typeof where === 'string') return where
  if (where === isFinal) return 'final'
  if (where === anyState) return 'a state'
  return typeof where === 'function' && where.name !== '' ? `a '${where.name}' state` : 'a matching state'
}
