import type { Clock } from '../runtime/clock.js'
import type { SessionStore } from '../stores/store.js'
import { StoreError } from '../stores/store-error.js'

/** How long a store may take for one answer, in milliseconds. */
export const storeMs = 60_000

const asked = ['acquire', 'renew', 'release', 'append', 'read', 'get', 'list', 'delete'] as const

/** One wrapper a store and clock: leases are remembered by store. */
const known = new WeakMap<SessionStore, WeakMap<Clock, SessionStore>>()

/**
 * The store, whose promises settle: one that does not within `storeMs` rejects with `store_unavailable`, so that no run
 * waits for it for ever. What it was asked to do may have been done, or may be done yet.
 */
export function timedStore(store: SessionStore, clock: Clock): SessionStore {
  const byClock = known.get(store) ?? new WeakMap<Clock, SessionStore>()
  known.set(store, byClock)
  const timed = byClock.get(clock) ?? wrapped(store, clock)
  byClock.set(clock, timed)
  return timed
}

function wrapped(store: SessionStore, clock: Clock): SessionStore {
  const methods = asked.map((method) => [
    method,
    (...args: unknown[]): unknown => {
      const answer = (store[method] as (...all: unknown[]) => unknown).apply(store, args)
      return answer instanceof Promise ? inTime(answer, method, clock) : answer
    },
  ])
  return { ...(Object.fromEntries(methods) as SessionStore), close: () => store.close() }
}

function inTime<Answer>(answer: Promise<Answer>, method: string, clock: Clock): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimeout(() => {
      const message = `The session store has not answered ${method}() for ${storeMs} ms. Whether it was done is not known.`
      reject(new StoreError('store_unavailable', message))
    }, storeMs)
    // Waiting is no reason for a process to stay.
    ;(timer as { unref?: () => void } | undefined)?.unref?.()
    answer.then(resolve, reject).finally(() => {
      clock.clearTimeout(timer)
    })
  })
}
