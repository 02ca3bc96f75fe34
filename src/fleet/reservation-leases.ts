import { type Clock, readElapsed, unrefTimer } from '../core/base/clock.js'
import type { BudgetAmount, SettleOptions } from '../core/budgets/budget-store.js'
import { forgottenMs } from '../core/budgets/ledger.js'

type Settlement = Omit<SettleOptions, 'budget'>

export interface LeasesOptions {
  clock: Clock
  leaseMs: number
  renew: (reservations: string[]) => Promise<void>
  settle: (settlement: Settlement) => Promise<void>
}

/** A settlement that the store has not taken yet. */
interface OpenSettlement {
  paid: BudgetAmount
  since: number
}

/**
 * The reservations that this process holds. They are renewed while their requests are under way. A settlement that the store
 * does not take is reported and tried again, until stores forget such reservations. It is not renewed: waiting runs would wait
 * for it for ever.
 */
export class ReservationLeases {
  /** Null: under way. */
  readonly #held = new Map<string, OpenSettlement | null>()
  readonly #options: LeasesOptions
  #timer: unknown = null

  constructor(options: LeasesOptions) {
    this.#options = options
  }

  add(reservation: string): void {
    this.#held.set(reservation, null)
    this.#schedule()
  }

  /** Never rejects. `report` gets the error of a store that does not take the settlement. */
  async settle(reservation: string, paid: BudgetAmount, report: (error: unknown) => void): Promise<void> {
    if (this.#held.get(reservation) !== null) return
    const open = { paid, since: readElapsed(this.#options.clock) }
    this.#held.set(reservation, open)
    const failure = await this.#trySettle(reservation, open)
    if (failure) report(failure.error)
  }

  async #trySettle(
    reservation: string,
    { paid, since }: OpenSettlement,
  ): Promise<{ error: unknown } | undefined> {
    let failure: { error: unknown } | undefined
    try {
      await this.#options.settle({ reservation, ...paid })
    } catch (error) {
      failure = { error }
    }
    if (!failure || readElapsed(this.#options.clock) - since >= forgottenMs) this.#held.delete(reservation)
    if (this.#held.size === 0) this.#stop()
    return failure
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
    const working = held.filter(([, open]) => open === null).map(([reservation]) => reservation)
    try {
      if (working.length > 0) await this.#options.renew(working)
    } catch {
      // Those that run out meanwhile count as lost until they are settled.
    }
    await Promise.all(
      held.map(async ([reservation, open]) => {
        if (open !== null && this.#held.get(reservation) === open) await this.#trySettle(reservation, open)
      }),
    )
    if (this.#held.size > 0) this.#schedule()
  }
}
