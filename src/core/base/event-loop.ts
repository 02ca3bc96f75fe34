import { getPlatform } from './platform.js'

/** Settles once the event loop has had its turn: what else waits in this process, or in this page, runs first. */
export async function yieldToEventLoop(): Promise<void> {
  await new Promise<void>((resolve) => {
    getPlatform().runNextTurn(resolve)
  })
}

/** Milliseconds of long work before it yields, so that runs and other pages go on. */
export const stretchMs = 8

/** Calls that begin in one turn of the event loop: each takes up to half a millisecond besides what its tool does. */
export const startsPerTick = 50

/**
 * The outcomes of `work`, in the order of `items`. All work runs at once, but so many begin in one turn of the event loop.
 * Throws the signal's reason when it aborts before all have begun.
 */
export async function runStaggered<Item, Outcome>(
  items: readonly Item[],
  signal: AbortSignal,
  work: (item: Item) => Promise<Outcome>,
): Promise<Outcome[]> {
  const begun: Promise<Outcome>[] = []
  for (const item of items) {
    if (begun.length > 0 && begun.length % startsPerTick === 0) {
      await yieldToEventLoop()
      signal.throwIfAborted()
    }
    const outcome = work(item)
    // A failure is thrown below, once all have begun.
    outcome.catch(() => undefined)
    begun.push(outcome)
  }
  return Promise.all(begun)
}
