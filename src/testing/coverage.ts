import type { Exploration } from './explore.js'
import type { ObservedMachine } from '../core/chart/observe-machine.js'
import type { MachinePath } from './machine-path.js'
import {
  listStateNodes,
  getStateName,
  type DeclaredTransition,
  type DefinedTransition,
  describeEventType,
} from '../core/chart/state-labels.js'
import type { AnyStateNode } from 'xstate'
import { expectArgument, objectRule } from '../core/base/values.js'

/** The coverage of a set of paths. Plain JSON. */
export interface Coverage {
  /** Id of the machine. */
  machine: string
  /** Number of paths. */
  paths: number
  /** Number of events in all paths. */
  events: number
  explored: { inputs: string[]; states: number; events: number }
  /** Every state except history states. */
  states: { id: string; reached: boolean }[]
  transitions: (DeclaredTransition & {
    /** Number of times the paths take it. */
    taken: number
    /** Set if it cannot be taken with these inputs and this alphabet. */
    uncovered?: UncoveredTransition
  })[]
  /** Every reachable pair of consecutive transitions; only with `transition-pairs`. */
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
    // A history state is never active.
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

/** Explains why a transition is never taken. */
export interface UncoveredTransition {
  /**
   * - `source_unreached`: The declaring state is never active
   * - `guard_false`: Its guard never passed
   * - `event_absent`: Its event never happens while its source is active
   * - `shadowed`: Another branch or a nested state always handles the event
   */
  reason: 'source_unreached' | 'guard_false' | 'event_absent' | 'shadowed'
  /** With `guard_false`: the guard that blocked it. */
  guard?: string
  /** With `guard_false`: how often the guard was false. */
  timesFalse?: number
  /** With `shadowed`: the transitions taken instead. */
  instead?: string[]
  message: string
}

function explainUncovered(
  transition: DefinedTransition,
  observed: ObservedMachine,
  exploration: Exploration,
  isTaken: (transition: DefinedTransition) => boolean,
): UncoveredTransition {
  const { declared, node } = transition
  if (!observed.reached.has(node)) {
    return { reason: 'source_unreached', message: `its source ${declared.source} is never active` }
  }
  const { passed, failed } = observed.evidence(transition)
  if (failed > 0 && passed === 0 && declared.guard !== null) {
    const times = failed === 1 ? 'the one time' : `all ${failed} times`
    const message = `its guard '${declared.guard}' was false ${times} it was evaluated`
    return { reason: 'guard_false', guard: declared.guard, timesFalse: failed, message }
  }
  const instead = observed.transitions
    .filter((other) => other !== transition && isTaken(other) && isWithin(other.node, node))
    .filter((other) => isOverlapping(declared.event, other.declared.event))
    .map((other) => other.declared.id)
  if (isOffered(declared, exploration) || instead.length > 0) {
    const others = instead.length > 0 ? `: ${instead.join('; ')}` : ''
    return { reason: 'shadowed', instead, message: `another transition always takes precedence${others}` }
  }
  const event = describeEventType(declared.event)
  const message = `the event '${event}' never happens while ${declared.source} is active. Check that the alphabet contains it`
  return { reason: 'event_absent', message }
}

function isOffered({ event, source }: DefinedTransition['declared'], { offered }: Exploration): boolean {
  if (event === '') return true
  return [...(offered.get(source) ?? [])].some((type) => isOverlapping(event, type))
}

/** Whether one event type can match both descriptors, such as `tool.*` and `tool.done`. */
function isOverlapping(one: string, other: string): boolean {
  if (one === other) return true
  if (one === '' || other === '') return false
  const [a, b] = [one, other].map((descriptor) => descriptor.replace(/\.?\*$/, ''))
  if (a === undefined || b === undefined) return false
  return (
    (one.endsWith('*') && `${b}.`.startsWith(a === '' ? '' : `${a}.`)) ||
    (other.endsWith('*') && `${a}.`.startsWith(b === '' ? '' : `${b}.`))
  )
}

function isWithin(node: AnyStateNode, ancestor: AnyStateNode): boolean {
  const [inner, outer] = [getStateName(node), getStateName(ancestor)]
  return outer === '(root)' || inner === outer || inner.startsWith(`${outer}.`)
}

/**
 * Formats coverage: totals, one row per transition, then what is not covered and why.
 *
 * ```text
 * agent: 82 of 82 transitions, 40 of 40 states, by 34 paths with 148 events
 * ```
 *
 * @example
 * const { coverage } = generatePaths(machine, { alphabet })
 * console.log(formatCoverage(coverage)) // what was never taken, and why
 */
export function formatCoverage(coverage: Coverage): string {
  expectArgument(
    'formatCoverage(coverage)',
    coverage,
    objectRule(['transitions', 'states'], 'the coverage that generatePaths(…) returned'),
  )
  const { transitions, states, pairs } = coverage
  const missed = transitions.filter(({ taken }) => taken === 0)
  const unreachable = states.filter(({ reached }) => !reached)
  const totals = [
    `${transitions.length - missed.length} of ${transitions.length} transitions`,
    `${states.length - unreachable.length} of ${states.length} states`,
    ...(pairs ? [`${pairs.filter(({ taken }) => taken > 0).length} of ${pairs.length} reachable pairs`] : []),
  ].join(', ')
  return [
    `${coverage.machine}: ${totals}, by ${coverage.paths} paths with ${coverage.events} events`,
    `explored ${coverage.explored.states} states and ${coverage.explored.events} events from ${coverage.explored.inputs.join(', ')}`,
    '',
    ...formatRows([
      ['taken', 'transition'],
      ...transitions.map(({ taken, id }) => [taken === 0 ? '-' : String(taken), id]),
    ]),
    ...formatSection(
      'Not covered',
      missed.map(({ id, uncovered }) => `${id}\n    ${uncovered?.message ?? ''}`),
    ),
    ...formatSection(
      'Unreachable states',
      unreachable.map(({ id }) => id),
    ),
    ...formatSection(
      'Pairs',
      (pairs ?? []).map(({ first, second, taken }) => `${taken} × ${first}\n    then ${second}`),
    ),
    '',
  ].join('\n')
}

function formatSection(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', `${title} (${lines.length}):`, ...lines.map((line) => `  ${line}`)]
}

function formatRows(table: readonly string[][]): string[] {
  const width = Math.max(...table.map(([first = '']) => first.length))
  return table.map(([first = '', second = '']) => `${first.padStart(width)}  ${second}`)
}
