import { limitTotal } from '../base/values.js'
import type {
  BudgetAllowance,
  BudgetAmount,
  ReserveAnswer,
  ReserveOptions,
  StoredBudget,
} from './budget-store.js'

export interface KeptReservation extends BudgetAmount {
  reservation: string
  windowAt: number
  /** Milliseconds since the epoch. */
  expiresAt: number
  /** How the amount counts after the reservation's expiry. Null while the amount is reserved. */
  lost: 'counted' | 'free' | null
}

export type BudgetRecord = Omit<StoredBudget, 'now'>

export const nothing: BudgetAmount = { nanoUsd: 0, tokens: 0 }

type Window = Pick<ReserveOptions, 'windowAt' | 'windowEndsAt'>

export function isInWindow(now: number, { windowAt, windowEndsAt }: Window): boolean {
  return now >= windowAt && (windowEndsAt === null || now < windowEndsAt)
}

/** A reservation that is not settled within this time after its expiry will never be settled. */
export const forgottenMs = 86_400_000

/**
 * Reserves an amount if it fits. `expired` are the expired reservations that still count as reserved. Spent and
 * reserved amounts never exceed the allowance together, unless more was paid than reserved. `postgresStore` has the
 * same rules in SQL, so that one statement reserves.
 */
export function reserveAmount(
  stored: BudgetRecord | null,
  expired: readonly KeptReservation[],
  options: ReserveOptions,
  now: number,
): { row: BudgetRecord; changed: KeptReservation[]; answer: ReserveAnswer } {
  const { terms, reservation, ttlMs, countsLost, windowAt } = options
  const before = enterWindow(stored, options)
  const lost = expired.filter((one) => one.windowAt === windowAt)
  const freed = lost.reduce((sum, one) => addAmounts(sum, one), nothing)
  const cleared: BudgetRecord = {
    ...before,
    spent: countsLost ? addAmounts(before.spent, freed) : before.spent,
    reserved: addAmounts(before.reserved, freed, -1),
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

export function refuseWindow(
  stored: BudgetRecord | null,
  options: ReserveOptions,
  now: number,
): ReserveAnswer {
  return { ...(stored ?? openWindow(options)), now, granted: false }
}

const openWindow = ({ budget, terms, windowAt }: ReserveOptions): BudgetRecord => ({
  budget,
  terms,
  windowAt,
  spent: nothing,
  reserved: nothing,
  live: 0,
})

/** Spending in a window of the future, which a wrong clock opened, counts in the current one. */
function enterWindow(stored: BudgetRecord | null, options: ReserveOptions): BudgetRecord {
  if (stored === null) return openWindow(options)
  if (stored.windowAt === options.windowAt) return stored
  const whole = { ...openWindow(options), terms: stored.terms }
  if (stored.windowAt < options.windowAt) return whole
  return { ...whole, spent: addAmounts(stored.spent, stored.reserved) }
}

export function settleAmount(
  row: BudgetRecord,
  reservation: KeptReservation,
  paid: BudgetAmount,
): BudgetRecord {
  const { windowAt, lost } = reservation
  if (windowAt !== row.windowAt) return row
  const spent = lost === 'counted' ? addAmounts(row.spent, reservation, -1) : row.spent
  const settled = { ...row, spent: addAmounts(spent, paid) }
  if (lost !== null) return settled
  return { ...settled, reserved: addAmounts(row.reserved, reservation, -1), live: row.live - 1 }
}

export function fitsAllowance(
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

function addAmounts(a: BudgetAmount, b: BudgetAmount, sign: 1 | -1 = 1): BudgetAmount {
  return {
    nanoUsd: limitTotal(a.nanoUsd + sign * b.nanoUsd),
    tokens: limitTotal(a.tokens + sign * b.tokens),
  }
}
