import type { Message } from '../../../machines/agent/messages.js'
import type { ShieldPoint } from '../../../machines/agent/screening.js'
import { ConfigError } from '../base/errors.js'
import { isTimeout, readDefinition, timeoutRule, defineAll } from '../config/definition.js'

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

/** The shields of an agent, such as `{ input: [secretsShield({ action: 'block' })], output: [piiShield()] }`. */
export interface ShieldsOptions extends Partial<Record<ShieldPoint, readonly Shield[]>> {
  /** The timeout for a check in milliseconds. Defaults to 10,000. */
  timeoutMs?: number
  /** Whether failing shields (exception, timeout, invalid verdict) warn instead of blocking. Defaults to false. */
  failOpen?: boolean
  /** Number of characters in a streamed answer to hold back for output shields. Defaults to 200. */
  holdBack?: number
}

export interface ShieldSet extends Readonly<Record<ShieldPoint, readonly Shield[]>> {
  readonly timeoutMs: number
  readonly failOpen: boolean
  readonly holdBack: number
}

export const defaultTimeoutMs = 10_000

const points: readonly ShieldPoint[] = ['input', 'toolInput', 'toolOutput', 'output']
const keys: readonly string[] = [...points, 'timeoutMs', 'failOpen', 'holdBack']

/**
 * Validates the shields of an agent. Throws a ConfigError: `duplicate_shield` for two shields with the same name at
 * one point, `invalid_shield`, or `invalid_option`.
 */
export function createShieldSet(options: ShieldsOptions = {}): ShieldSet {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw invalidOptionError(
      'shields',
      'must be an object: { input: [], toolInput: [], toolOutput: [], output: [] }.',
    )
  }
  const other = Object.keys(options).find((key) => !keys.includes(key))
  if (other !== undefined)
    throw invalidOptionError(`shields.${other}`, `is not an option. The options are ${keys.join(', ')}.`)
  const { timeoutMs = defaultTimeoutMs, failOpen = false, holdBack = 200 } = options
  if (!isTimeout(timeoutMs)) throw invalidOptionError('shields.timeoutMs', timeoutRule)
  if (typeof failOpen !== 'boolean') throw invalidOptionError('shields.failOpen', 'must be true or false.')
  if (!Number.isSafeInteger(holdBack) || holdBack < 1)
    throw invalidOptionError('shields.holdBack', 'must be a positive number of characters.')
  return Object.freeze({
    input: checkShields('input', options.input),
    toolInput: checkShields('toolInput', options.toolInput),
    toolOutput: checkShields('toolOutput', options.toolOutput),
    output: checkShields('output', options.output),
    timeoutMs,
    failOpen,
    holdBack,
  })
}

function checkShields(point: ShieldPoint, shields: readonly Shield[] = []): readonly Shield[] {
  const place = `shields.${point}`
  if (!Array.isArray(shields)) throw invalidOptionError(place, 'must be an array of shields.')
  return Object.freeze(
    defineAll('shield', place, shields as readonly Shield[], defineShield, (name) => {
      const text = `Two shields in ${place} are named '${name}'. Rename one, so that their findings can be distinguished.`
      return new ConfigError('duplicate_shield', text, place)
    }),
  )
}

function invalidOptionError(key: string, problem: string): ConfigError {
  return new ConfigError('invalid_option', `${key} ${problem}`, key)
}
