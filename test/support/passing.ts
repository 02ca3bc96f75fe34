import type { SimulatedClock } from 'xstate'

/** Advances time in half-second steps until a value is available. */
export async function passing<Value>(clock: SimulatedClock, awaited: Promise<Value>): Promise<Value> {
  const seen = { isThere: false }
  const over = (): void => {
    seen.isThere = true
  }
  awaited.then(over, over)
  while (!seen.isThere) {
    await new Promise((resolve) => setImmediate(resolve))
    clock.increment(500)
  }
  return awaited
}
