import { warnProcess } from '../base/platform.js'
import type { AnyEventObject, AnyMachineSnapshot, AnyStateMachine } from 'xstate'
import { ChartTables, findUnknownPart } from './chart-tables.js'
import { Macrostep } from './macrostep.js'
import { findChangedInternal, type TransitionScope } from './xstate-internals.js'

type Transition = (
  snapshot: AnyMachineSnapshot,
  event: AnyEventObject,
  scope: TransitionScope,
) => AnyMachineSnapshot

/**
 * The machine's `transition`, walked from tables: the same snapshots, actions and inspection events as XState's own, at
 * less than half of its garbage. XState takes what the tables leave to it: the end of an actor (`xstate.stop`), a failed
 * actor that no transition handles, snapshots of other machines, and charts with parts that the tables do not know.
 *
 * @param tables for tests: the tables of the machine, or spoilt ones
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
    if (snapshot.machine !== machine || snapshot.status !== 'active' || !isTaken(type))
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

function isTaken(type: string): boolean {
  return type !== 'xstate.stop' && type !== 'xstate.init'
}

/** What is wrong with a chart, by its config: `provide()` makes machines of the same one. */
const problems = new WeakMap<object, string | null>()
const reported = new Set<string>()

function canUseTables(
  machine: AnyStateMachine,
  snapshot: AnyMachineSnapshot,
  scope: TransitionScope,
): boolean {
  const { config } = machine
  const problem =
    problems.get(config) ?? findUnknownPart(machine) ?? findChangedInternal(machine, snapshot, scope)
  problems.set(config, problem)
  if (problem === null) return true
  const sentence = `XState's own interpreter runs the machine '${machine.id}': ${problem}.`
  if (!reported.has(sentence)) warnInDevelopment(sentence)
  reported.add(sentence)
  return false
}

/** Not in production: the machine does the same either way, and only its cost is another. */
function warnInDevelopment(sentence: string): void {
  const { process } = globalThis as { process?: Partial<NodeJS.Process> }
  if (process?.env?.NODE_ENV !== 'production') warnProcess(sentence, 'interpreter')
}
