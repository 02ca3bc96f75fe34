import {
  invalidShieldError,
  checkKeys,
  type Shield,
  defineShield,
  chooseKinds,
  expectOption,
} from './define-shield.js'
import { type Finder, listKinds, redactAll } from './finder.js'
import { createPiiFinders, type PiiKind, piiKinds } from './pii.js'
import { readProperty } from '../base/json.js'
import { createSecretFinders, type SecretKind, secretKinds } from './secrets.js'

export interface PatternShieldOptions extends FinderShieldOptions {
  /**
   * Patterns to find anywhere in the text. The `g` and `y` flags are ignored. The name is shown to people and defaults
   * to `pattern 1`, `pattern 2`, … A group named `prefix` at the start of a pattern is not redacted. A timeout cannot
   * stop a pattern, so avoid nested quantifiers.
   */
  patterns: readonly (RegExp | { name: string; pattern: RegExp })[]
  action: 'redact' | 'block' | 'warn'
}

const keys = ['name', 'patterns', 'action', 'replacement', 'message']

/**
 * Creates a shield from regular expressions. Text that passes, whether redacted or not, matches none of the
 * expressions.
 *
 * ```ts
 * patternShield({ patterns: [{ name: 'project name', pattern: /\bproject falcon\b/i }], action: 'block' })
 * ```
 *
 * Throws a ConfigError `invalid_shield`.
 */
export function patternShield(options: PatternShieldOptions): Shield {
  checkKeys('patterns', options, keys)
  const { name = 'patterns', patterns, action } = options
  const isList = Array.isArray(patterns) && patterns.length > 0
  expectOption(name, 'patterns', isList, 'an array of at least one regular expression')
  expectOption(name, 'action', actions.includes(action), actionRule)
  const finders = Array.from(patterns, (entry: unknown, index) => toFinder(name, entry, index))
  return createFinderShield(name, finders, 'The text matches', options)
}

const actions: readonly unknown[] = ['redact', 'block', 'warn']
const actionRule = "'redact', 'block' or 'warn'"

function toFinder(shield: string, entry: unknown, index: number): Finder {
  const place = `patterns[${index}]`
  const refuse = (problem: string): never => {
    throw invalidShieldError(shield, place, `${place}${problem}`)
  }
  const isPattern = isRegExp(entry)
  const kind = isPattern ? `pattern ${index + 1}` : readProperty(entry, 'name')
  const pattern = isPattern ? entry : readProperty(entry, 'pattern')
  if (!isRegExp(pattern)) return refuse(' must be a RegExp or { name, pattern: RegExp }.')
  if (typeof kind !== 'string' || kind.trim() === '') return refuse('.name must be a string.')
  const flags = pattern.flags.replace(/[gy]/g, '')
  if (''.search(new RegExp(pattern.source, flags)) !== -1)
    refuse(' matches the empty string, and therefore every text. Make it more specific.')
  // Copies the pattern, because the original may have a `lastIndex`.
  return { kind, pattern: new RegExp(pattern.source, `${flags}g`) }
}

function isRegExp(value: unknown): value is RegExp {
  return Object.prototype.toString.call(value) === '[object RegExp]'
}

export interface FinderShieldOptions<Kind extends string = string> {
  /** The name of the shield, unique per point. Defaults to `pii`, `secrets` or `patterns`. */
  name?: string
  /** Action for a match. Defaults to `redact`. */
  action?: 'redact' | 'block' | 'warn'
  /** Replacement text, which is used literally (without `$1`). Defaults to `[redacted KIND]`. */
  replacement?: string | ((kind: Kind) => string)
  /** Message for people. Defaults to a sentence that names the kinds found without their content. */
  message?: string
}

function createFinderShield(
  name: string,
  finders: readonly Finder[],
  found: string,
  options: FinderShieldOptions,
): Shield {
  const { action = 'redact', message, replacement = (kind: string) => `[redacted ${kind}]` } = options
  const replace = typeof replacement === 'string' ? () => replacement : replacement
  const shield = defineShield({
    name,
    check: (content) => {
      const words = (kinds: readonly string[]): string => message ?? `${found}: ${kinds.join(', ')}.`
      if (action !== 'redact') {
        const kinds = listKinds(finders, content)
        return kinds.length === 0 ? { action: 'allow' } : { action, message: words(kinds) }
      }
      const { text, kinds, clean } = redactAll(finders, content, replace)
      if (kinds.length === 0) return { action: 'allow' }
      return clean
        ? { action, content: text, message: words(kinds) }
        : { action: 'block', message: `${words(kinds)} It cannot be redacted.` }
    },
  })
  checkOptions(name, finders, { ...options, action, replacement })
  return shield
}

function checkOptions(name: string, finders: readonly Finder[], options: FinderShieldOptions): void {
  const { action, message, replacement } = options
  expectOption(name, 'action', actions.includes(action), actionRule)
  expectOption(name, 'message', ['undefined', 'string'].includes(typeof message), 'a string')
  for (const { kind } of finders) {
    const text = (typeof replacement === 'function' ? replacement(kind) : replacement) as string
    const rule = 'a string, or a function that returns one for a kind'
    expectOption(name, 'replacement', typeof text === 'string', rule)
    if (action !== 'redact' || listKinds(finders, text).length === 0) continue
    const problem = `the replacement '${text.slice(0, 80)}' matches the pattern that it replaces. Choose another.`
    throw invalidShieldError(name, 'replacement', problem)
  }
}

export interface PiiShieldOptions extends FinderShieldOptions<PiiKind> {
  /** Kinds to find. Defaults to all. */
  kinds?: readonly PiiKind[]
}

/**
 * Finds personal data with a recognizable form: e-mail addresses, IBANs, payment cards, US social security numbers
 * and phone numbers, but not names and postal addresses. Runs in linear time.
 *
 * @example createAgent({ model, shields: { toolOutput: [piiShield({ kinds: ['iban', 'credit_card'] })] } })
 * @throws {ConfigError} `invalid_shield`
 */
export function piiShield(options: PiiShieldOptions = {}): Shield {
  checkKeys('pii', options, finderKeys)
  const { name = 'pii' } = options
  const finders = createPiiFinders(chooseKinds(name, piiKinds, options.kinds))
  return createFinderShield(name, finders, 'The text contains personal data', options as FinderShieldOptions)
}

export interface SecretsShieldOptions extends FinderShieldOptions<SecretKind> {
  /** Kinds to find. Defaults to all. */
  kinds?: readonly SecretKind[]
}

const finderKeys = ['name', 'action', 'kinds', 'replacement', 'message']

/**
 * Finds API keys, tokens, private keys and passwords with a recognizable form. See `SecretKind`. Runs in linear time.
 *
 * @example createAgent({ model, shields: { toolOutput: [secretsShield()], output: [secretsShield({ action: 'block' })] } })
 * @throws {ConfigError} `invalid_shield`
 */
export function secretsShield(options: SecretsShieldOptions = {}): Shield {
  checkKeys('secrets', options, finderKeys)
  const { name = 'secrets' } = options
  const finders = createSecretFinders(chooseKinds(name, secretKinds, options.kinds))
  const found = 'The text seems to contain a secret'
  return createFinderShield(name, finders, found, options as FinderShieldOptions)
}
