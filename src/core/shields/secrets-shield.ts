import { createFinderShield, type FinderShieldOptions } from './finder-shield.js'
import { checkKeys, chooseKinds } from './shield-options.js'
import { createSecretFinders, type SecretKind, secretKinds } from './secrets.js'
import type { Shield } from './shield.js'

/** What to look for, and what to do about it. */
export interface SecretsShieldOptions extends FinderShieldOptions<SecretKind> {
  /** Default `secrets`. */
  name?: string
  /** Default `redact`. */
  action?: 'redact' | 'block' | 'warn'
  /** What to look for. Default: everything. */
  kinds?: readonly SecretKind[]
}

const keys = ['name', 'action', 'kinds', 'replacement', 'message']

/**
 * Finds API keys, tokens, private keys and passwords that are recognizable by their form: see `SecretKind`. Linear
 * time.
 *
 * @example createAgent({ model, shields: { toolOutput: [secretsShield()], output: [secretsShield({ action: 'block' })] } })
 * @throws {ConfigError} `invalid_shield`
 */
export function secretsShield(options: SecretsShieldOptions = {}): Shield {
  checkKeys('secrets', options, keys)
  const { name = 'secrets' } = options
  const finders = createSecretFinders(chooseKinds(name, secretKinds, options.kinds))
  return createFinderShield(
    name,
    finders,
    'The text contains what looks like a secret',
    options as FinderShieldOptions,
  )
}
