import { warnProcess } from '../base/platform.js'
import {
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createEmptyActor,
  type EventFromLogic,
  type SnapshotFrom,
  type transition,
} from 'xstate'
import { ChartTables, findUnknownPart } from './chart-tables.js'
import { Macrostep } from './macrostep.js'
import { findChangedInternal, type TransitionScope } from './xstate-internals.js'
import { configError } from '../base/errors.js'

type Transition = (
  snapshot: AnyMachineSnapshot,
  event: AnyEventObject,
  scope: TransitionScope,
) => AnyMachineSnapshot

/**
 * Computes the machine's `transition` from tables, with the same snapshots, actions and inspection events as XState and
 * less than half of its garbage. XState itself handles the end of an actor (`xstate.stop`), unhandled actor errors,
 * snapshots of other machines, and charts with unsupported parts.
 * @param tables the tables of the machine, or broken tables in tests
 */
export function createTableTransition(
  machine: AnyStateMachine,
  tables: ChartTables = new ChartTables(machine),
): Transition {
  // oxlint-disable-next-line unbound-method -- XState binds it
  const byXState = machine.transition as unknown as Transition
  let isUsable: boolean | undefined

  return (snapshot, event, scope) => {
    const { type } = event
    const isTaken = type !== 'xstate.stop' && type !== 'xstate.init'
    if (snapshot.machine !== machine || snapshot.status !== 'active' || !isTaken)
      return byXState(snapshot, event, scope)
    isUsable ??= canUseTables(machine, snapshot, scope)
    const leaf = isUsable ? tables.findLeaf(snapshot) : undefined
    if (leaf === undefined) return byXState(snapshot, event, scope)
    const step = new Macrostep(tables, leaf, snapshot, event, scope)
    const selected = step.select()
    // XState ends the machine with this error.
    if (selected === undefined && type.startsWith('xstate.error.actor'))
      return byXState(snapshot, event, scope)
    return step.run(selected)
  }
}

/** Cached by config, because machines created by `provide()` have the same config. */
const unknownParts = new WeakMap<object, string | null>()
const reported = new Set<string>()

function canUseTables(
  machine: AnyStateMachine,
  snapshot: AnyMachineSnapshot,
  scope: TransitionScope,
): boolean {
  const { config } = machine
  if (!unknownParts.has(config)) unknownParts.set(config, findUnknownPart(machine))
  // The scope may come from another copy of XState, so each machine looks at its own.
  const problem = unknownParts.get(config) ?? findChangedInternal(machine, snapshot, scope)
  if (problem === null) return true
  const sentence = `XState itself runs the machine '${machine.id}': ${problem}.`
  // Warns only in development, because the behavior is the same and only the cost differs.
  const { process } = globalThis as { process?: Partial<NodeJS.Process> }
  if (!reported.has(sentence) && process?.env?.NODE_ENV !== 'production') warnProcess(sentence, 'interpreter')
  reported.add(sentence)
  return false
}

/**
 * XState's pure `transition` for one machine, computed from tables. Returns the next snapshot and the actions that a
 * running actor would execute, without starting anything. XState creates an actor per event; this function creates
 * only one.
 */
export function createPureTransition<Machine extends AnyStateMachine>(
  machine: Machine,
  tables?: ChartTables,
): (
  snapshot: SnapshotFrom<Machine>,
  event: EventFromLogic<Machine>,
) => ReturnType<typeof transition<Machine>> {
  const takeEvent = createTableTransition(machine, tables)
  let scope: TransitionScope | undefined
  return (snapshot, event) => {
    scope ??= createInertScope()
    const actions: unknown[] = []
    scope.actionExecutor = (action) => void actions.push(action)
    return [takeEvent(snapshot as never, event, scope), actions] as never
  }
}

/** The scope of an actor that never starts, so its effects are ignored. */
function createInertScope(): TransitionScope {
  const self = createEmptyActor()
  const ignore = (): void => undefined
  const scope = {
    self,
    system: self.system,
    id: '',
    sessionId: '',
    logger: ignore,
    defer: ignore,
    emit: ignore,
    stopChild: ignore,
    actionExecutor: ignore,
  }
  return scope as unknown as TransitionScope
}

/** The implementation of transitions: tables that are derived from the chart, or XState's own interpreter. */
export type Interpreter = 'tables' | 'xstate'

/** @throws {ConfigError} `invalid_config` */
export function checkInterpreter(option: unknown): Interpreter {
  if (option === undefined) return 'tables'
  if (option === 'tables' || option === 'xstate') return option
  throw configError("interpreter must be 'tables' or 'xstate'.", 'interpreter')
}
