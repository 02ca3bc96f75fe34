import type { AnyStateNode } from 'xstate'
import type { Exploration } from './explore.js'
import { describeEventType } from '../core/chart/state-labels.js'
import type { ObservedMachine } from '../core/chart/observe-machine.js'
import { getStateName, type DefinedTransition } from '../core/chart/transitions.js'

/** Explains why a transition is never taken. */
export interface UncoveredTransition {
  /**
   * - `source_unreached`: the state that declares it is never active
   * - `guard_false`: its guard was evaluated and never let it pass
   * - `event_absent`: its event never happens while its source is active
   * - `shadowed`: another branch, or a state within its source, takes the event each time
   */
  reason: 'source_unreached' | 'guard_false' | 'event_absent' | 'shadowed'
  /** The guard that blocked it, with `guard_false`. */
  guard?: string
  /** How often the guard was false, with `guard_false`. */
  timesFalse?: number
  /** The transitions that are taken instead, with `shadowed`. */
  instead?: string[]
  /** The same as a sentence. */
  message: string
}

export function explainUncovered(
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
  if (canHappen(declared, exploration) || instead.length > 0) {
    const others = instead.length > 0 ? `: ${instead.join('; ')}` : ''
    return { reason: 'shadowed', instead, message: `another transition always comes first${others}` }
  }
  const event = describeEventType(declared.event)
  const message = `the event '${event}' never happens while ${declared.source} is active: is it in the alphabet?`
  return { reason: 'event_absent', message }
}

function canHappen({ event, source }: DefinedTransition['declared'], { offered }: Exploration): boolean {
  if (event === '') return true
  return [...(offered.get(source) ?? [])].some((type) => isOverlapping(event, type))
}

/** Whether one event type can match both descriptors: `tool.*` and `tool.done` do. */
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
