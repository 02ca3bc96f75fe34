import type { CallFact } from '../types.js'

/**
 * What a guard has refused in this run, latest last, by the beginnings of fingerprints. The second refusal of the same call halts, so they are remembered beyond the streak that led to the first.
 */
export type Refusals = readonly string[]

export const mostRefusals = 12

/** A prefix is enough to distinguish a dozen fingerprints. */
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
 * Whether a batch only waits for something. Such a batch is exempt from repeated call, repeated output, cycle and
 * transient failures; a poll beside any other call is not. To the repetition guards it is time passing: it ends every
 * streak, because what comes after it may well be asked again.
 */
export function isPolling(calls: readonly CallFact[]): boolean {
  return calls.length > 0 && calls.every((call) => call.polling)
}
