import { originOf } from '../store/checked-store.js'
import type { Inboxed } from '../store/inbox.js'
import type { AcquireOptions, Lease, SessionStore } from '../store/store.js'

/**
 * Leases that could not be given back: a full disk takes no release, either. Their sessions would stay in use, by runs
 * that have ended, for as long as the leases last.
 */
const kept = new WeakMap<SessionStore, Map<string, Lease>>()

/** Leases that are being given back: an answer may come in between. */
const leaving = new WeakMap<SessionStore, Map<string, Promise<void>>>()

/** Gives a session free; `onAnswer` is told what the store says to that. Never fails: what cannot be given back now is when this process next asks for the session. */
export function releaseLease(
  store: SessionStore,
  lease: Lease,
  onAnswer: (told: Inboxed | void) => void = () => undefined,
): Promise<void> | undefined {
  const keep = (): void => {
    const leases = kept.get(originOf(store)) ?? new Map<string, Lease>()
    kept.set(originOf(store), leases.set(lease.sessionId, lease))
  }
  try {
    const released = store.release(lease)
    if (!(released instanceof Promise)) {
      onAnswer(released)
      return undefined
    }
    const under = leaving.get(originOf(store)) ?? new Map<string, Promise<void>>()
    const done: Promise<void> = released.then(onAnswer, keep).finally(() => {
      if (under.get(lease.sessionId) === done) under.delete(lease.sessionId)
    })
    leaving.set(originOf(store), under.set(lease.sessionId, done))
    return done
  } catch {
    keep()
    return undefined
  }
}

/** `store.acquire`, once what this process still had of the session is given back. */
export function acquireLease(
  store: SessionStore,
  sessionId: string,
  options: AcquireOptions,
): Lease | Promise<Lease> {
  const going = leaving.get(originOf(store))?.get(sessionId)
  if (going) return going.then(() => acquireLease(store, sessionId, options))
  const leases = kept.get(originOf(store))
  const left = leases?.get(sessionId)
  if (!left) return store.acquire(sessionId, options)
  leases?.delete(sessionId)
  const released = releaseLease(store, left)
  return released ? released.then(() => store.acquire(sessionId, options)) : store.acquire(sessionId, options)
}
