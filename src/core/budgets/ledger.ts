import type {
  BudgetAllowance,
  BudgetAmount,
  ReserveAnswer,
  ReserveOptions,
  StoredBudget,
} from './budget-store.js'

/** A reservation as stores keep it until it is settled. */
export interface KeptReservation extends BudgetAmount {
  reservation: string
  windowAt: number
  /** Milliseconds since the epoch. */
  expiresAt: number
  /** Whether it is spent since it ran out; null while it is reserved. */
  lost: 'counted' | 'free' | null
}

/** A budget, and its reservations, as they are after a change. */
export interface Ledger {
  row: StoredBudget
  /** Those that have changed or begun. */
  changed: KeptReservation[]
}

const nothing: BudgetAmount = { nanoUsd: 0, tokens: 0 }

/** A reservation that is not settled this long after it ran out never will be. */
export const forgottenMs = 86_400_000

/**
 * Reserves an amount, if it fits. `expired` are the reservations that have run out by now and are reserved still. What
 * is spent and what is reserved never come to more than is allowed, unless something was paid that was not reserved.
 */
export function reserveAmount(
  kept: StoredBudget | null,
  expired: readonly KeptReservation[],
  asked: ReserveOptions,
  now: number,
): Ledger & { answer: ReserveAnswer } {
  const { budget, terms, reservation, ttlMs, countsLost } = asked
  const windowAt = Math.max(asked.windowAt, kept?.windowAt ?? 0)
  const before: StoredBudget =
    kept !== null && kept.windowAt === windowAt
      ? kept
      : { budget, terms: kept?.terms ?? terms, windowAt, spent: nothing, reserved: nothing, live: 0 }
  const lost = expired.filter((one) => one.windowAt === windowAt)
  const freed = lost.reduce(addAmounts, nothing)
  const cleared: StoredBudget = {
    ...before,
    spent: countsLost ? addAmounts(before.spent, freed) : before.spent,
    reserved: takeAmount(before.reserved, freed),
    live: before.live - lost.length,
  }
  const changed = expired.map((one): KeptReservation => ({ ...one, lost: countsLost ? 'counted' : 'free' }))
  const granted = cleared.terms === terms && fitsAllowance(cleared, asked, asked.allowance)
  if (!granted) return { row: cleared, changed, answer: { ...cleared, granted } }
  const { nanoUsd, tokens } = asked
  const row = {
    ...cleared,
    reserved: addAmounts(cleared.reserved, { nanoUsd, tokens }),
    live: cleared.live + 1,
  }
  changed.push({ reservation, windowAt, nanoUsd, tokens, expiresAt: now + ttlMs, lost: null })
  return { row, changed, answer: { ...row, granted } }
}

/** A budget after a reservation of it was settled for what was paid. */
export function settleAmount(row: StoredBudget, kept: KeptReservation, paid: BudgetAmount): StoredBudget {
  if (kept.windowAt !== row.windowAt) return row
  const reserved = kept.lost === null ? takeAmount(row.reserved, kept) : row.reserved
  const spent = kept.lost === 'counted' ? takeAmount(row.spent, kept) : row.spent
  return { ...row, reserved, spent: addAmounts(spent, paid), live: row.live - (kept.lost === null ? 1 : 0) }
}

/** Whether an amount fits beside what is spent and reserved. */
export function fitsAllowance(
  { spent, reserved }: Pick<StoredBudget, 'spent' | 'reserved'>,
  asked: BudgetAmount,
  allowance: BudgetAllowance,
): boolean {
  const fits = (key: keyof BudgetAmount): boolean => {
    const most = allowance[key]
    return most === null || spent[key] + reserved[key] + asked[key] <= most
  }
  return fits('nanoUsd') && fits('tokens')
}

function addAmounts(a: BudgetAmount, b: BudgetAmount): BudgetAmount {
  return { nanoUsd: a.nanoUsd + b.nanoUsd, tokens: a.tokens + b.tokens }
}

function takeAmount(a: BudgetAmount, b: BudgetAmount): BudgetAmount {
  return { nanoUsd: a.nanoUsd - b.nanoUsd, tokens: a.tokens - b.tokens }
}
