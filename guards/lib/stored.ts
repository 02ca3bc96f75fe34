/** These checks validate state from a store, which may be damaged. */
export type Check = (value: unknown) => boolean

export type Shape<State> = { readonly [Key in keyof Required<State>]: Check }

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a value is a plain object. Class instances would lose their class. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  if (!isRecord(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

export const isCount: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 0

/** Whether a value is a non-negative number. */
export const isAmount: Check = (value) => Number.isFinite(value) && Number(value) >= 0

export const isText: Check = (value) => typeof value === 'string'

export const isFlag: Check = (value) => typeof value === 'boolean'

export function isOneOf(...known: unknown[]): Check {
  return (value) => known.includes(value)
}

export function isNullOr(isValid: Check): Check {
  return (value) => value === null || isValid(value)
}

export function isListOf(isItem: Check, most: number): Check {
  return (value) => Array.isArray(value) && value.length <= most && value.every((item) => isItem(item))
}

export function hasShape(shape: Readonly<Record<string, Check>>): Check {
  const checks = Object.entries(shape)
  return (value) => isRecord(value) && checks.every(([key, isValid]) => isValid(value[key]))
}

export const isNamedCalls = hasShape({ tools: isText, calls: isText, number: isCount })

/** Creates the `restore` of a rule, which drops keys without a check. */
export function createRestore<State>(shape: Shape<State>): (stored: unknown) => State | null {
  const isState = hasShape(shape)
  return (stored) => {
    if (!isState(stored)) return null
    const state = stored as Record<string, unknown>
    return Object.fromEntries(Object.keys(shape).map((key) => [key, state[key]])) as State
  }
}
