import { defineShield, invalidShieldError } from './define-shield.js'
import { type Finder, listKinds, redactAll } from './finder.js'
import type { Shield } from './shield.js'

/** The options of a shield that looks for patterns. */
export interface FinderShieldOptions<Kind extends string = string> {
  /** Unique among the shields of a point. */
  name?: string
  /** What to do when something is found. */
  action?: 'redact' | 'block' | 'warn'
  /** What takes the place of what is found, as it stands (no `$1`). Default: `[redacted KIND]`. */
  replacement?: string | ((kind: Kind) => string)
  /** What people are told. Default: a sentence that names the kinds found, never what was found. */
  message?: string
}

/** A shield that acts on what its finders find. */
export function createFinderShield(
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
      const said = (kinds: readonly string[]): string => message ?? `${found}: ${kinds.join(', ')}.`
      if (action !== 'redact') {
        const kinds = listKinds(finders, content)
        return kinds.length === 0 ? { action: 'allow' } : { action, message: said(kinds) }
      }
      const { text, kinds, clean } = redactAll(finders, content, replace)
      if (kinds.length === 0) return { action: 'allow' }
      return clean
        ? { action, content: text, message: said(kinds) }
        : { action: 'block', message: `${said(kinds)} It cannot be redacted.` }
    },
  })
  checkOptions(name, finders, { ...options, action, replacement })
  return shield
}

function checkOptions(name: string, finders: readonly Finder[], options: FinderShieldOptions): void {
  const { action, message, replacement } = options
  if (action !== 'redact' && action !== 'block' && action !== 'warn') {
    throw invalidShieldError(name, 'action', "action must be 'redact', 'block' or 'warn'.")
  }
  if (message !== undefined && typeof message !== 'string') {
    throw invalidShieldError(name, 'message', 'message must be a text.')
  }
  for (const { kind } of finders) {
    const text: unknown = typeof replacement === 'function' ? replacement(kind) : replacement
    if (typeof text !== 'string') {
      throw invalidShieldError(
        name,
        'replacement',
        'replacement must be a text, or a function from the kind to a text.',
      )
    }
    if (action === 'redact' && listKinds(finders, text).length > 0) {
      throw invalidShieldError(
        name,
        'replacement',
        `the replacement '${text.slice(0, 80)}' contains what it replaces. Choose another.`,
      )
    }
  }
}
