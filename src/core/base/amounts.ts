/**
 * Numbers from providers, stores, servers and functions of the app. Each is checked once, here; the rest of the code relies on the
 * result: finite, at least 0, bounded, and whole where the unit is.
 */

/** More tokens than any response has. A larger count is an error of the sender. */
const maxTokens = 1e9
/** More US dollars than any response costs. */
const maxUsd = 1e9
/** A year, in milliseconds. Dates and timers can hold the end of it. */
export const maxWaitMs = 366 * 86_400_000

/** Tokens of one response, rounded up to a whole number; null for anything else than a plausible count. */
export function readTokens(value: unknown): number | null {
  return isWithin(value, maxTokens) ? Math.ceil(value) : null
}

/** The cost of one response in US dollars; null for anything else than a plausible amount. */
export function readUsd(value: unknown): number | null {
  return isWithin(value, maxUsd) ? value : null
}

/** How long a server asks us to wait, in whole milliseconds, at most `maxWaitMs`; null for a value that is not a time. */
export function readWaitMs(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 ? Math.ceil(Math.min(value, maxWaitMs)) : null
}

/** A total that stores keep: tokens or billionths of a US dollar. Sums stop at the largest whole number. */
export function limitTotal(value: number): number {
  return Math.min(Math.max(Math.ceil(value), 0), Number.MAX_SAFE_INTEGER)
}

function isWithin(value: unknown, most: number): value is number {
  return typeof value === 'number' && value >= 0 && value <= most
}
