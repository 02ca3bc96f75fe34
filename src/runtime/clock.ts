/**
 * Time, as the runtime sees it: every wait of a run goes through one of these, so that tests can move time by hand.
 * XState's own `SimulatedClock` fits.
 */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  setTimeout(fn: () => void, ms: number): unknown
  clearTimeout(id: unknown): void
}

/** Longest delay that a timer of the platform takes; a longer one would fire at once. */
const longestTimer = 2_147_483_647

export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (fn, ms) => setTimeout(fn, Math.min(ms, longestTimer)),
  clearTimeout: (id) => {
    clearTimeout(id as Parameters<typeof clearTimeout>[0])
  },
}
