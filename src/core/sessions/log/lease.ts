import { type Clock, readElapsed, unrefTimer, wait } from '../../base/clock.js'
import { getPlatform } from '../../base/platform.js'
import { PerStore } from '../store/per-store.js'
import type { InboxPosition } from '../store/inbox.js'
import type { AcquireOptions, Lease, SessionStore, Appended } from '../store/store.js'
import { StoreError, leaseLostError } from '../store/store-error.js'

/** How long a session stays locked after the process that writes to it stops responding, in milliseconds. */
export const leaseMs = 30_000

/** According to the store's clock. */
export const getAcquiredAt = ({ expiresAt }: Lease): number => expiresAt - leaseMs

/** The shortest and longest delay before a failed release is retried, in milliseconds. */
const [soonest, latest] = [250, 4000]

interface PendingRelease {
  lease: Lease
  until: number
}

/** Retries failed releases, because sessions would otherwise stay locked until their leases expire. */
class LeaseReleaser {
  readonly #store: SessionStore
  readonly #clock: Clock
  /** By token, because one session can have several leases. */
  readonly #pending = new Map<string, PendingRelease>()
  /** By session. Another call may arrive before a release completes. */
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

  /** Retries the releases of this session. Returns those that do not complete synchronously. */
  releasePending(sessionId: string): Promise<void>[] {
    const own = [...this.#pending.values()].filter(({ lease }) => lease.sessionId === sessionId)
    return own.map((entry) => this.#retry(entry)).filter((released) => released !== undefined)
  }

  #retry({ lease, until }: PendingRelease): Promise<void> | undefined {
    this.#pending.delete(lease.token)
    return this.release(lease, undefined, until)
  }

  #scheduleRetry(): void {
    if (this.#timer !== undefined || this.#pending.size === 0) return
    this.#timer = this.#clock.setTimeout(() => void this.#retryAll(), this.#waitMs)
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

/** Never fails: a failed release is retried later, or when this process acquires the session. */
export function releaseLease(
  store: SessionStore,
  lease: Lease,
  clock: Clock,
  onAnswer?: (answer: InboxPosition | void) => void,
): Promise<void> | undefined {
  return leaseReleasers.get(store, clock).release(lease, onAnswer)
}

/** Releases a lease that the store may have granted although its response was lost. */
export function releaseLater(store: SessionStore, lease: Lease, clock: Clock): void {
  leaseReleasers.get(store, clock).retryLater(lease)
}

function findRelease(store: SessionStore, sessionId: string): Promise<void> | undefined {
  return leaseReleasers
    .list(store)
    .map((leases) => leases.getRelease(sessionId))
    .find((under) => under !== undefined)
}

/** Acquires a session once this process has released its earlier leases of it. */
export function acquireLease(
  store: SessionStore,
  sessionId: string,
  options: AcquireOptions,
): Lease | Promise<Lease> {
  const going = findRelease(store, sessionId)
  if (going) return going.then(() => acquireLease(store, sessionId, options))
  const left = leaseReleasers.list(store).flatMap((leases) => leases.releasePending(sessionId))
  if (left.length === 0) return store.acquire(sessionId, options)
  return Promise.all(left).then(() => store.acquire(sessionId, options))
}

/** Delays before the attempts to reacquire a session, in milliseconds. 0 yields to other tasks. */
const pauses = [0, 20, 60, 140, 280, 500, 1000]

/** Reacquires a session after record `head`. Retries while another process holds it briefly without continuing it. */
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

interface LeaseOwner {
  getFailure(): StoreError | undefined
  /** While a write that releases the session is in progress, the lease may be gone before the response arrives. */
  isReleasing(): boolean
  onLost(error: unknown): void
  /** `isNew`: the lease was just acquired. */
  onHeld(isNew: boolean): void
  onReleased(): void
  /** Receives the inbox position that the release returns. */
  onInboxAnswer(answer: Appended | void): void
}

/** The lease of one session: renewed while held, released when the session becomes idle, reacquired to continue. */
export class HeldLease {
  readonly #store: SessionStore
  readonly #clock: Clock
  readonly #owner: LeaseOwner
  readonly #heartbeat: Heartbeat
  /** The latest lease. */
  lease: Lease
  isHeld = true
  /** The time when the lease was last renewed for the full `leaseMs`. */
  #renewedAt: number
  /** A renewal before a write or a call. */
  #renewing: Promise<void> | undefined

  constructor(store: SessionStore, clock: Clock, lease: Lease, owner: LeaseOwner) {
    this.#store = store
    this.#clock = clock
    this.#owner = owner
    this.lease = lease
    this.#renewedAt = readElapsed(clock)
    this.#heartbeat = heartbeats.get(store, clock)
    this.#heartbeat.add(this)
  }

  setLease(lease: Lease): void {
    this.lease = lease
    this.#renewedAt = readElapsed(this.#clock)
    const isNew = !this.isHeld
    this.isHeld = true
    this.#owner.onHeld(isNew)
    this.#heartbeat.add(this)
  }

  /** Confirms the lease, with the store if it may be stale. Returns undefined while it is fresh. */
  ensureHeld(): Promise<void> | undefined {
    if (this.#renewing) return this.#renewing
    // After a long suspension, this process may still be the only one that wants the session.
    const mayBeStale = readElapsed(this.#clock) - this.#renewedAt > leaseMs / 2
    return this.isHeld && mayBeStale ? this.#renew() : undefined
  }

  /** Confirms the lease with the store, regardless of its age. */
  confirmHeld(): Promise<void> | undefined {
    if (this.#renewing) return this.#renewing.then(() => this.confirmHeld())
    return this.isHeld ? this.#renew() : Promise.reject(leaseLostError(this.lease))
  }

  #renew(): Promise<void> | undefined {
    const { lease } = this
    try {
      const renewed = this.#store.renew(lease, leaseMs)
      if (renewed instanceof Promise) return (this.#renewing = this.#finishRenewal(lease, renewed))
      this.onRenewed(renewed)
    } catch (error) {
      this.onRenewalFailed(lease, error)
    }
    const failure = this.#owner.getFailure()
    return failure && Promise.reject(failure)
  }

  release(): Promise<void> | undefined {
    if (!this.isHeld) return findRelease(this.#store, this.lease.sessionId)
    this.markReleased()
    return releaseLease(this.#store, this.lease, this.#clock, (answer) => this.#owner.onInboxAnswer(answer))
  }

  markReleased(): void {
    this.isHeld = false
    this.#heartbeat.remove(this)
    this.#owner.onReleased()
  }

  async #finishRenewal(lease: Lease, renewed: Promise<Lease>): Promise<void> {
    try {
      this.onRenewed(await renewed)
    } catch (error) {
      this.onRenewalFailed(lease, error)
    } finally {
      this.#renewing = undefined
    }
    const failure = this.#owner.getFailure()
    if (failure) throw failure
  }

  /** Ignores the renewal of an earlier lease, because a new one may have been acquired after a rest. */
  onRenewed(lease: Lease): void {
    if (this.isHeld && this.lease.token === lease.token) this.setLease(lease)
  }

  /** In the meantime, a different lease may have been acquired. */
  onRenewalFailed({ token }: Lease, error: unknown): void {
    if (!this.isHeld || this.#owner.isReleasing() || this.lease.token !== token) return
    const isOver = readElapsed(this.#clock) - this.#renewedAt >= leaseMs
    const isLost = error instanceof StoreError && error.code === 'lease_lost'
    // A short outage of the store is harmless as long as the lease is valid.
    if (isLost || isOver) this.#owner.onLost(error)
  }
}

/** Renews all leases of this process, because a tool may run for hours without a write to the log. */
class Heartbeat {
  readonly #store: SessionStore
  readonly #clock: Clock
  readonly #holders = new Set<HeldLease>()
  #timer: unknown

  constructor(store: SessionStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  add(holder: HeldLease): void {
    this.#holders.add(holder)
    this.#scheduleBeat()
  }

  remove(holder: HeldLease): void {
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
    const held = Array.from(this.#holders, (holder) => ({ holder, lease: holder.lease }))
    if (!this.#store.renewAll) {
      const renew = async ({ holder, lease }: (typeof held)[number]): Promise<void> => {
        try {
          holder.onRenewed(await this.#store.renew(lease, leaseMs))
        } catch (error) {
          holder.onRenewalFailed(lease, error)
        }
      }
      await Promise.all(held.map(renew))
      return
    }
    try {
      const leases = held.map(({ lease }) => lease)
      const renewed = await this.#store.renewAll(leases, leaseMs)
      const byToken = new Map(renewed.map((lease) => [lease.token, lease]))
      for (const { holder, lease } of held) {
        const kept = byToken.get(lease.token)
        if (kept) holder.onRenewed(kept)
        else holder.onRenewalFailed(lease, leaseLostError(lease))
      }
    } catch (error) {
      for (const { holder, lease } of held) holder.onRenewalFailed(lease, error)
    }
  }
}

const heartbeats = new PerStore((store, clock) => new Heartbeat(store, clock))
