import { limitTotal } from '../base/values.js'
import type {
  BudgetAllowance,
  BudgetAmount,
  ReserveAnswer,
  ReserveOptions,
  StoredBudget,
} from './budget-store.js'

/** A reservation, as stored until it is settled. */
export interface KeptReservation extends BudgetAmount {
  reservation: string
  windowAt: number
  /** Milliseconds since the epoch. */
  expiresAt: number
  /** How the amount counts after the reservation's expiry. Null while the amount is reserved. */
  lost: 'counted' | 'free' | null
}

export type BudgetRecord = Omit<StoredBudget, 'now'>

export interface Ledger {
  row: BudgetRecord
  changed: KeptReservation[]
}

const nothing: BudgetAmount = { nanoUsd: 0, tokens: 0 }

type Window = Pick<ReserveOptions, 'windowAt' | 'windowEndsAt'>

/** Whether a time on the store's clock is in the requested window. */
export function isInWindow(now: number, { windowAt, windowEndsAt }: Window): boolean {
  return now >= windowAt && (windowEndsAt === null || now < windowEndsAt)
}

/** A reservation that is not settled within this time after its expiry will never be settled. */
export const forgottenMs = 86_400_000

/**
 * Reserves an amount if it fits. `expired` lists the expired reservations that still count as reserved. The sum of
 * spent and reserved amounts never exceeds the allowance, unless more was paid than reserved.
 */
export function reserveAmount(
  stored: BudgetRecord | null,
  expired: readonly KeptReservation[],
  options: ReserveOptions,
  now: number,
): Ledger & { answer: ReserveAnswer } {
  const { budget, terms, reservation, ttlMs, countsLost, windowAt } = options
  const whole = {
    budget,
    terms: stored?.terms ?? terms,
    windowAt,
    spent: nothing,
    reserved: nothing,
    live: 0,
  }
  const before = stored === null ? whole : enterWindow(stored, whole)
  const lost = expired.filter((one) => one.windowAt === windowAt)
  const freed = lost.reduce(addAmounts, nothing)
  const cleared: BudgetRecord = {
    ...before,
    spent: countsLost ? addAmounts(before.spent, freed) : before.spent,
    reserved: takeAmount(before.reserved, freed),
    live: before.live - lost.length,
  }
  const changed = expired.map((one): KeptReservation => ({ ...one, lost: countsLost ? 'counted' : 'free' }))
  const granted = cleared.terms === terms && fitsAllowance(cleared, options, options.allowance)
  if (!granted) return { row: cleared, changed, answer: { ...cleared, now, granted } }
  const { nanoUsd, tokens } = options
  const row = {
    ...cleared,
    reserved: addAmounts(cleared.reserved, { nanoUsd, tokens }),
    live: cleared.live + 1,
  }
  changed.push({ reservation, windowAt, nanoUsd, tokens, expiresAt: now + ttlMs, lost: null })
  return { row, changed, answer: { ...row, now, granted } }
}

/** The response if the store's clock is outside the requested window. */
export function refuseWindow(
  stored: BudgetRecord | null,
  options: ReserveOptions,
  now: number,
): ReserveAnswer {
  const { budget, terms, windowAt } = options
  const none = { budget, terms, windowAt, spent: nothing, reserved: nothing, live: 0 }
  return { ...(stored ?? none), now, granted: false }
}

/**
 * Returns the budget in the current window. A window in the future was opened by a wrong clock, so the spending in that
 * window counts in the current window.
 */
function enterWindow(stored: BudgetRecord, whole: BudgetRecord): BudgetRecord {
  if (stored.windowAt <= whole.windowAt) return stored.windowAt === whole.windowAt ? stored : whole
  return { ...whole, spent: addAmounts(stored.spent, stored.reserved) }
}

/** Returns the budget after the settlement of a reservation. */
export function settleAmount(
  row: BudgetRecord,
  reservation: KeptReservation,
  paid: BudgetAmount,
): BudgetRecord {
  if (reservation.windowAt !== row.windowAt) return row
  const reserved = reservation.lost === null ? takeAmount(row.reserved, reservation) : row.reserved
  const spent = reservation.lost === 'counted' ? takeAmount(row.spent, reservation) : row.spent
  return {
    ...row,
    reserved,
    spent: addAmounts(spent, paid),
    live: row.live - (reservation.lost === null ? 1 : 0),
  }
}

/** Whether an amount fits in the allowance in addition to the spent and reserved amounts. */
function fitsAllowance(
  { spent, reserved }: Pick<BudgetRecord, 'spent' | 'reserved'>,
  amount: BudgetAmount,
  allowance: BudgetAllowance,
): boolean {
  const fits = (key: keyof BudgetAmount): boolean => {
    const most = allowance[key]
    return most === null || spent[key] + reserved[key] + amount[key] <= most
  }
  return fits('nanoUsd') && fits('tokens')
}

function addAmounts(a: BudgetAmount, b: BudgetAmount): BudgetAmount {
  return { nanoUsd: limitTotal(a.nanoUsd + b.nanoUsd), tokens: limitTotal(a.tokens + b.tokens) }
}

function takeAmount(a: BudgetAmount, b: BudgetAmount): BudgetAmount {
  return { nanoUsd: limitTotal(a.nanoUsd - b.nanoUsd), tokens: limitTotal(a.tokens - b.tokens) }
}
