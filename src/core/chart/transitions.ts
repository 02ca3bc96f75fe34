import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate'
import { getStateNodes } from './xstate-graph.js'
import { describeEventType } from './state-labels.js'

/** One branch of one handler, as the chart declares it. Plain JSON. */
export interface DeclaredTransition {
  /** Unique and stable: `RUNNING.judging.accounting: always [hasCalls] → RUNNING.judging.judgingCalls`. */
  id: string
  /** The dotted path of the state that declares it; `(root)` for the machine itself. */
  source: string
  /** The event descriptor; empty for `always`. */
  event: string
  /** Position among the branches of the same handler, from 0. */
  branch: number
  /** Null when the branch has no guard. */
  guard: string | null
  /** Dotted paths; empty when it stays where it is. */
  targets: string[]
}

export type DefinedTransition = {
  declared: DeclaredTransition
  definition: AnyTransitionDefinition
  node: AnyStateNode
}

/** Every state of the machine, the root first, in document order. */
export function listStateNodes(machine: AnyStateMachine): AnyStateNode[] {
  return [machine.root, ...getStateNodes(machine)]
}

/** Every transition that the machine declares, `always`, `after`, `onDone`, `onError` and the root's included. */
export function listTransitions(machine: AnyStateMachine): DefinedTransition[] {
  const seen = new Map<string, number>()
  return listStateNodes(machine).flatMap((node) =>
    [...node.transitions, ['', node.always ?? []] as const].flatMap(([event, branches]) =>
      branches.map((definition: AnyTransitionDefinition, branch: number) => {
        const declared = describeTransition(node, event, branch, definition)
        const count = (seen.get(declared.id) ?? 0) + 1
        seen.set(declared.id, count)
        if (count > 1) declared.id += ` #${count}`
        return { declared, definition, node }
      }),
    ),
  )
}

/** The dotted path of a state below the machine. */
export function getStateName(node: AnyStateNode): string {
  return node.path.join('.') || '(root)'
}

function describeTransition(
  node: AnyStateNode,
  event: string,
  branch: number,
  definition: AnyTransitionDefinition,
): DeclaredTransition {
  const source = getStateName(node)
  const guard = definition.guard === undefined ? null : getGuardName(definition.guard)
  const targets = (definition.target ?? []).map(getStateName)
  const to = targets.length === 0 ? '(stays)' : targets.join(' + ')
  const when = guard === null ? '' : ` [${guard}]`
  return {
    id: `${source}: ${describeEventType(event)}${when} → ${to}`,
    source,
    event,
    branch,
    guard,
    targets,
  }
}

/** The name of a guard as the chart writes it; combinations are spelled out: `and(isLast, not(isOpen))`. */
export function getGuardName(guard: unknown): string {
  if (typeof guard === 'string') return guard
  if (typeof guard === 'function') {
    const { guards, stateValue } = guard as { guards?: unknown[]; stateValue?: unknown }
    if (guards !== undefined) return `${guard.name}(${guards.map(getGuardName).join(', ')})`
    if (stateValue !== undefined) return `stateIn(${JSON.stringify(stateValue)})`
    return guard.name === '' || guard.name === 'guard' ? 'inline guard' : guard.name
  }
  const { type, params } = guard as { type: string; params?: unknown }
  return params === undefined || typeof params === 'function' ? type : `${type} ${JSON.stringify(params)}`
}
