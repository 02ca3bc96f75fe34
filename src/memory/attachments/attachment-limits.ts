import { checkInput } from '../../core/config/check-input.js'
import {
  list,
  predicate,
  anyText,
  count,
  section,
  nonEmptyText,
  wholeNumber,
} from '../../core/config/kind.js'
import { type AddressPolicy, createAddressPolicy } from '../../core/config/address-policy.js'
import type { AttachmentOptions } from './attachment.js'

const maxTimerMs = 2_147_483_647
const timePhrase = `a whole number of milliseconds from 1 to ${maxTimerMs}`

const attachmentOptionsKind = section({
  maxBytes: count(1),
  maxChars: count(1),
  maxPages: count(1),
  timeoutMs: wholeNumber(1, maxTimerMs, timePhrase),
  signal: predicate<AbortSignal>((value) => value instanceof AbortSignal, 'an AbortSignal'),
  root: nonEmptyText('the path of a folder'),
  allowAddresses: list(anyText('an address, a CIDR block or a host name'), 'a list of addresses'),
})

export interface AttachmentLimits {
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
export function resolveAttachmentLimits(options: AttachmentOptions): AttachmentLimits {
  const checked = checkInput(attachmentOptionsKind, options, 'attachment options')
  return {
    maxBytes: checked.maxBytes ?? 10_000_000,
    maxChars: checked.maxChars ?? 200_000,
    maxPages: checked.maxPages ?? 500,
    timeoutMs: checked.timeoutMs ?? 15_000,
    signal: checked.signal ?? new AbortController().signal,
    root: checked.root,
    addresses: createAddressPolicy(checked.allowAddresses ?? []),
  }
}
