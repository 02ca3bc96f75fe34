interface Waiting {
  callbacks: Set<() => void>
  stop: () => void
}

/**
 * Who waits for each signal. A signal has one listener of ours, however many wait: Node takes more than ten on one for a
 * leak and warns of it, and an app may well give one signal to all its runs.
 */
const waiting = new WeakMap<AbortSignal, Waiting>()

/** Calls back when the signal aborts, in the order of asking. Returns what ends the waiting. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const { callbacks, stop } = waiting.get(signal) ?? listen(signal)
  // Of its own, so that one function can wait twice.
  const waiter = (): void => callback()
  callbacks.add(waiter)
  return () => {
    if (callbacks.delete(waiter) && callbacks.size === 0) stop()
  }
}

function listen(signal: AbortSignal): Waiting {
  const callbacks = new Set<() => void>()
  const listener = (): void => {
    stop()
    // A callback may end the waiting of a later one.
    for (const callback of callbacks) callback()
  }
  const stop = (): void => {
    signal.removeEventListener('abort', listener)
    waiting.delete(signal)
  }
  signal.addEventListener('abort', listener)
  const waiters = { callbacks, stop }
  waiting.set(signal, waiters)
  return waiters
}
