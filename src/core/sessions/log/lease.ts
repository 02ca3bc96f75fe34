import { type Clock, elapsedOn } from '../../base/clock.js'
import { PerStore } from '../store/per-store.js'
import type { InboxPosition } from '../store/inbox.js'
import type { AcquireOptions, Lease, SessionStore } from '../store/store.js'
import { leaseMs } from './heartbeat.js'

/** When it is tried again to give back what could not be given back, in milliseconds: at first, and at most. */
const [soonest, latest] = [250, 4000]

interface Kept {
  lease: Lease
  /** When it has run out by itself. */
  until: number
}

/**
 * The leases that a process is about to give back, or could not: a store that is away takes no release, either, nor does
 * a full disk. Their sessions would stay in use, by runs that have ended, for as long as the leases last. So it is tried
 * again, until the store is there or the leases are over.
 */
class Leaving {
  readonly #store: SessionStore
  readonly #clock: Clock
  /** By their tokens: of one session there can be several. */
  readonly #kept = new Map<string, Kept>()
  /** Being given back, by their sessions: an answer may come in between. */
  readonly #under = new Map<string, Promise<void>>()
  #timer: unknown
  #waitMs = soonest

  constructor(store: SessionStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  under(sessionId: string): Promise<void> | undefined {
    return this.#under.get(sessionId)
  }

  keep(lease: Lease, until = elapsedOn(this.#clock) + leaseMs): void {
    this.#kept.set(lease.token, { lease, until })
    this.#plan()
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
        .then(onAnswer, () => this.keep(lease, until))
        .finally(() => {
          if (this.#under.get(sessionId) === done) this.#under.delete(sessionId)
        })
      this.#under.set(sessionId, done)
      return done
    } catch {
      this.keep(lease, until)
      return undefined
    }
  }

  /** Tries once more for this session. Undefined when that is done, or there was nothing. */
  releaseKept(sessionId: string): Promise<void> | undefined {
    const own = [...this.#kept.values()].filter(({ lease }) => lease.sessionId === sessionId)
    const left = own.map((kept) => this.#retry(kept)).filter((released) => released !== undefined)
    return left.length === 0 ? undefined : Promise.all(left).then(() => undefined)
  }

  #retry({ lease, until }: Kept): Promise<void> | undefined {
    this.#kept.delete(lease.token)
    return this.release(lease, undefined, until)
  }

  #plan(): void {
    if (this.#timer !== undefined || this.#kept.size === 0) return
    this.#timer = this.#clock.setTimeout(() => void this.#retryAll(), this.#waitMs)
    // No reason for a process to stay.
    ;(this.#timer as { unref?: () => void } | undefined)?.unref?.()
  }

  /** With one first: while the store is away, it is not asked for each of many. */
  async #retryAll(): Promise<void> {
    const now = elapsedOn(this.#clock)
    for (const [token, { until }] of this.#kept) if (until <= now) this.#kept.delete(token)
    const [first, ...others] = this.#kept.values()
    if (first) {
      await this.#retry(first)
      if (this.#kept.has(first.lease.token)) this.#waitMs = Math.min(latest, this.#waitMs * 2)
      else {
        this.#waitMs = soonest
        // Some may have been asked for meanwhile.
        for (const kept of others) if (this.#kept.has(kept.lease.token)) void this.#retry(kept)
      }
    }
    this.#timer = undefined
    this.#plan()
  }
}

const leaving = new PerStore((store, clock) => new Leaving(store, clock))

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
  return leaving.of(store, clock).release(lease, onAnswer)
}

/** A lease that the store may have given, though nobody got its answer: it is given back as soon as the store takes it. */
export function releaseLater(store: SessionStore, lease: Lease, clock: Clock): void {
  leaving.of(store, clock).keep(lease)
}

/** Settles when a session is free that is being given free here; undefined where none is. */
export function beingReleased(store: SessionStore, sessionId: string): Promise<void> | undefined {
  return leaving
    .all(store)
    .map((leases) => leases.under(sessionId))
    .find((under) => under !== undefined)
}

/** `store.acquire`, once what this process still had of the session is given back. */
export function acquireLease(
  store: SessionStore,
  sessionId: string,
  options: AcquireOptions,
): Lease | Promise<Lease> {
  const going = beingReleased(store, sessionId)
  if (going) return going.then(() => acquireLease(store, sessionId, options))
  const left = leaving
    .all(store)
    .map((leases) => leases.releaseKept(sessionId))
    .filter((under) => under !== undefined)
  if (left.length === 0) return store.acquire(sessionId, options)
  return Promise.all(left).then(() => store.acquire(sessionId, options))
}
