import { expectArgument, listRule, objectRule } from '../base/values.js'
import type { Screening } from '../../../machines/agent/screening.js'
import { type Clock, systemClock } from '../base/clock.js'
import { askShields } from './ask-shields.js'
import type { Shield, ShieldScene } from './shield.js'
import { defaultTimeoutMs } from './shield-set.js'

/** What the content is about, and how long shields may look at it. */
export interface RunShieldsOptions extends ShieldScene {
  /** Stops all checks; what has not answered by then counts as blocked. */
  signal: AbortSignal
  /** Default: the system's. */
  clock?: Clock
  /** Milliseconds that a check may take, for shields without a `timeoutMs` of their own. Default 10,000. */
  timeoutMs?: number
  /** True: a shield that fails warns instead of blocking. Default false. */
  failOpen?: boolean
}

/**
 * Shows a content to all shields at once, and sums up what they say: block wins over redact, redact over warn, warn
 * over allow. A shield that throws, takes too long or answers nonsense counts as a block. Never rejects.
 *
 * Several redactions are applied one after another, in list order: the first as it was made; each later shield that
 * wanted to redact is asked again about the text so far. A shield that has found something and cannot be asked again
 * blocks, even with `failOpen`.
 *
 * @example
 * const { action, content } = await runShields([secretsShield()], text, { point: 'output', signal })
 */
export async function runShields(
  shields: readonly Shield[],
  content: string,
  options: RunShieldsOptions,
): Promise<Screening> {
  expectArgument('runShields(shields)', shields, listRule('a list of shields'))
  expectArgument('runShields(shields, content)', content, {
    is: (given) => typeof given === 'string',
    phrase: 'a text',
  })
  expectArgument(
    'runShields(shields, content, options)',
    options,
    objectRule(['point', 'signal'], 'an object with point and signal'),
  )
  const { clock = systemClock, timeoutMs = defaultTimeoutMs, failOpen = false, ...asked } = options
  return askShields(shields, content, { ...asked, clock, timeoutMs, failOpen })
}
