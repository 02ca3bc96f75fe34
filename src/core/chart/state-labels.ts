import type {
  AnyMachineSnapshot,
  StateValue,
  AnyStateMachine,
  AnyStateNode,
  AnyTransitionDefinition,
} from 'xstate'
import { valueOr } from '../base/maybe-promise.js'
import { serializeEvent, getStateNodes } from './xstate-graph.js'

/** Formats `RUNNING.asking.requesting`, or `(a.b, c)` for parallel regions. */
export function describeValue(value: StateValue): string {
  if (typeof value === 'string') return value
  const parts = Object.entries(value).map(([key, child]) => {
    const inner = child === undefined ? '' : describeValue(child)
    return inner === '' ? key : `${key}.${inner}`
  })
  return parts.length === 1 ? (parts[0] ?? '') : parts.length === 0 ? '' : `(${parts.join(', ')})`
}

/** Formats the state value, with the status if the status adds information: `COMPLETED (done)`. */
export function describeState({ value, status }: Pick<AnyMachineSnapshot, 'value' | 'status'>): string {
  const name = describeValue(value) || '(root)'
  return status === 'active' ? name : `${name} (${status})`
}

const patterns: [RegExp, (name: string) => string][] = [
  [/^xstate\.done\.actor\.(.+)$/, (id) => `${describeActor(id)} done`],
  [/^xstate\.error\.actor\.(.+)$/, (id) => `${describeActor(id)} failed`],
  [/^xstate\.snapshot\.(.+)$/, (id) => `${id} snapshot`],
  [/^xstate\.done\.state\.(.+)$/, (id) => `${id} finished`],
  [/^xstate\.after\.([^.]+)\..+$/, (delay) => `after ${delay}`],
  [/^xstate\.init$/, () => 'start'],
  [/^$/, () => 'always'],
]

function describeActor(id: string): string {
  return id === '*' ? 'any actor' : id
}

/** `xstate.done.actor.model` becomes `model done`, and a transition without an event becomes `always`. */
export function describeEventType(type: string): string {
  for (const [pattern, name] of patterns) {
    const match = pattern.exec(type)
    if (match) return name(match[1] ?? '')
  }
  return type
}

/** The readable event type, followed by the payload as JSON if there is one. */
export function describeEvent(event: { type: string }): string {
  const { type, ...payload } = event as { type: string } & Record<string, unknown>
  delete payload.actorId
  const text = Object.keys(payload).length === 0 ? '' : formatPayload(payload)
  return text === '' || text === '{}' ? describeEventType(type) : `${describeEventType(type)} ${text}`
}

function formatPayload(payload: Record<string, unknown>): string {
  return valueOr(() => serializeEvent(payload as unknown as { type: string }), '(not JSON)')
}

/** One branch of one handler, as declared in the chart. Plain JSON. */
export interface DeclaredTransition {
  /** Unique and stable: `RUNNING.judging.accounting: always [hasCalls] → RUNNING.judging.judgingCalls`. */
  id: string
  /** Dotted path of the state that declares the transition, or `(root)` for the machine itself. */
  source: string
  /** The event descriptor, or an empty string for `always`. */
  event: string
  /** Position among the branches of the same handler, from 0. */
  branch: number
  /** The name of the guard. Null if the branch has no guard. */
  guard: string | null
  /** Dotted paths of the target states. Empty if the transition has no target. */
  targets: string[]
}

export type DefinedTransition = {
  declared: DeclaredTransition
  definition: AnyTransitionDefinition
  node: AnyStateNode
}

/** All states of the machine in document order, starting with the root. */
export function listStateNodes(machine: AnyStateMachine): AnyStateNode[] {
  return [machine.root, ...getStateNodes(machine)]
}

/** Includes `always`, `after`, `onDone`, `onError` and the transitions of the root. */
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
