import { type Clock, readElapsed, unrefTimer, wait } from '../../base/clock.js'
import { getPlatform } from '../../base/platform.js'
import { PerStore } from '../store/per-store.js'
import type { InboxPosition } from '../store/inbox.js'
import type { AcquireOptions, Lease, SessionStore, Appended } from '../store/store.js'
import { StoreError, leaseLostError } from '../store/store-error.js'

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
function findRelease(store: SessionStore, sessionId: string): Promise<void> | undefined {
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

/** The log for which a lease is held. */
interface LeaseOwner {
  /** The error that stopped all writes, if any. */
  getFailure(): StoreError | undefined
  /** Whether a write that releases the session is in progress. The lease may be gone before the response arrives. */
  isReleasing(): boolean
  /** Called when the lease is lost. */
  onLost(error: unknown): void
  /** Called when the lease is held. `isNew` means that it was just acquired. */
  onHeld(isNew: boolean): void
  /** Called when the lease was released, so that any process may acquire the session. */
  onReleased(): void
  /** Called with the inbox position that the release returns. */
  onInboxAnswer(answer: Appended | void): void
}

/**
 * The lease of one session. It is renewed while held, released when the session becomes idle, and reacquired to
 * continue.
 */
export class HeldLease {
  readonly #store: SessionStore
  readonly #clock: Clock
  readonly #owner: LeaseOwner
  readonly #heartbeat: ReturnType<typeof heartbeats.get>
  readonly #leaseHolder: LeaseHolder
  #lease: Lease
  /** The time when the lease was last renewed for the full `leaseMs`. */
  #renewedAt: number
  #isHeld = true
  /** A renewal in progress that was started before a write or a call. */
  #renewing: Promise<void> | undefined

  constructor(store: SessionStore, clock: Clock, lease: Lease, owner: LeaseOwner) {
    this.#store = store
    this.#clock = clock
    this.#owner = owner
    this.#lease = lease
    this.#renewedAt = readElapsed(clock)
    this.#heartbeat = heartbeats.get(store, clock)
    this.#leaseHolder = {
      getLease: () => this.#lease,
      onRenewed: (renewed) => this.#onRenewed(renewed),
      onFailed: (lease, error) => this.#onRenewalFailed(lease, error),
    }
    this.#heartbeat.add(this.#leaseHolder)
  }

  /** The latest lease. */
  get lease(): Lease {
    return this.#lease
  }

  get isHeld(): boolean {
    return this.#isHeld
  }

  setLease(lease: Lease): void {
    this.#lease = lease
    this.#renewedAt = readElapsed(this.#clock)
    const isNew = !this.#isHeld
    this.#isHeld = true
    this.#owner.onHeld(isNew)
    this.#heartbeat.add(this.#leaseHolder)
  }

  /** Confirms the lease, renewing it if it may be stale. Returns undefined while it is fresh. */
  ensureHeld(): Promise<void> | undefined {
    if (this.#renewing) return this.#renewing
    return this.#isHeld && this.#isStale() ? this.#renew() : undefined
  }

  /** Confirms the lease with the store, regardless of its age. Rejects if the lease is not held. */
  confirmHeld(): Promise<void> | undefined {
    if (this.#renewing) return this.#renewing.then(() => this.confirmHeld())
    return this.#isHeld ? this.#renew() : Promise.reject(leaseLostError(this.#lease))
  }

  #renew(): Promise<void> | undefined {
    const lease = this.#lease
    try {
      const renewed = this.#store.renew(lease, leaseMs)
      if (renewed instanceof Promise) return (this.#renewing = this.#finishRenewal(lease, renewed))
      this.#onRenewed(renewed)
    } catch (error) {
      this.#onRenewalFailed(lease, error)
    }
    const failure = this.#owner.getFailure()
    return failure && Promise.reject(failure)
  }

  /** Releases the session. Resolves when the release completes. */
  release(): Promise<void> | undefined {
    if (!this.#isHeld) return findRelease(this.#store, this.#lease.sessionId)
    this.markReleased()
    return releaseLease(this.#store, this.#lease, this.#clock, (answer) => this.#owner.onInboxAnswer(answer))
  }

  markReleased(): void {
    this.#isHeld = false
    this.#heartbeat.remove(this.#leaseHolder)
    this.#owner.onReleased()
  }

  /**
   * Whether the lease may have expired. After a long suspension, this process may still be the only one that wants the
   * session.
   */
  #isStale(): boolean {
    return readElapsed(this.#clock) - this.#renewedAt > leaseMs / 2
  }

  async #finishRenewal(lease: Lease, renewed: Promise<Lease>): Promise<void> {
    try {
      this.#onRenewed(await renewed)
    } catch (error) {
      this.#onRenewalFailed(lease, error)
    } finally {
      this.#renewing = undefined
    }
    const failure = this.#owner.getFailure()
    if (failure) throw failure
  }

  /** Ignores the renewal of an earlier lease, because a new lease may have been acquired after a rest. */
  #onRenewed(lease: Lease): void {
    if (this.#isHeld && this.#lease.token === lease.token) this.setLease(lease)
  }

  #onRenewalFailed({ token }: Lease, error: unknown): void {
    if (!this.#isHeld || this.#owner.isReleasing() || this.#lease.token !== token) return
    const isOver = readElapsed(this.#clock) - this.#renewedAt >= leaseMs
    const isLost = error instanceof StoreError && error.code === 'lease_lost'
    // A short outage of the store is harmless as long as the lease is valid.
    if (isLost || isOver) this.#owner.onLost(error)
  }
}

/**
 * A session whose lease is renewed while its run is active, because a tool may run for hours without a write to the
 * log.
 */
interface LeaseHolder {
  getLease(): Lease
  onRenewed(lease: Lease): void
  /** `lease` is the lease that could not be renewed. In the meantime, a different lease may have been acquired. */
  onFailed(lease: Lease, error: unknown): void
}

/** The heartbeat for all leases that this process holds in a store. Uses a single request if the store supports it. */
class Heartbeat {
  readonly #store: SessionStore
  readonly #clock: Clock
  readonly #holders = new Set<LeaseHolder>()
  #timer: unknown

  constructor(store: SessionStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  add(holder: LeaseHolder): void {
    this.#holders.add(holder)
    this.#scheduleBeat()
  }

  remove(holder: LeaseHolder): void {
    this.#holders.delete(holder)
    if (this.#holders.size > 0) return
    this.#clock.clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #scheduleBeat(): void {
    if (this.#timer !== undefined || this.#holders.size === 0) return
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined
      this.#scheduleBeat()
      void this.#renewAll()
    }, leaseMs / 3)
    // The timer must not keep the process alive.
    unrefTimer(this.#timer)
  }

  async #renewAll(): Promise<void> {
    const held = Array.from(this.#holders, (holder) => ({ holder, lease: holder.getLease() }))
    if (!this.#store.renewAll) {
      await Promise.all(held.map((one) => this.#renew(one)))
      return
    }
    try {
      const renewed = await this.#store.renewAll(
        held.map(({ lease }) => lease),
        leaseMs,
      )
      const byToken = new Map(renewed.map((lease) => [lease.token, lease]))
      for (const { holder, lease } of held) {
        const renewed = byToken.get(lease.token)
        if (renewed) holder.onRenewed(renewed)
        else holder.onFailed(lease, leaseLostError(lease))
      }
    } catch (error) {
      for (const { holder, lease } of held) holder.onFailed(lease, error)
    }
  }

  async #renew({ holder, lease }: { holder: LeaseHolder; lease: Lease }): Promise<void> {
    try {
      holder.onRenewed(await this.#store.renew(lease, leaseMs))
    } catch (error) {
      holder.onFailed(lease, error)
    }
  }
}

const heartbeats = new PerStore((store, clock) => new Heartbeat(store, clock))
