import { expectArgument, objectRule, optionsRule } from '../core/base/values.js'
import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate'
import { listTransitions, getStateName, type DeclaredTransition } from '../core/chart/state-labels.js'
import { StatewrightError } from '../core/base/errors.js'
import { z } from 'zod'

/** A machine as plain JSON for drawing, in document order. */
export interface Chart {
  id: string
  /** The machine itself as the outermost state. */
  root: ChartState
}

/** A state and its nested states. */
export interface ChartState {
  /** Dotted path; `(root)` for the machine itself. */
  id: string
  /** The last segment of the path. */
  key: string
  type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history'
  description: string
  entry: string[]
  exit: string[]
  invokes: { id: string; src: string }[]
  /** Paths of the states entered with this one: initial child, all regions, or a history state's default. */
  initial: string[]
  history?: 'shallow' | 'deep'
  states: ChartState[]
  /** The transitions the state declares, in guard-evaluation order. */
  transitions: ChartTransition[]
}

/** A transition as declared by its state. */
export interface ChartTransition extends DeclaredTransition {
  /** The event key from the config, such as `CANCEL`, `onDone`, `onError` or `after 1000`. Empty for `always`. */
  on: string
  /** The guard and its parameter values (`isHalted cycle`), `else` after guarded branches, or null. */
  when: string | null
  actions: string[]
  /** Whether the source is exited and re-entered even if it contains the target. */
  reenter: boolean
}

export const machineRule = objectRule(['root', 'config'], 'an XState machine, such as agent.machine')

const chartRule = objectRule(['root'], 'a chart returned by toChart(machine)')

/** Checks the arguments of a function of a chart. `parameter` is the name of its second argument. */
export function expectChart(name: string, chart: Chart, parameter = 'options', options?: object): void {
  expectArgument(`${name}(chart)`, chart, chartRule)
  expectArgument(`${name}(chart, ${parameter})`, options, optionsRule)
}

/**
 * Converts a machine to a chart. Transition ids match the ids in a `Coverage`.
 *
 * @example await writeFile('machine.svg', await toSvg(toChart(machine)))
 */
export function toChart(machine: AnyStateMachine): Chart {
  expectArgument('toChart(machine)', machine, machineRule)
  const transitions = listTransitions(machine)

  function read(node: AnyStateNode): ChartState {
    return {
      id: getStateName(node),
      key: node.key,
      type: node.type,
      description: node.description ?? '',
      entry: node.entry.map(getImplementationName),
      exit: node.exit.map(getImplementationName),
      invokes: node.invoke.map(({ id, src }) => ({ id, src: getImplementationName(src) })),
      initial: listInitial(node),
      ...(node.type === 'history' && { history: node.history === 'deep' ? 'deep' : 'shallow' }),
      states: Object.values(node.states).map(read),
      transitions: transitions
        .filter((transition) => transition.node === node)
        .map(({ declared, definition }) => ({
          ...declared,
          on: formatEventName(declared.event, node),
          when: formatCondition(declared, definition),
          actions: definition.actions.map(getImplementationName),
          reenter: definition.reenter,
        })),
    }
  }

  return { id: machine.id, root: read(machine.root) }
}

export function flattenStates(state: ChartState): ChartState[] {
  return [state, ...state.states.flatMap(flattenStates)]
}

export function createUniqueNames(
  states: readonly ChartState[],
  word: (id: string) => string,
): (id: string) => string {
  const names = new Map<string, string>()
  const usedNames = new Set<string>()
  for (const { id } of states) {
    let name = word(id)
    for (let n = 2; usedNames.has(name); n++) name = `${word(id)}_${n}`
    usedNames.add(name)
    names.set(id, name)
  }
  return (id) => names.get(id) ?? ''
}

function listInitial(node: AnyStateNode): string[] {
  if (node.type === 'history') {
    const { target } = node.config as { target?: string | string[] }
    if (target === undefined) return node.parent ? listInitial(node.parent) : []
    const parent = node.parent?.path ?? []
    return [target].flat().map((path) => [...parent, ...path.split('.').filter(Boolean)].join('.'))
  }
  if (node.type === 'parallel') {
    const regions = Object.values(node.states).filter(({ type }) => type !== 'history')
    return regions.map(getStateName)
  }
  return node.type === 'compound' ? node.initial.target.map(getStateName) : []
}

/** XState names an inline actor after the path of the invoking state. */
const inlineActorPattern = /^xstate\.invoke\./

/** The name of an action or actor, or `inline` for an anonymous one. */
export function getImplementationName(thing: unknown): string {
  if (typeof thing === 'string') return inlineActorPattern.test(thing) ? 'inline' : thing
  if (typeof thing === 'function') return thing.name === '' ? 'inline' : thing.name
  const { type } = thing as { type?: unknown }
  return typeof type === 'string' ? type : 'inline'
}

function formatEventName(event: string, { invoke }: AnyStateNode): string {
  const [, outcome, id = ''] = /^xstate\.(done|error)\.actor\.(.*)$/.exec(event) ?? []
  if (outcome !== undefined) {
    const key = outcome === 'done' ? 'onDone' : 'onError'
    return invoke.length === 1 && invoke[0]?.id === id ? key : `${key} ${id}`
  }
  if (event.startsWith('xstate.done.state.')) return 'onDone'
  return event.replace(/^xstate\.after\.([^.]+)\..*$/, 'after $1')
}

function formatCondition(
  { guard, branch }: DeclaredTransition,
  definition: AnyTransitionDefinition,
): string | null {
  if (guard === null) return branch > 0 ? 'else' : null
  const { type, params } = definition.guard as { type?: string; params?: unknown }
  if (type === undefined || typeof params !== 'object' || params === null) return guard
  return [type, ...Object.values(params).map(String)].join(' ')
}

/**
 * A diagram that cannot be drawn.
 *
 * - `bad_coverage`: the value is not a `Coverage` of this machine
 * - `unknown_state`: `subject` does not name a state with nested states
 * - `layout_failed`: Graphviz rejected the graph; the message is from Graphviz
 *
 * @example
 * try {
 *   toDot(toChart(agentMachine), { state: 'RUNING' })
 * } catch (error) {
 *   if (error instanceof DiagramError) console.log(error.code, error.message) // → unknown_state …
 * }
 */
export class DiagramError extends StatewrightError {
  override readonly name = 'DiagramError'
}

export function unknownStateError(state: string, chart: Chart): DiagramError {
  const names = flattenStates(chart.root).filter(({ id, states }) => id !== '(root)' && states.length > 0)
  return new DiagramError(
    'unknown_state',
    `'${state}' is not a state with nested states. ${names.length === 0 ? 'This machine has none.' : `States with nested states: ${names.map(({ id }) => id).join(', ')}.`}`,
    state,
  )
}

export type TransitionCounts = ReadonlyMap<string, number>

const coverageSchema = z.object({
  machine: z.string(),
  transitions: z.array(z.object({ id: z.string(), count: z.int().nonnegative() })),
})

/**
 * Reads the `coverage` of `generatePaths` from parsed JSON.
 *
 * @example const svg = await toSvg(chart, { counts: readTransitionCounts(generatePaths(machine, { alphabet }).coverage, chart) })
 * @throws {DiagramError} `bad_coverage`: another shape, another machine, or transitions that the machine does not have
 */
export function readTransitionCounts(value: unknown, chart: Chart): TransitionCounts {
  const parsed = coverageSchema.safeParse(value)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw badCoverageError(`at '${issue?.path.join('.') ?? ''}': ${issue?.message ?? 'another shape'}`)
  }
  const { machine, transitions } = parsed.data
  if (machine !== chart.id)
    throw badCoverageError(`it belongs to the machine '${machine}', not to '${chart.id}'`)
  const ids = new Set(flattenStates(chart.root).flatMap((state) => state.transitions.map(({ id }) => id)))
  const stale = transitions.find(({ id }) => !ids.has(id))
  if (stale) throw badCoverageError(`the machine has no transition '${stale.id}'`)
  return new Map(transitions.map(({ id, count }) => [id, count]))
}

function badCoverageError(why: string): DiagramError {
  return new DiagramError(
    'bad_coverage',
    `The coverage does not match this machine: ${why}. Generate it again with 'statewright paths' or generatePaths().`,
    'coverage',
  )
}
