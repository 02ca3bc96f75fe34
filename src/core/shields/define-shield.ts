import { ConfigError } from '../base/errors.js'
import type { Shield } from './shield.js'

/**
 * Defines a shield: it looks at what goes into a run, into a tool, out of a tool or out of the run, and lets it pass,
 * warns of it, redacts it or blocks it.
 *
 * ```ts
 * const noPrices = defineShield({
 *   name: 'no-prices',
 *   check: (content) =>
 *     content.includes('€') ? { action: 'block', message: 'Prices are quoted by people only.' } : { action: 'allow' },
 * })
 * ```
 *
 * Throws a ConfigError `invalid_shield` for a definition that cannot be used; it names the shield and what to change.
 */
export function defineShield(definition: Shield): Shield {
  const { name, check, timeoutMs } = checkDefinition(definition)
  return Object.freeze({
    name,
    check,
    ...(timeoutMs !== undefined && { timeoutMs }),
  })
}

const keys = ['name', 'check', 'timeoutMs']
const longest = 2_147_483_647

/** Types rule most of this out; JavaScript and casts do not. */
function checkDefinition(definition: unknown): Shield {
  if (typeof definition !== 'object' || definition === null) {
    throw new ConfigError('invalid_shield', 'defineShield takes an object: { name, check, timeoutMs? }.')
  }
  const { name, check, timeoutMs } = definition as Record<string, unknown>
  if (typeof name !== 'string' || !/^[a-zA-Z0-9_.-]{1,64}$/.test(name)) {
    const shown = typeof name === 'string' ? `'${name.slice(0, 80)}'` : `a value of type ${typeof name}`
    throw new ConfigError(
      'invalid_shield',
      `A shield cannot be named ${shown}: use 1 to 64 letters, digits, '_', '-' and '.'.`,
      'name',
    )
  }
  for (const key of Object.keys(definition)) {
    if (!keys.includes(key)) {
      throw invalidShieldError(name, key, `there is no option '${key}'. The options are ${keys.join(', ')}.`)
    }
  }
  if (typeof check !== 'function') throw invalidShieldError(name, 'check', 'check must be a function.')
  if (timeoutMs !== undefined && !isTimeout(timeoutMs)) {
    throw invalidShieldError(name, 'timeoutMs', `timeoutMs ${timeoutRule}`)
  }
  return definition as Shield
}

export const timeoutRule = `must be a number of milliseconds from 1 to ${longest}.`

export function isTimeout(value: unknown): value is number {
  return typeof value === 'number' && value >= 1 && value <= longest
}

/** The error about an option of a shield. */
export function invalidShieldError(name: string, option: string, problem: string): ConfigError {
  return new ConfigError('invalid_shield', `Shield '${name}': ${problem}`, `${name}.${option}`)
}

/** Refuses what is no options object, and options that there are none of. */
export function checkKeys(name: string, options: unknown, keys: readonly string[]): void {
  if (typeof options !== 'object' || options === null) {
    throw invalidShieldError(name, 'options', `the options must be an object of ${keys.join(', ')}.`)
  }
  for (const key of Object.keys(options)) {
    if (!keys.includes(key)) {
      throw invalidShieldError(name, key, `there is no option '${key}'. The options are ${keys.join(', ')}.`)
    }
  }
}

/** The chosen kinds; all, when none is named. */
export function chooseKinds<Kind extends string>(
  name: string,
  known: readonly Kind[],
  kinds: readonly Kind[] = known,
  option = 'kinds',
): readonly Kind[] {
  const isChoice =
    Array.isArray(kinds) && kinds.length > 0 && kinds.every((kind) => known.includes(kind as Kind))
  if (!isChoice) {
    throw invalidShieldError(
      name,
      option,
      `${option} must be an array of one or more of ${known.join(', ')}.`,
    )
  }
  // In our order: it goes from the specific to the general.
  return known.filter((kind) => kinds.includes(kind))
}
