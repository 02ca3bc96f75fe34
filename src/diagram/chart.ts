import { expectArgument, objectRule } from '../core/base/values.js'
import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate'
import { listTransitions, getStateName, type DeclaredTransition } from '../core/chart/transitions.js'
import { StatewrightError } from '../core/base/errors.js'
import { z } from 'zod'

/** What a diagram shows of a machine. Plain JSON, in document order. */
export interface Chart {
  /** The machine's. */
  id: string
  /** The machine as the outermost state. */
  root: ChartState
}

/** A state, with those that are nested in it. */
export interface ChartState {
  /** The dotted path; `(root)` for the machine itself. */
  id: string
  /** Its own name, the last part of its path. */
  key: string
  /** What kind of state it is. */
  type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history'
  /** Empty without one. */
  description: string
  /** Names of the actions on entry. */
  entry: string[]
  /** Names of the actions on exit. */
  exit: string[]
  /** The actors that it invokes. */
  invokes: { id: string; src: string }[]
  /**
   * The dotted paths of the states that are entered with this one; one, or all of a parallel state. Of a history state:
   * where it leads before there is a history.
   */
  initial: string[]
  /** Of a history state. */
  history?: 'shallow' | 'deep'
  /** In document order. */
  states: ChartState[]
  /** What the state itself declares, in the order in which guards are asked. */
  transitions: ChartTransition[]
}

/** A transition, as a state declares it. */
export interface ChartTransition extends DeclaredTransition {
  /** The event as the config writes it: `CANCEL`, `onDone`, `onError`, `after 1000`; empty for `always`. */
  on: string
  /** The guard with the values of its parameters (`isHalted cycle`); `else` after guarded branches; or null. */
  when: string | null
  /** Their names, in order. */
  actions: string[]
  /** Whether the source is left and entered anew even when it contains the target. */
  reenter: boolean
}

/**
 * Reads a machine for drawing. Its transitions carry the ids that a `Coverage` uses.
 *
 * @example await writeFile('machine.svg', await toSvg(toChart(machine)))
 */
export function toChart(machine: AnyStateMachine): Chart {
  expectArgument(
    'toChart(machine)',
    machine,
    objectRule(['root', 'config'], 'an XState machine, such as agent.machine'),
  )
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

/** The state and all that are nested in it, in document order. */
export function flattenStates(state: ChartState): ChartState[] {
  return [state, ...state.states.flatMap(flattenStates)]
}

/** A name of its own for each state, made of what `word` leaves of its path. */
export function createUniqueNames(
  states: readonly ChartState[],
  word: (id: string) => string,
): (id: string) => string {
  const names = new Map<string, string>()
  const taken = new Set<string>()
  for (const { id } of states) {
    let name = word(id)
    for (let n = 2; taken.has(name); n++) name = `${word(id)}_${n}`
    taken.add(name)
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

/** What XState calls an actor that is given inline: the path of the state that invokes it. */
const inlineActorPattern = /^xstate\.invoke\./

/** The name of an action or actor; `inline` for one that has none. */
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
 * - `unknown_state`: `subject` is no state of the machine, or one that nothing is nested in
 * - `layout_failed`: Graphviz refused; the message is its own
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
    `'${state}' is no state with nested states. ${names.length === 0 ? 'This machine has none.' : `There are: ${names.map(({ id }) => id).join(', ')}.`}`,
    state,
  )
}

/** How often each transition was taken, by its id. */
export type TransitionCounts = ReadonlyMap<string, number>

/** The part of a `Coverage` that a diagram shows. */
const coverageSchema = z.object({
  machine: z.string(),
  transitions: z.array(z.object({ id: z.string(), taken: z.int().nonnegative() })),
})

/**
 * Reads the `coverage` of `generatePaths`, as JSON gave it.
 *
 * @example const svg = await toSvg(chart, { counts: readTransitionCounts(generatePaths(machine, { alphabet }).coverage, chart) })
 * @throws {DiagramError} `bad_coverage`: another shape, another machine, or transitions that the machine has not
 */
export function readTransitionCounts(value: unknown, chart: Chart): TransitionCounts {
  const parsed = coverageSchema.safeParse(value)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw badCoverageError(`at '${issue?.path.join('.') ?? ''}': ${issue?.message ?? 'another shape'}`)
  }
  const { machine, transitions } = parsed.data
  if (machine !== chart.id) throw badCoverageError(`it is of the machine '${machine}', not of '${chart.id}'`)
  const ids = new Set(flattenStates(chart.root).flatMap((state) => state.transitions.map(({ id }) => id)))
  const stale = transitions.find(({ id }) => !ids.has(id))
  if (stale) throw badCoverageError(`the machine has no transition '${stale.id}'`)
  return new Map(transitions.map(({ id, taken }) => [id, taken]))
}

function badCoverageError(why: string): DiagramError {
  return new DiagramError(
    'bad_coverage',
    `This is no coverage of the machine: ${why}. Write it anew with 'statewright paths', or with generatePaths().`,
    'coverage',
  )
}
