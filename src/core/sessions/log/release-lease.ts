import { type Clock, readElapsed, unrefTimer, wait } from '../../base/clock.js'
import { getPlatform } from '../../base/platform.js'
import { PerStore } from '../store/per-store.js'
import type { InboxPosition } from '../store/inbox.js'
import type { AcquireOptions, Lease, SessionStore } from '../store/store.js'
import { StoreError } from '../store/store-error.js'

/** How long a session stays another's when the process that writes to it falls silent, in milliseconds. */
export const leaseMs = 30_000

/** When it is tried again to give back what could not be given back, in milliseconds: at first, and at most. */
const [soonest, latest] = [250, 4000]

interface PendingRelease {
  lease: Lease
  /** When it has run out by itself. */
  until: number
}

/**
 * The leases that a process is about to give back, or could not: a store that is away takes no release, either, nor does
 * a full disk. Their sessions would stay in use, by runs that have ended, for as long as the leases last. So it is tried
 * again, until the store is there or the leases are over.
 */
class LeaseReleaser {
  readonly #store: SessionStore
  readonly #clock: Clock
  /** By their tokens: of one session there can be several. */
  readonly #pending = new Map<string, PendingRelease>()
  /** Being given back, by their sessions: an answer may come in between. */
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
    onAnswer: (told: InboxPosition | void) => void = () => undefined,
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

  /** Tries once more for this session. Undefined when that is done, or there was nothing. */
  releasePending(sessionId: string): Promise<void> | undefined {
    const own = [...this.#pending.values()].filter(({ lease }) => lease.sessionId === sessionId)
    const left = own.map((kept) => this.#retry(kept)).filter((released) => released !== undefined)
    return left.length === 0 ? undefined : Promise.all(left).then(() => undefined)
  }

  #retry({ lease, until }: PendingRelease): Promise<void> | undefined {
    this.#pending.delete(lease.token)
    return this.release(lease, undefined, until)
  }

  #scheduleRetry(): void {
    if (this.#timer !== undefined || this.#pending.size === 0) return
    this.#timer = this.#clock.setTimeout(() => void this.#retryAll(), this.#waitMs)
    // No reason for a process to stay.
    unrefTimer(this.#timer)
  }

  /** With one first: while the store is away, it is not asked for each of many. */
  async #retryAll(): Promise<void> {
    const now = readElapsed(this.#clock)
    for (const [token, { until }] of this.#pending) if (until <= now) this.#pending.delete(token)
    const [first, ...others] = this.#pending.values()
    if (first) {
      await this.#retry(first)
      if (this.#pending.has(first.lease.token)) this.#waitMs = Math.min(latest, this.#waitMs * 2)
      else {
        this.#waitMs = soonest
        // Some may have been asked for meanwhile.
        for (const kept of others) if (this.#pending.has(kept.lease.token)) void this.#retry(kept)
      }
    }
    this.#timer = undefined
    this.#scheduleRetry()
  }
}

const leaseReleasers = new PerStore((store, clock) => new LeaseReleaser(store, clock))

/**
 * Gives a session free; `onAnswer` is told what the store says to that. Never fails: what cannot be given back now is as
 * soon as the store takes it, or when this process asks for the session again.
 */
export function releaseLease(
  store: SessionStore,
  lease: Lease,
  clock: Clock,
  onAnswer?: (told: InboxPosition | void) => void,
): Promise<void> | undefined {
  return leaseReleasers.get(store, clock).release(lease, onAnswer)
}

/** A lease that the store may have granted although its answer was lost: it is released as soon as the store accepts that. */
export function releaseLater(store: SessionStore, lease: Lease, clock: Clock): void {
  leaseReleasers.get(store, clock).retryLater(lease)
}

/** Settles when a session is free that is being given free here; undefined where none is. */
export function findRelease(store: SessionStore, sessionId: string): Promise<void> | undefined {
  return leaseReleasers
    .list(store)
    .map((leases) => leases.getRelease(sessionId))
    .find((under) => under !== undefined)
}

/** `store.acquire`, once what this process still had of the session is given back. */
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

/** How long a run waits before it asks for its session once more, in milliseconds; 0: until others have had their turn. */
const pauses = [0, 20, 60, 140, 280, 500, 1000]

/**
 * The same for a run that goes on from its rest, at a record `head`. Another one may hold the session only for a moment: until it is
 * refused because of this run, or has left a message. So the session is asked for a few times, unless the other one goes on in it.
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
    /* oxlint-disable no-await-in-loop -- one try after the other */
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
