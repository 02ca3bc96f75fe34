import { type Clock, readElapsed, unrefTimer } from '../../base/clock.js'
import type { Appended, Lease, SessionStore } from '../store/store.js'
import { leaseLostError, StoreError } from '../store/store-error.js'
import { findRelease, leaseMs, releaseLease } from './release-lease.js'
import { PerStore } from '../store/per-store.js'

/** The log for which a lease is held. */
export interface LeaseOwner {
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

  /** Confirms the lease, renewing it if it may be old. Returns undefined while it is fresh. */
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
export interface LeaseHolder {
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

export const heartbeats = new PerStore((store, clock) => new Heartbeat(store, clock))
