import type { Json } from './lib/json.js'
import { isPlain, isRecord } from './lib/stored.js'
import type { OnHalt } from './lib/settings.js'

/** In bytes of JSON. */
export const mostUserState = 2048

export type UserStates = Record<string, Json>

/** Omits undefined properties, as JSON does. Reports other values that JSON would change. Never throws. */
export function toUserState(value: unknown): { state: Json } | { problem: string } {
  try {
    const text = JSON.stringify(value)
    if (text === undefined) return { problem: notJson }
    const bytes = new TextEncoder().encode(text).length
    if (bytes > mostUserState) {
      return {
        problem: `has ${bytes} bytes as JSON, but at most ${mostUserState} are allowed. Store counts and digests instead`,
      }
    }
    const state = JSON.parse(text) as Json
    return isSame(value, state) ? { state } : { problem: notJson }
  } catch {
    return { problem: notJson }
  }
}

const notJson =
  'is not plain JSON (null, booleans, finite numbers, strings, arrays and plain objects of these)'

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

export function getUserState(states: UserStates, name: string, initial: Json): Json {
  const state = Object.hasOwn(states, name) ? states[name] : undefined
  return state === undefined ? initial : state
}

/** Whether a value equals its copy. Terminates because the copy is finite. */
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

/** A finding from a user guard. */
export interface UserFinding {
  action: 'nudge' | 'block' | 'halt'
  guard: string
  /** Evidence of at most 600 characters that includes the guard's name. */
  evidence: string
  /** Text for the model (nudge, block) or for people (halt). */
  message: string
  onHalt: OnHalt
  /** The calls to block, or null for all open calls in the batch. */
  callIds: string[] | null
}

/** The combined result of all user guards, returned by `consultGuards`. Plain JSON. */
export interface UserGuardsOutput {
  /** New states of the guards. Guards without state are omitted. */
  states: UserStates
  /** The findings, most severe first. */
  findings: UserFinding[]
  /** One sentence for each failed guard whose failures are ignored. */
  warnings: string[]
  /** Whether `stopWhen` ends the run after these results. */
  stops?: true
  /** Why the run's answer, a result, does not match the output schema. Absent if it matches or there is none. */
  outputProblem?: string
}
