import { check } from '../../core/config/check.js'
import { list, that } from '../../core/config/kind.js'
import { anyText, count, section, text, whole } from '../../core/config/values.js'
import { type AddressPolicy, addressPolicy } from '../../core/config/address-policy.js'
import type { AttachmentOptions } from './attachment.js'

const longestTimer = 2_147_483_647
const timePhrase = `a whole number of milliseconds from 1 to ${longestTimer}`

const schema = section({
  maxBytes: count(1),
  maxChars: count(1),
  maxPages: count(1),
  timeoutMs: whole(1, longestTimer, timePhrase),
  signal: that<AbortSignal>((value) => value instanceof AbortSignal, 'an AbortSignal'),
  root: text('the path of a folder'),
  allowAddresses: list(anyText('an address, a CIDR block or a host name'), 'a list of addresses'),
})

export interface Limits {
  maxBytes: number
  maxChars: number
  maxPages: number
  timeoutMs: number
  /** One that never aborts when none was given. */
  signal: AbortSignal
  root: string | undefined
  addresses: AddressPolicy
}

/** @throws {ConfigError} */
export function resolveLimits(options: AttachmentOptions): Limits {
  const checked = check(schema, options, 'attachment options')
  return {
    maxBytes: checked.maxBytes ?? 10_000_000,
    maxChars: checked.maxChars ?? 200_000,
    maxPages: checked.maxPages ?? 500,
    timeoutMs: checked.timeoutMs ?? 15_000,
    signal: checked.signal ?? new AbortController().signal,
    root: checked.root,
    addresses: addressPolicy(checked.allowAddresses ?? []),
  }
}
