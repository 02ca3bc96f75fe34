import { type Clock, unrefTimer } from '../../base/clock.js'
import { PerStore } from '../store/per-store.js'
import { leaseLostError } from '../store/store-refusals.js'
import type { Lease, SessionStore } from '../store/store.js'

/** How long a session stays another's when the process that writes to it falls silent, in milliseconds. */
export const leaseMs = 30_000

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
