import { optionError } from '../base/errors.js'
import { readProperty } from '../base/json.js'
import { describeFound } from '../base/text.js'
import { type ArgumentRule, expectArgument, functionRule, optionsRule } from '../base/values.js'
import { hintFor } from './other-names.js'

/** With `isRequired`, the rule also tests a missing option. */
interface OptionRule extends ArgumentRule {
  isRequired?: true
}

/** A rule for each option of a function. Null for an option that is checked where it is used. */
export type OptionRules<Options> = { readonly [Key in keyof Options]-?: OptionRule | null }

/**
 * Checks the options of a function. `call` names the options as the caller wrote them, such as `runAll(agent, items,
 * options)`.
 * @throws {UsageError} `invalid_argument` for a value that is not an object; `invalid_option`, or the error that `fail`
 * creates, for an unknown key or a wrong value
 */
export function checkOptions<Options extends object>(
  call: string,
  options: unknown,
  rules: OptionRules<Options>,
  fail: (message: string, key: string) => Error = optionError,
): Options {
  expectArgument(call, options, optionsRule)
  const [name = call] = call.split('(')
  const values = (options ?? {}) as Record<string, unknown>
  const entries = Object.entries<OptionRule | null>(rules)
  const known = entries.map(([key]) => key)
  const unknown = Object.keys(values).find((key) => !known.includes(key))
  if (unknown !== undefined)
    throw fail(`${name} has no option '${unknown}'. ${hintFor(unknown, known)}`, unknown)
  for (const [key, rule] of entries) {
    const value = values[key]
    if (!rule || (value === undefined && !rule.isRequired) || rule.is(value)) continue
    throw fail(`${name}: ${key} must be ${rule.phrase} (got ${describeFound(value)}).`, key)
  }
  return values as Options
}

export const countRule: ArgumentRule = {
  is: (value) => Number.isSafeInteger(value) && Number(value) >= 1,
  phrase: 'a positive integer',
}

/** An idempotency key. */
export const keyRule: ArgumentRule = {
  is: (value) => typeof value === 'string' && value.length > 0 && value.length <= 200,
  phrase: 'a string of 1 to 200 characters',
}

export const textRule: ArgumentRule = {
  is: (value) => typeof value === 'string' && value !== '',
  phrase: 'a non-empty string',
}

export const integerRule: ArgumentRule = { is: Number.isSafeInteger, phrase: 'a whole number' }

export const durationRule: ArgumentRule = {
  is: (value) => typeof value === 'number' && value >= 0,
  phrase: 'a non-negative number of milliseconds',
}

export const flagRule: ArgumentRule = { is: (value) => typeof value === 'boolean', phrase: 'true or false' }

export const callbackRule: ArgumentRule = /* @__PURE__ */ functionRule('a function')

export const methodRule = (names: readonly string[], phrase: string): ArgumentRule => ({
  is: (value) => names.every((name) => typeof readProperty(value, name) === 'function'),
  phrase,
})

export const signalRule: ArgumentRule = /* @__PURE__ */ methodRule(['addEventListener'], 'an AbortSignal')

export const choiceRule = (...values: string[]): ArgumentRule => ({
  is: (value) => values.includes(value as string),
  phrase: values.map((value) => `'${value}'`).join(' or '),
})
