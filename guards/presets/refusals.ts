import type { CallFact } from '../types.js'

/**
 * Calls that a guard has refused in this run, as fingerprint prefixes, latest last. The second refusal of the same
 * call halts the run, so refusals must outlive the streak that caused the first one.
 */
type Refusals = readonly string[]

export const mostRefusals = 12

/** Returns a prefix of a fingerprint that is long enough to distinguish a dozen calls. */
export function shortenFingerprint(fingerprint: string): string {
  return fingerprint.slice(0, 16)
}

export function addRefusals(refusals: Refusals, fingerprints: readonly string[]): string[] {
  const fresh = fingerprints.map(shortenFingerprint)
  const others = refusals.filter((one) => !fresh.includes(shortenFingerprint(one)))
  return [...others, ...fresh].slice(-mostRefusals)
}

export function wasRefused(refusals: Refusals, fingerprint: string): boolean {
  return refusals.some((one) => fingerprint.startsWith(shortenFingerprint(one)))
}

/**
 * Whether a batch only polls. Such a batch is exempt from the repetition guards and from the counts of transient
 * failures. It ends all streaks of these guards, because time has passed and later calls may be repeated.
 */
export function isPolling(calls: readonly CallFact[]): boolean {
  return calls.length > 0 && calls.every((call) => call.polling)
}
