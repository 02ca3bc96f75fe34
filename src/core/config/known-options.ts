import { UsageError } from '../base/errors.js'
import { findNearestName } from '../base/text.js'
import { findOtherName } from './other-names.js'

/**
 * Refuses an option that a function does not have. The error says what the option is called here when another library or an
 * earlier version knows it under that name.
 *
 * @throws {UsageError} `invalid_option`, naming the option
 */
export function expectKnownOptions(name: string, options: object, known: readonly string[]): void {
  const key = Object.keys(options).find((given) => !known.includes(given))
  if (key === undefined) return
  throw new UsageError('invalid_option', `${name} has no option '${key}'. ${hintFor(key, known)}`, key)
}

/** What to use in place of an unknown option. */
export function hintFor(key: string, known: readonly string[]): string {
  const other = findOtherName(key)
  if (other !== undefined) return `Here it is ${other}.`
  const meant = findNearestName(key, known)
  return meant === undefined ? `It takes ${known.join(', ')}.` : `Did you mean ${meant}?`
}
