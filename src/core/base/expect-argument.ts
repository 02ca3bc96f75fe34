import { UsageError } from './errors.js'

/** What an argument has to be: a test, and the phrase that the refusal gives for it. */
export interface ArgumentRule {
  is: (value: unknown) => boolean
  phrase: string
}

const isObject = (value: unknown): value is Record<PropertyKey, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** An object, or a class, with these keys; what they hold is looked at where it is used. */
export function objectRule(keys: readonly PropertyKey[], phrase: string): ArgumentRule {
  return {
    is: (value) =>
      (isObject(value) || (typeof value === 'function' && keys.length > 0)) &&
      keys.every((key) => key in value),
    phrase,
  }
}

/** Options that may be left out. */
export const optionsRule: ArgumentRule = {
  is: (value) => value === undefined || (isObject(value) && !isPromise(value)),
  phrase: 'an object of options, or left out',
}

/** A list of objects, the empty one too. */
export function listRule(phrase: string): ArgumentRule {
  return {
    is: (value) => Array.isArray(value) && value.every((item) => typeof item === 'object' && item !== null),
    phrase,
  }
}

export function functionRule(phrase: string): ArgumentRule {
  return { is: (value) => typeof value === 'function', phrase }
}

/**
 * Refuses an argument that a function cannot take. `argument` names it as the caller wrote it: `orThrow(result)`.
 *
 * @throws {UsageError} `invalid_argument`
 */
export function expectArgument(argument: string, value: unknown, { is, phrase }: ArgumentRule): void {
  if (!isPromise(value) && is(value)) return
  const found = isPromise(value) ? 'a promise: await it first' : describeArgument(value)
  throw new UsageError('invalid_argument', `${argument} must be ${phrase} (is ${found}).`, argument)
}

function isPromise(value: unknown): boolean {
  return isObject(value) && typeof value['then'] === 'function'
}

function describeArgument(value: unknown): string {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'another object' : `a ${typeof value}`
}
