import type { Message } from '../../../machines/agent/messages.js'
import type { ShieldPoint } from '../../../machines/agent/screening.js'
import { ConfigError } from '../base/errors.js'

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

/**
 * The second argument of a shield's `check`.
 *
 * @example
 * defineShield({
 *   name: 'remote',
 *   check: async (content, { point, signal }: ShieldContext) => {
 *     const answer = await fetch('https://example.com/check', { method: 'POST', body: JSON.stringify({ content, point }), signal })
 *     return { action: answer.ok ? 'allow' : 'block' }
 *   },
 * })
 */
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
  const { name, check, timeoutMs } = checkDefinition(definition)
  return Object.freeze({
    name,
    check,
    ...(timeoutMs !== undefined && { timeoutMs }),
  })
}

const keys = ['name', 'check', 'timeoutMs']
const longest = 2_147_483_647

/** Checks at run time what the types prevent, for JavaScript and casts. */
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
  checkKeys(name, definition, keys)
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

export function invalidShieldError(name: string, option: string, problem: string): ConfigError {
  return new ConfigError('invalid_shield', `Shield '${name}': ${problem}`, `${name}.${option}`)
}

/** Rejects values that are not an options object, and unknown options. */
export function checkKeys(name: string, options: unknown, keys: readonly string[]): void {
  if (typeof options !== 'object' || options === null) {
    throw invalidShieldError(name, 'options', `the options must be an object with ${keys.join(', ')}.`)
  }
  for (const key of Object.keys(options)) {
    if (!keys.includes(key)) {
      throw invalidShieldError(name, key, `there is no option '${key}'. The options are ${keys.join(', ')}.`)
    }
  }
}

/** Returns the chosen kinds, or all kinds by default. */
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
  // The built-in order is from specific to general.
  return known.filter((kind) => kinds.includes(kind))
}
