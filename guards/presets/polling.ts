import type { CallFact } from '../types.js'

/**
 * Whether a batch only waits for something. Such a batch is exempt from repeated call, repeated output, cycle and
 * transient failures; a poll beside any other call is not. To the repetition guards it is time passing: it ends every
 * streak, because what comes after it may well be asked again.
 */
export function isPolling(calls: readonly CallFact[]): boolean {
  return calls.length > 0 && calls.every((call) => call.polling)
}
