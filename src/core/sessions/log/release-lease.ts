import { type Clock, readElapsed, unrefTimer, wait } from '../../base/clock.js'
import { getPlatform } from '../../base/platform.js'
import { PerStore } from '../store/per-store.js'
import type { InboxPosition } from '../store/inbox.js'
import type { AcquireOptions, Lease, SessionStore } from '../store/store.js'
import { StoreError } from '../store/store-error.js'

/** How long a session stays locked after the process that writes to it stops responding, in milliseconds. */
export const leaseMs = 30_000

/** The time when a new lease was acquired, according to the store's clock. */
export const getAcquiredAt = ({ expiresAt }: Lease): number => expiresAt - leaseMs

/** The shortest and longest delay before a failed release is retried, in milliseconds. */
const [soonest, latest] = [250, 4000]

interface PendingRelease {
  lease: Lease
  /** The time when the lease expires unless it is released. */
  until: number
}

/**
 * Retries failed releases until the store accepts them or the leases expire. A store that is unavailable or whose disk
 * is full cannot release leases, so the sessions of ended runs would otherwise stay locked until the leases expire.
 */
class LeaseReleaser {
  readonly #store: SessionStore
  readonly #clock: Clock
  /** Releases that are still to be retried. Keyed by token, because one session can have several leases. */
  readonly #pending = new Map<string, PendingRelease>()
  /** Releases in progress, keyed by session. Another call may arrive before a release completes. */
  readonly #releasing = new Map<string, Promise<void>>()
  #timer: unknown
  #waitMs = soonest

  constructor(store: SessionStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  getRelease(sessionId: string): Promise<void> | undefined {
    return this.#releasing.get(sessionId)
  }

  retryLater(lease: Lease, until = readElapsed(this.#clock) + leaseMs): void {
    this.#pending.set(lease.token, { lease, until })
    this.#scheduleRetry()
  }

  release(
    lease: Lease,
    onAnswer: (answer: InboxPosition | void) => void = () => undefined,
    until?: number,
  ): Promise<void> | undefined {
    const { sessionId } = lease
    try {
      const released = this.#store.release(lease)
      if (!(released instanceof Promise)) {
        onAnswer(released)
        return undefined
      }
      const done: Promise<void> = released
        .then(onAnswer, () => this.retryLater(lease, until))
        .finally(() => {
          if (this.#releasing.get(sessionId) === done) this.#releasing.delete(sessionId)
        })
      this.#releasing.set(sessionId, done)
      return done
    } catch {
      this.retryLater(lease, until)
      return undefined
    }
  }

  /** Retries the release of this session. Returns undefined if it completes synchronously or none is pending. */
  releasePending(sessionId: string): Promise<void> | undefined {
    const own = [...this.#pending.values()].filter(({ lease }) => lease.sessionId === sessionId)
    const left = own.map((entry) => this.#retry(entry)).filter((released) => released !== undefined)
    return left.length === 0 ? undefined : Promise.all(left).then(() => undefined)
  }

  #retry({ lease, until }: PendingRelease): Promise<void> | undefined {
    this.#pending.delete(lease.token)
    return this.release(lease, undefined, until)
  }

  #scheduleRetry(): void {
    if (this.#timer !== undefined || this.#pending.size === 0) return
    this.#timer = this.#clock.setTimeout(() => void this.#retryAll(), this.#waitMs)
    // The timer must not keep the process alive.
    unrefTimer(this.#timer)
  }

  /** Tries a single release first, so that an unavailable store receives one request instead of many. */
  async #retryAll(): Promise<void> {
    const now = readElapsed(this.#clock)
    for (const [token, { until }] of this.#pending) if (until <= now) this.#pending.delete(token)
    const [first, ...others] = this.#pending.values()
    if (first) {
      await this.#retry(first)
      if (this.#pending.has(first.lease.token)) this.#waitMs = Math.min(latest, this.#waitMs * 2)
      else {
        this.#waitMs = soonest
        // Some leases may have been released in the meantime.
        for (const entry of others) if (this.#pending.has(entry.lease.token)) void this.#retry(entry)
      }
    }
    this.#timer = undefined
    this.#scheduleRetry()
  }
}

const leaseReleasers = new PerStore((store, clock) => new LeaseReleaser(store, clock))

/**
 * Releases a session and passes the store's response to `onAnswer`. Never fails. A failed release is retried when the
 * store is available again, or when this process acquires the session.
 */
export function releaseLease(
  store: SessionStore,
  lease: Lease,
  clock: Clock,
  onAnswer?: (answer: InboxPosition | void) => void,
): Promise<void> | undefined {
  return leaseReleasers.get(store, clock).release(lease, onAnswer)
}

/**
 * Releases a lease that the store may have granted although its response was lost. Retries until the store accepts the
 * release.
 */
export function releaseLater(store: SessionStore, lease: Lease, clock: Clock): void {
  leaseReleasers.get(store, clock).retryLater(lease)
}

/** Resolves when a pending release of the session completes. Returns undefined if none is pending. */
export function findRelease(store: SessionStore, sessionId: string): Promise<void> | undefined {
  return leaseReleasers
    .list(store)
    .map((leases) => leases.getRelease(sessionId))
    .find((under) => under !== undefined)
}

/** Calls `store.acquire` once this process has released its earlier leases of the session. */
export function acquireLease(
  store: SessionStore,
  sessionId: string,
  options: AcquireOptions,
): Lease | Promise<Lease> {
  const going = findRelease(store, sessionId)
  if (going) return going.then(() => acquireLease(store, sessionId, options))
  const left = leaseReleasers
    .list(store)
    .map((leases) => leases.releasePending(sessionId))
    .filter((under) => under !== undefined)
  if (left.length === 0) return store.acquire(sessionId, options)
  return Promise.all(left).then(() => store.acquire(sessionId, options))
}

/** Delays before the attempts to reacquire a session, in milliseconds. 0 yields to other tasks. */
const pauses = [0, 20, 60, 140, 280, 500, 1000]

/**
 * Reacquires a session for an idle run that continues from record `head`. Another process may hold the session briefly,
 * to detect this run and give up, or to add a message. Retries a few times unless the other process has continued the
 * session.
 */
export function acquireLeaseAgain(
  store: SessionStore,
  sessionId: string,
  { holder, clock, head }: { holder: string; clock: Clock; head: number },
): Lease | Promise<Lease> {
  const options = { holder, ttlMs: leaseMs }
  try {
    const lease = acquireLease(store, sessionId, options)
    return lease instanceof Promise ? lease.catch(retryWhileBusy) : lease
  } catch (error) {
    return retryWhileBusy(error)
  }

  async function retryWhileBusy(refusal: unknown): Promise<Lease> {
    let last = refusal
    /* oxlint-disable no-await-in-loop -- each attempt follows the previous one */
    for (const ms of pauses) {
      if (!(last instanceof StoreError && last.code === 'session_busy')) break
      await (ms === 0 ? new Promise<void>((resolve) => getPlatform().runNextTurn(resolve)) : wait(clock, ms))
      const listed = await store.get(sessionId)
      if (listed !== null && listed.head > head) break
      try {
        return await acquireLease(store, sessionId, options)
      } catch (error) {
        last = error
      }
    }
    /* oxlint-enable no-await-in-loop */
    throw last
  }
}
