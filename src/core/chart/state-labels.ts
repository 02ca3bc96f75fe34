import type { AnyMachineSnapshot, StateValue } from 'xstate'
import { serializeEvent } from './xstate-graph.js'

/** `RUNNING.asking.requesting`, or `(a.b, c)` where parallel regions are active. */
export function describeValue(value: StateValue): string {
  if (typeof value === 'string') return value
  const parts = Object.entries(value).map(([key, child]) => {
    const inner = child === undefined ? '' : describeValue(child)
    return inner === '' ? key : `${key}.${inner}`
  })
  return parts.length === 1 ? (parts[0] ?? '') : parts.length === 0 ? '' : `(${parts.join(', ')})`
}

/** The state value, and the status where it says more: `COMPLETED (done)`. */
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

/** What people call an event type: `xstate.done.actor.model` is `model done`, no event is `always`. */
export function describeEventType(type: string): string {
  for (const [pattern, name] of patterns) {
    const match = pattern.exec(type)
    if (match) return name(match[1] ?? '')
  }
  return type
}

/** The event type in words, and its payload as JSON where it has one. */
export function describeEvent(event: { type: string }): string {
  const { type, ...payload } = event as { type: string } & Record<string, unknown>
  delete payload.actorId
  const text = Object.keys(payload).length === 0 ? '' : formatPayload(payload)
  return text === '' || text === '{}' ? describeEventType(type) : `${describeEventType(type)} ${text}`
}

function formatPayload(payload: Record<string, unknown>): string {
  try {
    return serializeEvent(payload as unknown as { type: string })
  } catch {
    return '(not JSON)'
  }
}
