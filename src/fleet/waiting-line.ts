import { CallAbort, onAbort } from '../core/base/abort.js'
import { type Clock, readElapsed } from '../core/base/clock.js'
import type { BudgetAmount, SettleOptions } from '../core/budgets/budget-store.js'
import { forgottenMs } from '../core/budgets/ledger.js'
import { createTicker } from '../core/sessions/store/per-store.js'

/** Poll interval for amounts released by other processes, in milliseconds. Local releases are noticed at once. */
const pollMs = 250

/**
 * A first-come, first-served queue for shares of an amount. Only the first waiter tries, so a large request is not
 * starved. `tryOnce` resolves with null if no share is available, and rejects if none can become available.
 */
export function createWaitingLine<Asked, Granted>(
  clock: Clock,
  tryOnce: (request: Asked) => Promise<Granted | null>,
  giveBack: (granted: Granted) => void,
) {
  let waiting = 0
  /** Settles when the last waiter has left. Each waiter follows the one before. */
  let last: Promise<unknown> = Promise.resolve()
  let resume = (): void => undefined
  let isStale = false

  const pause = (abort: CallAbort): Promise<void> =>
    new Promise((resolve) => {
      resume = () => {
        clock.clearTimeout(timer)
        unfollow()
        resolve()
      }
      const timer = clock.setTimeout(resume, pollMs)
      const unfollow = onAbort(abort, resume)
    })

  const waitForShare = async (request: Asked, abort: CallAbort, before: Promise<unknown>) => {
    await before
    /* oxlint-disable no-await-in-loop -- one attempt after the other */
    while (!abort.aborted) {
      isStale = false
      const granted = await tryOnce(request)
      if (granted !== null) return granted
      if (!isStale && !abort.aborted) await pause(abort)
    }
    /* oxlint-enable no-await-in-loop */
    return null
  }

  const getShare = async (request: Asked, abort: CallAbort): Promise<Granted | null> => {
    const granted = waiting === 0 ? await tryOnce(request) : null
    if (granted !== null) return granted
    waiting += 1
    const share = waitForShare(request, abort, last).finally(() => (waiting -= 1))
    last = share.catch(() => undefined)
    return share
  }

  return {
    /** Resolves with the share. Rejects with the signal's reason when it aborts. */
    join: (request: Asked, signal: AbortSignal | undefined): Promise<Granted> =>
      new Promise((resolve, reject) => {
        signal?.throwIfAborted()
        const abort = new CallAbort()
        const leave = (): void => {
          abort.abort()
          reject(signal?.reason as Error)
        }
        const stop = signal && onAbort(signal, leave)
        getShare(request, abort)
          .finally(stop)
          .then((granted) => {
            // Decided in one step, because a share that nobody receives would stay reserved.
            if (!abort.aborted) return resolve(granted as Granted)
            return granted === null ? undefined : giveBack(granted)
          }, reject)
      }),
    /** Wakes the first waiter, because a share was returned. */
    wake(): void {
      isStale = true
      resume()
    },
  }
}

interface ReservationParts {
  clock: Clock
  leaseMs: number
  renew: (reservations: string[]) => Promise<void>
  settle: (settlement: Omit<SettleOptions, 'budget'>) => Promise<void>
}

interface OpenSettlement {
  paid: BudgetAmount
  since: number
  /** A store that hangs must not collect retries. */
  isRetrying: boolean
}

/**
 * Renews the reservations of this process while their requests are in flight. Failed settlements are reported, then
 * retried without renewal until the store forgets the reservation, because waiting runs would otherwise wait forever.
 */
export function keepReservations({ clock, leaseMs, renew, settle }: ReservationParts) {
  /** The settlement of each reservation, or null while the request is in flight. */
  const held = new Map<string, OpenSettlement | null>()

  const trySettle = async (
    reservation: string,
    { paid, since }: OpenSettlement,
    report: (error: unknown) => void = () => undefined,
  ): Promise<void> => {
    const isForgotten = (): boolean => readElapsed(clock) - since >= forgottenMs
    try {
      await settle({ reservation, ...paid })
      held.delete(reservation)
    } catch (error) {
      if (isForgotten()) held.delete(reservation)
      report(error)
    }
    ticker.stop()
  }

  const beat = async (): Promise<void> => {
    const entries = [...held]
    const working = entries.filter(([, open]) => open === null).map(([reservation]) => reservation)
    try {
      if (working.length > 0) await renew(working)
    } catch {
      // Reservations that expire in the meantime count as lost until they are settled.
    }
    await Promise.all(
      entries.map(async ([reservation, open]) => {
        if (open === null || held.get(reservation) !== open || open.isRetrying) return
        open.isRetrying = true
        await trySettle(reservation, open)
        open.isRetrying = false
      }),
    )
  }

  const ticker = createTicker(clock, {
    getMs: () => leaseMs / 3,
    isNeeded: () => held.size > 0,
    // A call that hangs must not delay the other renewals.
    work: () => void beat(),
  })

  return {
    add(reservation: string): void {
      held.set(reservation, null)
      ticker.start()
    },
    /** Settles a reservation. Never rejects. `report` receives the error if the store rejects the settlement. */
    async settle(reservation: string, paid: BudgetAmount, report: (error: unknown) => void): Promise<void> {
      if (held.get(reservation) !== null) return
      const open = { paid, since: readElapsed(clock), isRetrying: false }
      held.set(reservation, open)
      await trySettle(reservation, open, report)
    },
  }
}
