/** Validates state from a store, which may be damaged. */
export type Check<Value> = (value: unknown) => value is Value

type Shape = Readonly<Record<string, Check<unknown>>>

/** The state that a shape describes. */
export type Stored<Of extends Shape> = {
  -readonly [Key in keyof Of]: Of[Key] extends Check<infer Value> ? Value : never
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a value is a plain object. Class instances would lose their class. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  if (!isRecord(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

export const count = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

export const amount = (value: unknown): value is number => Number.isFinite(value) && Number(value) >= 0

export const text = (value: unknown): value is string => typeof value === 'string'

export const flag = (value: unknown): value is boolean => typeof value === 'boolean'

export function oneOf<const Value extends string>(...known: readonly Value[]): Check<Value> {
  return (value): value is Value => (known as readonly unknown[]).includes(value)
}

export function nullOr<Value>(isValid: Check<Value>): Check<Value | null> {
  return (value): value is Value | null => value === null || isValid(value)
}

export function listOf<Item>(isItem: Check<Item>, most: number): Check<Item[]> {
  return (value): value is Item[] => Array.isArray(value) && value.length <= most && value.every(isItem)
}

export function shape<Of extends Shape>(fields: Of): Check<Stored<Of>> {
  const checks = Object.entries(fields)
  return (value): value is Stored<Of> =>
    isRecord(value) && checks.every(([key, isValid]) => isValid(value[key]))
}

/** The calls in a verdict, as created by `nameCalls`. */
export const namedCalls = shape({ tools: text, calls: text, number: count })

/** Creates the `restore` of a rule, which drops keys without a check. */
export function createRestore<Of extends Shape>(fields: Of): (stored: unknown) => Stored<Of> | null {
  const isState = shape(fields)
  return (stored) =>
    isState(stored)
      ? (Object.fromEntries(Object.keys(fields).map((key) => [key, stored[key]])) as Stored<Of>)
      : null
}
