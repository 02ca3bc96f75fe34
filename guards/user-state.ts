import type { Json } from './lib/json.js'
import { isRecord } from './lib/stored.js'

/** What one guard of a user's own may remember: bytes of its JSON. What grows with a run is no state of a guard. */
export const mostUserState = 2048

/** The states of the guards that users define, by the guards' names. */
export type UserStates = Record<string, Json>

/**
 * A value as the state of a user's guard: a copy of it, or what keeps it from being one. Properties that are undefined
 * are left out, as JSON does; everything else that JSON would change is refused. Never throws.
 */
export function toUserState(value: unknown): { state: Json } | { problem: string } {
  try {
    const text = JSON.stringify(value)
    if (text === undefined) return { problem: notJson }
    const bytes = new TextEncoder().encode(text).length
    if (bytes > mostUserState) {
      return {
        problem: `takes ${bytes} bytes as JSON; at most ${mostUserState} are kept, so remember counts and digests`,
      }
    }
    const state = JSON.parse(text) as Json
    return isSame(value, state) ? { state } : { problem: notJson }
  } catch {
    return { problem: notJson }
  }
}

const notJson = 'is not plain JSON (null, booleans, finite numbers, texts, lists and plain objects of these)'

/** States that come back from a store; null when they are none. */
export function restoreUserStates(stored: unknown): UserStates | null {
  if (!isRecord(stored)) return null
  const states: [string, Json][] = []
  for (const [name, value] of Object.entries(stored)) {
    const restored = toUserState(value)
    if ('problem' in restored) return null
    states.push([name, restored.state])
  }
  return Object.fromEntries(states)
}

/** What a guard remembers, or what it begins with. */
export function getUserState(states: UserStates, name: string, initial: Json): Json {
  const state = Object.hasOwn(states, name) ? states[name] : undefined
  return state === undefined ? initial : state
}

/** The copy is finite, so the comparison ends however the value is built. */
function isSame(value: unknown, copy: Json): boolean {
  if (typeof copy !== 'object' || copy === null) return value === copy
  if (Array.isArray(copy)) {
    return (
      Array.isArray(value) &&
      value.length === copy.length &&
      copy.every((item, index) => isSame(value[index], item))
    )
  }
  if (!isPlain(value)) return false
  const names = Object.keys(value).filter((name) => value[name] !== undefined)
  return (
    names.length === Object.keys(copy).length &&
    names.every((name) => Object.hasOwn(copy, name) && isSame(value[name], copy[name] as Json))
  )
}

/** A class's instance would come back without its class. */
function isPlain(value: unknown): value is Record<string, unknown> {
  if (!isRecord(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
