import { invalidShieldError } from './define-shield.js'
import type { Finder } from './finder.js'
import { createFinderShield, type FinderShieldOptions } from './finder-shield.js'
import { checkKeys } from './define-shield.js'
import type { Shield } from './shield.js'

export interface PatternShieldOptions extends FinderShieldOptions {
  /** Default `patterns`. */
  name?: string
  /**
   * What to look for: everywhere in the text, whatever the flags `g` and `y` say. The name of a pattern is told to
   * people; without one it is `pattern 1`, `pattern 2`, … A group named `kept` at the start of a pattern stays when the
   * rest is redacted.
   *
   * A pattern runs in one piece, and no time limit can stop it: write ones without nested quantifiers.
   */
  patterns: readonly (RegExp | { name: string; pattern: RegExp })[]
  action: 'redact' | 'block' | 'warn'
}

const keys = ['name', 'patterns', 'action', 'replacement', 'message']

/**
 * A shield of regular expressions. What it lets pass, redacted or not, matches none of them.
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
  if (!Array.isArray(patterns) || patterns.length === 0) {
    throw invalidShieldError(
      name,
      'patterns',
      'patterns must be an array of at least one regular expression.',
    )
  }
  if (action === undefined)
    throw invalidShieldError(name, 'action', "action must be 'redact', 'block' or 'warn'.")
  const finders = Array.from(patterns, (entry: unknown, index) => toFinder(name, entry, index))
  return createFinderShield(name, finders, 'The text matches', options)
}

function toFinder(name: string, entry: unknown, index: number): Finder {
  const place = `patterns[${index}]`
  const named = isRegExp(entry) ? { name: `pattern ${index + 1}`, pattern: entry } : entry
  const { name: kind, pattern } = (named ?? {}) as { name?: unknown; pattern?: unknown }
  if (!isRegExp(pattern)) {
    throw invalidShieldError(name, place, `${place} must be a RegExp or { name, pattern: RegExp }.`)
  }
  if (typeof kind !== 'string' || kind.trim() === '') {
    throw invalidShieldError(name, place, `${place}.name must be a text.`)
  }
  const { source, flags } = pattern
  if (''.search(new RegExp(source, flags.replace(/[gy]/g, ''))) !== -1) {
    throw invalidShieldError(
      name,
      place,
      `${place} matches the empty text, and so every text. Make it ask for more.`,
    )
  }
  // A copy: the caller's own carries a lastIndex from use to use.
  return { kind, pattern: new RegExp(source, `${flags.replace(/[gy]/g, '')}g`) }
}

function isRegExp(value: unknown): value is RegExp {
  return Object.prototype.toString.call(value) === '[object RegExp]'
}
