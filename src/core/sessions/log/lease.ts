import { type Clock, createTicker, readElapsed, wait } from '../../base/clock.js'
import { attempt, chain } from '../../base/maybe-promise.js'
import { getPlatform } from '../../base/platform.js'
import { perStore } from '../store/per-store.js'
import type { InboxPosition } from '../store/inbox.js'
import type { AcquireOptions, Lease, SessionStore } from '../store/store.js'
import { isSessionBusy, leaseLostError } from '../store/store-error.js'

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
const releasers = perStore((store, clock) => {
  /** By token, because one session can have several leases. */
  const pending = new Map<string, PendingRelease>()
  /** By session. Another call may arrive before a release completes. */
  const releasing = new Map<string, Promise<void>>()
  let waitMs = soonest

  const retryLater = (lease: Lease, until = readElapsed(clock) + leaseMs): void => {
    pending.set(lease.token, { lease, until })
    ticker.start()
  }

  const release = (
    lease: Lease,
    onAnswer: (answer: InboxPosition | void) => void = () => undefined,
    until?: number,
  ): Promise<void> | undefined => {
    const { sessionId } = lease
    const released = attempt(
      () => chain(store.release(lease), onAnswer),
      () => undefined,
      () => retryLater(lease, until),
    )
    if (!released) return undefined
    const done = released.finally(() => {
      if (releasing.get(sessionId) === done) releasing.delete(sessionId)
    })
    releasing.set(sessionId, done)
    return done
  }

  const retry = ({ lease, until }: PendingRelease): Promise<void> | undefined => {
    pending.delete(lease.token)
    return release(lease, undefined, until)
  }

  /** Tries a single release first, so that an unavailable store receives one request instead of many. */
  const retryAll = async (): Promise<void> => {
    const now = readElapsed(clock)
    for (const [token, { until }] of pending) if (until <= now) pending.delete(token)
    const [first, ...others] = pending.values()
    if (!first) return
    await retry(first)
    const hasFailed = pending.has(first.lease.token)
    waitMs = hasFailed ? Math.min(latest, waitMs * 2) : soonest
    // Some leases may have been released in the meantime.
    if (!hasFailed) for (const entry of others) if (pending.has(entry.lease.token)) void retry(entry)
  }

  const ticker = createTicker(clock, {
    getMs: () => waitMs,
    isNeeded: () => pending.size > 0,
    work: retryAll,
  })
  return {
    getRelease: (sessionId: string) => releasing.get(sessionId),
    release,
    retryLater,
    /** Retries the releases of this session. Returns those that do not complete synchronously. */
    releasePending: (sessionId: string): Promise<void>[] =>
      [...pending.values()]
        .filter(({ lease }) => lease.sessionId === sessionId)
        .map(retry)
        .filter((released) => released !== undefined),
  }
})

/** Never fails: a failed release is retried later, or when this process acquires the session. */
export function releaseLease(
  store: SessionStore,
  lease: Lease,
  clock: Clock,
  onAnswer?: (answer: InboxPosition | void) => void,
): Promise<void> | undefined {
  return releasers.get(store, clock).release(lease, onAnswer)
}

/** Releases a lease that the store may have granted although its response was lost. */
export function releaseLater(store: SessionStore, lease: Lease, clock: Clock): void {
  releasers.get(store, clock).retryLater(lease)
}

export function findRelease(store: SessionStore, sessionId: string): Promise<void> | undefined {
  return releasers
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
  const left = releasers.list(store).flatMap((leases) => leases.releasePending(sessionId))
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
  return attempt(
    () => acquireLease(store, sessionId, options),
    (lease) => lease,
    retryWhileBusy,
  )

  async function retryWhileBusy(refusal: unknown): Promise<Lease> {
    let last = refusal
    for (const ms of pauses) {
      if (!isSessionBusy(last)) break
      await (ms === 0 ? new Promise<void>((resolve) => getPlatform().runNextTurn(resolve)) : wait(clock, ms))
      const listed = await store.get(sessionId)
      if (listed !== null && listed.head > head) break
      try {
        return await acquireLease(store, sessionId, options)
      } catch (error) {
        last = error
      }
    }
    throw last
  }
}

export interface HeartbeatMember {
  getLease: () => Lease
  onRenewed: (lease: Lease) => void
  onRenewalFailed: (lease: Lease, error: unknown) => void
}

/** Renews all leases of this process, because a tool may run for hours without a write to the log. */
export const heartbeats = perStore((store, clock) => {
  const members = new Set<HeartbeatMember>()
  const renewAll = async (): Promise<void> => {
    const held = Array.from(members, (member) => ({ member, lease: member.getLease() }))
    const renewTogether = async (): Promise<Map<string, Lease> | undefined> => {
      const renewed = await store.renewAll?.(
        held.map(({ lease }) => lease),
        leaseMs,
      )
      return renewed && new Map(renewed.map((lease) => [lease.token, lease]))
    }
    const together = renewTogether()
    const renew = async (lease: Lease): Promise<Lease> => {
      const all = await together
      if (!all) return store.renew(lease, leaseMs)
      const kept = all.get(lease.token)
      if (kept) return kept
      throw leaseLostError(lease)
    }
    await Promise.all(
      held.map(({ member, lease }) =>
        renew(lease).then(member.onRenewed, (error: unknown) => member.onRenewalFailed(lease, error)),
      ),
    )
  }
  const ticker = createTicker(clock, {
    getMs: () => leaseMs / 3,
    isNeeded: () => members.size > 0,
    work: () => void renewAll(),
  })
  return {
    add(member: HeartbeatMember): void {
      members.add(member)
      ticker.start()
    },
    remove(member: HeartbeatMember): void {
      members.delete(member)
      ticker.stop()
    },
  }
})
