import type { CallFact } from '../types.js'

/** Fingerprint prefixes, latest last. The second refusal halts the run, so they outlive the streak. */
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

/** A batch of polls is exempt, and ends all streaks, because time has passed and calls may be repeated. */
export function isPolling(calls: readonly CallFact[]): boolean {
  return calls.length > 0 && calls.every((call) => call.polling)
}
