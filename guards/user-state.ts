import type { Json } from './lib/json.js'
import { isRecord } from './lib/stored.js'
import type { OnHalt } from './lib/settings.js'

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

/** What one of the user's own guards says about a batch. */
export interface UserFinding {
  action: 'nudge' | 'block' | 'halt'
  /** The guard's name. */
  guard: string
  /** What was seen, at most 600 characters; it names the guard. */
  evidence: string
  /** For the model (nudge, block) or for people (halt). */
  message: string
  onHalt: OnHalt
  /** The calls that a block refuses; null: every open call of the batch. */
  callIds: string[] | null
}

/** The answer of all the user's guards: what `consultGuards` resolves with. Plain JSON. */
export interface UserGuardsOutput {
  /** What the guards remember from now on; those that remember nothing are left out. */
  states: UserStates
  /** The weightiest first. */
  findings: UserFinding[]
  /** Guards that failed, where that is to be ignored: a sentence each. */
  warnings: string[]
  /** `stopWhen` ends the run with these results. Absent: it does not. */
  stops?: true
  /** Why the result that is the answer does not fit the output schema. Absent: it does, or nothing has to. */
  outputProblem?: string
}
