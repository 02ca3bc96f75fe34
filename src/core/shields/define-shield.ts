import type { Message } from '../../../machines/agent/messages.js'
import type { ShieldPoint } from '../../../machines/agent/screening.js'
import { ConfigError } from '../base/errors.js'
import { isTimeout, readDefinition, timeoutRule } from '../config/definition.js'

export type { ShieldAction, ShieldPoint } from '../../../machines/agent/screening.js'

/** The verdict of a shield. `message` is for people and is truncated to 2,000 characters. */
export type ShieldVerdict =
  | { readonly action: 'allow' | 'warn' | 'block'; readonly message?: string }
  /** `content` replaces the checked content. */
  | { readonly action: 'redact'; readonly content: string; readonly message?: string }

/** The context of the checked content. */
export interface ShieldScene {
  readonly point: ShieldPoint
  /** The call and its tool, at `toolInput` and `toolOutput`. */
  readonly callId?: string | undefined
  readonly toolName?: string | undefined
  /** The app's context object for the run. */
  readonly context?: unknown
  /** The transcript before this content. */
  readonly messages?: readonly Message[] | undefined
}

/** The second argument of a shield's `check`. */
export interface ShieldContext extends ShieldScene {
  /** Aborts at the timeout, or if the verdict is no longer needed. */
  readonly signal: AbortSignal
}

/** A shield created by `defineShield`. */
export interface Shield {
  /** The name of the shield, unique per point. 1 to 64 letters, digits, `_`, `-` and `.`. */
  readonly name: string
  /** Checks a text. An exception counts as a failed check. */
  readonly check: (content: string, question: ShieldContext) => ShieldVerdict | Promise<ShieldVerdict>
  /**
   * Timeout for a check in milliseconds, from 1 to 2,147,483,647. Defaults to the shields' common timeout, which
   * defaults to 10,000.
   */
  readonly timeoutMs?: number | undefined
}

/**
 * Defines a shield. The shield checks content at the input of a run, before and after a tool, or at the output of a
 * run. The shield allows, redacts or blocks the content, or emits a warning.
 *
 * ```ts
 * const noPrices = defineShield({
 *   name: 'no-prices',
 *   check: (content) =>
 *     content.includes('€') ? { action: 'block', message: 'Only people may quote prices.' } : { action: 'allow' },
 * })
 * ```
 *
 * Throws a ConfigError `invalid_shield` for an invalid definition. The error names the shield and the remedy.
 */
export function defineShield(definition: Shield): Shield {
  const { fields, refuse } = readDefinition('shield', definition, 'name, check, timeoutMs?')
  const { name, check, timeoutMs } = definition
  checkKeys(name, fields, ['name', 'check', 'timeoutMs'])
  if (typeof check !== 'function') refuse('check', 'check must be a function.')
  if (timeoutMs !== undefined && !isTimeout(timeoutMs)) refuse('timeoutMs', `timeoutMs ${timeoutRule}`)
  return Object.freeze({ name, check, ...(timeoutMs !== undefined && { timeoutMs }) })
}

export function invalidShieldError(name: string, option: string, problem: string): ConfigError {
  return new ConfigError('invalid_shield', `Shield '${name}': ${problem}`, `${name}.${option}`)
}

/** Rejects values that are not an options object, and unknown options. */
export function checkKeys(name: string, options: unknown, keys: readonly string[]): void {
  const known = keys.join(', ')
  if (typeof options !== 'object' || options === null)
    throw invalidShieldError(name, 'options', `the options must be an object with ${known}.`)
  const key = Object.keys(options).find((one) => !keys.includes(one))
  if (key !== undefined)
    throw invalidShieldError(name, key, `there is no option '${key}'. The options are ${known}.`)
}

export function expectOption(name: string, option: string, isValid: boolean, rule: string): void {
  if (!isValid) throw invalidShieldError(name, option, `${option} must be ${rule}.`)
}

export function chooseKinds<Kind extends string>(
  name: string,
  known: readonly Kind[],
  kinds: readonly Kind[] = known,
  option = 'kinds',
): readonly Kind[] {
  const isChoice =
    Array.isArray(kinds) && kinds.length > 0 && kinds.every((kind) => known.includes(kind as Kind))
  expectOption(name, option, isChoice, `an array of one or more of ${known.join(', ')}`)
  // The built-in order is from specific to general.
  return known.filter((kind) => kinds.includes(kind))
}
