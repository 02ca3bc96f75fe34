import { createFinderShield, type FinderShieldOptions } from './finder-shield.js'
import { checkKeys, chooseKinds } from './shield-options.js'
import { createPiiFinders, type PiiKind, piiKinds } from './pii.js'
import type { Shield } from './shield.js'

/** What to look for, and what to do about it. */
export interface PiiShieldOptions extends FinderShieldOptions<PiiKind> {
  /** Default `pii`. */
  name?: string
  /** Default `redact`. */
  action?: 'redact' | 'block' | 'warn'
  /** What to look for. Default: everything. */
  kinds?: readonly PiiKind[]
}

const keys = ['name', 'action', 'kinds', 'replacement', 'message']

/**
 * Finds personal data that is recognizable by its form: e-mail addresses, IBANs, payment cards, US social security
 * numbers and phone numbers. Names and postal addresses have none. Linear time.
 *
 * @example createAgent({ model, shields: { toolOutput: [piiShield({ kinds: ['iban', 'credit_card'] })] } })
 * @throws {ConfigError} `invalid_shield`
 */
export function piiShield(options: PiiShieldOptions = {}): Shield {
  checkKeys('pii', options, keys)
  const { name = 'pii' } = options
  const finders = createPiiFinders(chooseKinds(name, piiKinds, options.kinds))
  return createFinderShield(name, finders, 'The text contains personal data', options as FinderShieldOptions)
}
