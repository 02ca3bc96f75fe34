import { ConfigError } from '../base/errors.js'
import { defineAll, isTimeout, timeoutRule } from '../config/definition.js'
import { defineShield, type Shield, type ShieldPoint } from './define-shield.js'

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
