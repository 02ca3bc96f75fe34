import { type Clock, readElapsed, unrefTimer } from '../../base/clock.js'
import type { Appended, Lease, SessionStore } from '../store/store.js'
import { leaseLostError, StoreError } from '../store/store-error.js'
import { findRelease, leaseMs, releaseLease } from './release-lease.js'
import { PerStore } from '../store/per-store.js'

/** What the lease of a session is held for: its log. */
export interface LeaseOwner {
  /** Why nothing is written any more. */
  getFailure(): StoreError | undefined
  /** Whether a write is under way that gives the session free: the lease may be gone before its answer is here. */
  isReleasing(): boolean
  /** The session is not ours any more. */
  onLost(error: unknown): void
  /** The session is ours; `isNew`: it was not until now. */
  onHeld(isNew: boolean): void
  /** The lease is released: any process may acquire the session. */
  onReleased(): void
  /** Told what the store says of the inbox when the session is given back. */
  onInboxAnswer(told: Appended | void): void
}

/** The lease of one session: renewed while it is held, given back at a rest, and taken anew after it. */
export class HeldLease {
  readonly #store: SessionStore
  readonly #clock: Clock
  readonly #owner: LeaseOwner
  readonly #heartbeat: ReturnType<typeof heartbeats.get>
  readonly #leaseHolder: LeaseHolder
  #lease: Lease
  /** When the lease was last known to last for a full `leaseMs`. */
  #renewedAt: number
  #isHeld = true
  /** The lease is being renewed: before a write or a call. */
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
      onFailed: (kept, error) => this.#onRenewalFailed(kept, error),
    }
    this.#heartbeat.add(this.#leaseHolder)
  }

  /** The latest. */
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

  /** The session is known to be ours: a lease that may be old is renewed. Undefined while it is fresh. */
  ensureHeld(): Promise<void> | undefined {
    if (this.#renewing) return this.#renewing
    return this.#isHeld && this.#isStale() ? this.#renew() : undefined
  }

  /** The same, whatever its age: the store itself says that the session is ours. Rejects where it is not held. */
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

  /** Gives the session back, and waits for that. */
  release(): Promise<void> | undefined {
    if (!this.#isHeld) return findRelease(this.#store, this.#lease.sessionId)
    this.markReleased()
    return releaseLease(this.#store, this.#lease, this.#clock, (told) => this.#owner.onInboxAnswer(told))
  }

  /** The session has been given back. */
  markReleased(): void {
    this.#isHeld = false
    this.#heartbeat.remove(this.#leaseHolder)
    this.#owner.onReleased()
  }

  /** A process that has slept for long may still be the only one that wants the session. */
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

  /** Another lease may have come in between, after a rest. */
  #onRenewed(lease: Lease): void {
    if (this.#isHeld && this.#lease.token === lease.token) this.setLease(lease)
  }

  #onRenewalFailed({ token }: Lease, error: unknown): void {
    if (!this.#isHeld || this.#owner.isReleasing() || this.#lease.token !== token) return
    const isOver = readElapsed(this.#clock) - this.#renewedAt >= leaseMs
    const isLost = error instanceof StoreError && error.code === 'lease_lost'
    // While the lease lasts, a store that is away for a moment costs nothing.
    if (isLost || isOver) this.#owner.onLost(error)
  }
}

/** Holds a lease for as long as its run works: a tool may take hours in which the log is not written. */
export interface LeaseHolder {
  getLease(): Lease
  onRenewed(lease: Lease): void
  /** `lease`: the one that could not be renewed; another may be held by now. */
  onFailed(lease: Lease, error: unknown): void
}

/** One heartbeat for all leases that a process holds in a store: with one question, where the store takes one. */
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
    // A lease is no reason for a process to stay.
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
        const kept = byToken.get(lease.token)
        if (kept) holder.onRenewed(kept)
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

/** One for the leases whose time goes by the same clock. */
export const heartbeats = new PerStore((store, clock) => new Heartbeat(store, clock))
