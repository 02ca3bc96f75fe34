import { type Clock, elapsedOn } from '../../base/clock.js'
import type { Appended, Lease, SessionStore } from '../store/store.js'
import { StoreError } from '../store/store-error.js'
import { heartbeats, type LeaseHolder, leaseMs } from './heartbeat.js'
import { beingReleased, releaseLease } from './lease.js'

/** What the lease of a session is held for: its log. */
export interface LeaseOwner {
  /** Why nothing is written any more. */
  failure(): StoreError | undefined
  /** Whether a write is under way that gives the session free: the lease may be gone before its answer is here. */
  isLeaving(): boolean
  /** The session is not ours any more. */
  lost(error: unknown): void
  /** The session is ours; `isNew`: it was not until now. */
  held(isNew: boolean): void
  /** Anybody may take the session from now on. */
  letGo(): void
  /** Told what the store says of the inbox when the session is given back. */
  heard(told: Appended | void): void
}

/** The lease of one session: renewed while it is held, given back at a rest, and taken anew after it. */
export class HeldLease {
  readonly #store: SessionStore
  readonly #clock: Clock
  readonly #owner: LeaseOwner
  readonly #heartbeat: ReturnType<typeof heartbeats.of>
  readonly #beats: LeaseHolder
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
    this.#renewedAt = elapsedOn(clock)
    this.#heartbeat = heartbeats.of(store, clock)
    this.#beats = {
      lease: () => this.#lease,
      renewed: (renewed) => this.#renewed(renewed),
      failed: (kept, error) => this.#notRenewed(kept, error),
    }
    this.#heartbeat.add(this.#beats)
  }

  /** The latest. */
  get lease(): Lease {
    return this.#lease
  }

  get isHeld(): boolean {
    return this.#isHeld
  }

  hold(lease: Lease): void {
    this.#lease = lease
    this.#renewedAt = elapsedOn(this.#clock)
    const isNew = !this.#isHeld
    this.#isHeld = true
    this.#owner.held(isNew)
    this.#heartbeat.add(this.#beats)
  }

  /** The session is known to be ours: a lease that may be old is renewed. Undefined while it is fresh. */
  held(): Promise<void> | undefined {
    if (this.#renewing) return this.#renewing
    if (!this.#isHeld || !this.#isOld()) return undefined
    const lease = this.#lease
    try {
      const renewed = this.#store.renew(lease, leaseMs)
      if (renewed instanceof Promise) return (this.#renewing = this.#renewedLater(lease, renewed))
      this.#renewed(renewed)
    } catch (error) {
      this.#notRenewed(lease, error)
    }
    const failure = this.#owner.failure()
    return failure && Promise.reject(failure)
  }

  /** Gives the session back, and waits for that. */
  release(): Promise<void> | undefined {
    if (!this.#isHeld) return beingReleased(this.#store, this.#lease.sessionId)
    this.letGo()
    return releaseLease(this.#store, this.#lease, this.#clock, (told) => this.#owner.heard(told))
  }

  /** The session has been given back. */
  letGo(): void {
    this.#isHeld = false
    this.#heartbeat.remove(this.#beats)
    this.#owner.letGo()
  }

  /** A process that has slept for long may still be the only one that wants the session. */
  #isOld(): boolean {
    return elapsedOn(this.#clock) - this.#renewedAt > leaseMs / 2
  }

  async #renewedLater(lease: Lease, renewed: Promise<Lease>): Promise<void> {
    try {
      this.#renewed(await renewed)
    } catch (error) {
      this.#notRenewed(lease, error)
    } finally {
      this.#renewing = undefined
    }
    const failure = this.#owner.failure()
    if (failure) throw failure
  }

  /** Another lease may have come in between, after a rest. */
  #renewed(lease: Lease): void {
    if (this.#isHeld && this.#lease.token === lease.token) this.hold(lease)
  }

  #notRenewed({ token }: Lease, error: unknown): void {
    if (!this.#isHeld || this.#owner.isLeaving() || this.#lease.token !== token) return
    const isOver = elapsedOn(this.#clock) - this.#renewedAt >= leaseMs
    const isLost = error instanceof StoreError && error.code === 'lease_lost'
    // While the lease lasts, a store that is away for a moment costs nothing.
    if (isLost || isOver) this.#owner.lost(error)
  }
}
