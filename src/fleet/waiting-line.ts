import { type Clock, readElapsed, unrefTimer } from '../core/base/clock.js'
import type { BudgetAmount, SettleOptions } from '../core/budgets/budget-store.js'
import { forgottenMs } from '../core/budgets/ledger.js'

interface Waiter<Asked, Granted> {
  request: Asked
  resolve: (granted: Granted) => void
  reject: (error: unknown) => void
}

/** Poll interval for amounts released by other processes, in milliseconds. Local releases are noticed at once. */
const pollMs = 250

/**
 * A first-come, first-served queue for shares of an amount. Only the first waiter tries, so a large request is not
 * starved.
 */
export class WaitingLine<Asked, Granted> {
  readonly #waiters: Waiter<Asked, Granted>[] = []
  readonly #clock: Clock
  readonly #tryOnce: (request: Asked) => Promise<Granted | null>
  readonly #giveBack: (granted: Granted) => void
  #isServing = false
  #resume: (() => void) | null = null
  #isStale = false

  /**
   * `tryOnce` resolves with the share, or with null if none is available. Rejects if no share can become available.
   */
  constructor(
    clock: Clock,
    tryOnce: (request: Asked) => Promise<Granted | null>,
    giveBack: (granted: Granted) => void,
  ) {
    this.#clock = clock
    this.#tryOnce = tryOnce
    this.#giveBack = giveBack
  }

  /** Resolves with the share. Rejects with the signal's reason when it aborts. */
  async join(request: Asked, signal?: AbortSignal): Promise<Granted> {
    signal?.throwIfAborted()
    if (this.#waiters.length === 0) {
      const granted = await this.#tryOnce(request)
      if (granted !== null) {
        if (!signal?.aborted) return granted
        this.#giveBack(granted)
        throw signal.reason
      }
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        const at = this.#waiters.indexOf(waiter)
        if (at >= 0) this.#waiters.splice(at, 1)
        if (at === 0) this.wake()
        reject(signal?.reason as Error)
      }
      const done = (): void => signal?.removeEventListener('abort', leave)
      const waiter: Waiter<Asked, Granted> = {
        request,
        resolve: (granted) => {
          done()
          resolve(granted)
        },
        reject: (error) => {
          done()
          reject(error as Error)
        },
      }
      if (signal?.aborted) return leave()
      signal?.addEventListener('abort', leave, { once: true })
      this.#waiters.push(waiter)
      void this.#serve()
    })
  }

  /** Wakes the first waiter, because a share was returned. */
  wake(): void {
    this.#isStale = true
    this.#resume?.()
  }

  async #serve(): Promise<void> {
    if (this.#isServing) return
    this.#isServing = true
    for (let first = this.#waiters[0]; first !== undefined; first = this.#waiters[0]) {
      this.#isStale = false
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await this.#serveFirst(first)
    }
    this.#isServing = false
  }

  async #serveFirst(first: Waiter<Asked, Granted>): Promise<void> {
    try {
      const granted = await this.#tryOnce(first.request)
      const isThere = this.#waiters[0] === first
      if (granted === null) {
        if (isThere && !this.#isStale) await this.#pause()
        return
      }
      if (!isThere) return this.#giveBack(granted)
      this.#waiters.shift()
      first.resolve(granted)
    } catch (error) {
      if (this.#waiters[0] === first) this.#waiters.shift()
      first.reject(error)
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const resume = (): void => {
        this.#clock.clearTimeout(timer)
        this.#resume = null
        resolve()
      }
      const timer = this.#clock.setTimeout(resume, pollMs)
      this.#resume = resume
    })
  }
}

type Settlement = Omit<SettleOptions, 'budget'>

export interface LeasesOptions {
  clock: Clock
  leaseMs: number
  renew: (reservations: string[]) => Promise<void>
  settle: (settlement: Settlement) => Promise<void>
}

interface OpenSettlement {
  paid: BudgetAmount
  since: number
}

/**
 * Renews the reservations of this process while their requests are in flight. Failed settlements are reported, then
 * retried without renewal until the store forgets the reservation, because waiting runs would otherwise wait forever.
 */
export class ReservationLeases {
  /** The settlement of each reservation, or null while the request is in flight. */
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

  /** Settles a reservation. Never rejects. `report` receives the error if the store rejects the settlement. */
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
    // The timer must not keep the process alive.
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
      // Reservations that expire in the meantime count as lost until they are settled.
    }
    await Promise.all(
      held.map(async ([reservation, open]) => {
        if (open !== null && this.#held.get(reservation) === open) await this.#trySettle(reservation, open)
      }),
    )
    if (this.#held.size > 0) this.#schedule()
  }
}
