import type { Message } from '../../../machines/agent/messages.js'
import type { ShieldPoint } from '../../../machines/agent/screening.js'
import { ConfigError } from '../base/errors.js'

export type { ShieldAction, ShieldPoint } from '../../../machines/agent/screening.js'

/** What a shield says of a content. `message` is for people, and is cut to 2,000 characters. */
export type ShieldVerdict =
  | { readonly action: 'allow' | 'warn' | 'block'; readonly message?: string }
  /** `content` takes the place of what was checked. */
  | { readonly action: 'redact'; readonly content: string; readonly message?: string }

/** What a content is about. */
export interface ShieldScene {
  readonly point: ShieldPoint
  /** The call and its tool, at `toolInput` and `toolOutput`. */
  readonly callId?: string | undefined
  readonly toolName?: string | undefined
  /** The app's own object, as it was handed to the run. */
  readonly context?: unknown
  /** The transcript that the content comes after. */
  readonly messages?: readonly Message[] | undefined
}

/**
 * What a shield is told beside the content.
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
  /** Aborts when the verdict is not needed any more: the run was stopped, or the time is over. */
  readonly signal: AbortSignal
}

/** Made by `defineShield`. */
export interface Shield {
  /** Unique among the shields of one point: 1 to 64 letters, digits, `_`, `-` and `.`. */
  readonly name: string
  /** Looks at a whole text and may take its time. What it throws counts as a failed check. */
  readonly check: (content: string, question: ShieldContext) => ShieldVerdict | Promise<ShieldVerdict>
  /** Milliseconds that a check may take: 1 to 2,147,483,647. Default: that of all shields, 10,000. */
  readonly timeoutMs?: number | undefined
}

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
