import { describeError, listCauses } from '../base/errors.js'
import { BudgetError, type BudgetReservation, type SharedAmount, type SharedBudget } from './shared-budget.js'
import { warnProcess } from '../base/platform.js'
import { readProperty } from '../base/json.js'

/** The worst case of one request, for one budget. */
interface WorstAmount {
  /** Null: the price is not known. */
  usd: number | null
  tokens: number
}

/** What a request holds of one budget. */
export interface HeldAmount extends WorstAmount {
  /** Never rejects. */
  settle: (paid: SharedAmount) => Promise<void>
}

/** Budgets by their ids. @throws {BudgetError} `budget_conflict` for two of one id in different stores */
export function indexBudgets(budgets: readonly SharedBudget[]): Map<string, SharedBudget> {
  const byId = new Map<string, SharedBudget>()
  for (const budget of budgets) {
    const { id, store } = byId.get(budget.id) ?? budget
    if (store && budget.store && store !== budget.store) {
      throw new BudgetError(
        'budget_conflict',
        `Two budgets of one request have the id '${id}' and different stores. Give them one store object, or different ids.`,
        id,
      )
    }
    if (!byId.has(id)) byId.set(id, budget)
  }
  return byId
}

/**
 * Reserves for one request in all budgets, or in none; in the order of their ids: two requests that wait for each other would wait for
 * ever. A budget that is there twice is asked once. Rejects with what `getAmount` or the first budget that refuses rejects with.
 */
export async function reserveInAll(
  budgets: readonly SharedBudget[],
  getAmount: (budget: SharedBudget) => Promise<WorstAmount>,
  signal: AbortSignal,
  onUnsettled: (message: string) => void = warnUnsettled,
): Promise<HeldAmount[]> {
  const held: HeldAmount[] = []
  const byId = indexBudgets(budgets)
  try {
    /* oxlint-disable no-await-in-loop -- in the order of their ids */
    for (const budget of [...byId.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
      const amount = await getAmount(budget)
      const reservation = await budget.reserve(amount, { signal, onUnsettled })
      held.push({ ...amount, settle: (paid) => settleOrReport(budget.id, reservation, paid, onUnsettled) })
    }
    /* oxlint-enable no-await-in-loop */
    return held
  } catch (error) {
    // What cannot be given back runs out by itself, and the refusal is what counts.
    await Promise.all(held.map(({ settle }) => settle({ usd: 0, tokens: 0 })))
    throw error
  }
}

/** The answer was paid for, whatever a budget of the app's own does now. */
async function settleOrReport(
  id: string,
  reservation: BudgetReservation,
  paid: SharedAmount,
  report: (message: string) => void,
): Promise<void> {
  try {
    await reservation.settle(paid)
  } catch (error) {
    report(`The budget '${id}' did not take a settlement: ${describeError(error)}`)
  }
}

/** The code of the warning about a settlement that a store did not take. */
export const unsettledCode = 'budget_unsettled'

export function warnUnsettled(message: string): void {
  warnProcess(message, unsettledCode)
}

/** How far the input of requests to a model has been above the estimate, at most: by so many times, and so many tokens more. */
interface Excess {
  times: number
  tokens: number
}

/** Estimates are this much too low at first; what models report corrects it. */
const firstExcess: Excess = { times: 1.1, tokens: 0 }

/** Below so many tokens, what a provider adds to every request weighs more than how it counts text. */
const shortTokens = 500

/** The most that is learned: a multiple of the estimate, and the tokens that a provider adds to each request. */
const [mostTimes, mostAdded] = [8, 20_000]

/** By the model, as `PROVIDER/MODEL`. */
const excesses = new Map<string, Excess>()

/** The most input that a request may have, by its estimate: with a margin, and not below what the model has counted before. */
export function addInputMargin(model: string, estimated: number): number {
  const { times, tokens } = excesses.get(model) ?? firstExcess
  return Math.ceil(estimated * times + tokens)
}

/** A model counted the input of a request: the next worst case is not below that. */
export function learnInputCount(model: string, estimated: number, counted: number): void {
  const { times, tokens } = excesses.get(model) ?? firstExcess
  // One report that is far too high must not make every later request too expensive.
  const learned = Math.min(counted, estimated * mostTimes + mostAdded)
  if (learned <= estimated * times + tokens) return
  const next =
    estimated < shortTokens
      ? { times, tokens: Math.ceil(learned - estimated * times) }
      : { times: (learned - tokens) / estimated, tokens }
  excesses.set(model, next)
}

/** Errors of connections that were never there. */
const unreached = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ENETUNREACH', 'EHOSTUNREACH'])

/** Whether a failed request has cost nothing: an answer with a status is a refusal, and what was never sent is not paid for. */
export function isUnpaid(status: number | null, error: unknown): boolean {
  return (
    status !== null || listCauses(error).some((cause) => unreached.has(String(readProperty(cause, 'code'))))
  )
}
