import { type Clock, unrefTimer } from '../core/base/clock.js'
import type { BudgetAmount, SettleOptions } from '../core/budgets/budget-store.js'

type Settlement = Omit<SettleOptions, 'budget'>

export interface LeasesOptions {
  clock: Clock
  leaseMs: number
  renew: (reservations: string[]) => Promise<void>
  settle: (settlement: Settlement) => Promise<void>
}

/**
 * The reservations that this process holds. They are renewed while their requests are under way. A settlement that the
 * store does not take is kept, and tried again with the next renewal.
 */
export class ReservationLeases {
  /** Null: under way. */
  readonly #held = new Map<string, BudgetAmount | null>()
  readonly #options: LeasesOptions
  #timer: unknown = null

  constructor(options: LeasesOptions) {
    this.#options = options
  }

  add(reservation: string): void {
    this.#held.set(reservation, null)
    this.#schedule()
  }

  /** Never rejects: what was paid is paid, and an unsettled reservation keeps others from spending it. */
  async settle(reservation: string, paid: BudgetAmount): Promise<void> {
    if (this.#held.get(reservation) !== null) return
    this.#held.set(reservation, paid)
    await this.#trySettle(reservation, paid)
  }

  async #trySettle(reservation: string, paid: BudgetAmount): Promise<void> {
    try {
      await this.#options.settle({ reservation, ...paid })
      this.#held.delete(reservation)
      if (this.#held.size === 0) this.#stop()
    } catch {
      // The store is away: the next renewal tries again.
    }
  }

  #schedule(): void {
    if (this.#timer !== null) return
    const { clock, leaseMs } = this.#options
    this.#timer = clock.setTimeout(() => {
      this.#timer = null
      void this.#renew()
    }, leaseMs / 3)
    // A process that has nothing else to do may end.
    unrefTimer(this.#timer)
  }

  #stop(): void {
    this.#options.clock.clearTimeout(this.#timer)
    this.#timer = null
  }

  async #renew(): Promise<void> {
    const held = [...this.#held]
    try {
      await this.#options.renew(held.map(([reservation]) => reservation))
    } catch {
      // Those that run out meanwhile count as lost until they are settled.
    }
    await Promise.all(
      held.map(async ([reservation, paid]) => {
        if (paid !== null && this.#held.get(reservation) === paid) await this.#trySettle(reservation, paid)
      }),
    )
    if (this.#held.size > 0) this.#schedule()
  }
}
