import { describeError, listCauses } from '../base/errors.js'
import { BudgetError, type SharedAmount, type SharedBudget } from './shared-budget.js'
import { warnProcess } from '../base/platform.js'
import { readPath, readProperty } from '../base/json.js'

interface WorstAmount {
  /** The cost in USD. Null if the price is unknown. */
  usd: number | null
  tokens: number
}

export interface HeldAmount extends WorstAmount {
  /** Never rejects. */
  settle: (paid: SharedAmount) => Promise<void>
}

/** @throws {BudgetError} `budget_conflict` for two budgets with the same id in different stores */
export function indexBudgets(budgets: readonly SharedBudget[]): Map<string, SharedBudget> {
  const byId = new Map<string, SharedBudget>()
  for (const budget of budgets) {
    const { id, store } = byId.get(budget.id) ?? budget
    if (store && budget.store && store !== budget.store) {
      const message = `Two budgets for one request have the id '${id}' but different stores. Use one store object, or different ids.`
      throw new BudgetError('budget_conflict', message, id)
    }
    if (!byId.has(id)) byId.set(id, budget)
  }
  return byId
}

/**
 * Reserves for one request in all budgets or in none, in id order, so that two requests cannot deadlock. A budget
 * that occurs twice is reserved once. Rejects with the error of `getAmount` or of the first refusal.
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
    // Budgets are reserved in id order.
    for (const budget of [...byId.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
      const amount = await getAmount(budget)
      const reservation = await budget.reserve(amount, { signal, onUnsettled })
      const settle = async (paid: SharedAmount): Promise<void> => {
        try {
          await reservation.settle(paid)
        } catch (error) {
          // Does not throw, because the answer has already been paid for.
          onUnsettled(`The budget '${budget.id}' rejected a settlement: ${describeError(error)}`)
        }
      }
      held.push({ ...amount, settle })
    }
    return held
  } catch (error) {
    // A reservation that cannot be released will expire. The refusal takes precedence over that error.
    await Promise.all(held.map(({ settle }) => settle({ usd: 0, tokens: 0 })))
    throw error
  }
}

export const unsettledCode = 'budget_unsettled'

export function warnUnsettled(message: string): void {
  warnProcess(message, unsettledCode)
}

/** The largest excess of a model's actual input tokens over the estimate, as a factor and a number of tokens. */
interface Excess {
  times: number
  tokens: number
}

/** The initial excess, until models report their token counts. */
const firstExcess: Excess = { times: 1.1, tokens: 0 }

/** Requests below this number of tokens depend more on the provider's fixed overhead than on its tokenizer. */
const shortTokens = 500

/** Upper limits of a learned excess, as a factor and as tokens per request. */
const [mostTimes, mostAdded] = [8, 20_000]

/** The largest excess by model. Keys have the form `PROVIDER/MODEL`. */
const excesses = new Map<string, Excess>()

/** The worst-case input tokens, with a margin or the largest excess that the model has reported so far. */
export function addInputMargin(model: string, estimated: number): number {
  const { times, tokens } = excesses.get(model) ?? firstExcess
  return Math.ceil(estimated * times + tokens)
}

/** Learns from the reported input tokens of a request. The next worst case is at least as high. */
export function learnInputCount(model: string, estimated: number, counted: number): void {
  const { times, tokens } = excesses.get(model) ?? firstExcess
  // A single report that is far too high must not make all later requests too expensive.
  const learned = Math.min(counted, estimated * mostTimes + mostAdded)
  if (learned <= estimated * times + tokens) return
  const next =
    estimated < shortTokens
      ? { times, tokens: Math.ceil(learned - estimated * times) }
      : { times: (learned - tokens) / estimated, tokens }
  excesses.set(model, next)
}

/** Codes of errors that occur before a request is sent. */
const unsentCodes = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'limiter_unavailable',
  'unsupported_content',
])

/**
 * Whether a failed request cost nothing. A response with an error status is a refusal, and an unsent request is not
 * billed. An unreadable response with a status of success was billed.
 */
export function isUnpaid(status: number | null, error: unknown): boolean {
  if (isErrorStatus(status)) return true
  return listCauses(error).some(
    (cause) =>
      unsentCodes.has(String(readProperty(cause, 'code'))) ||
      isErrorStatus(readPath(cause, ['failure', 'status'])),
  )
}

function isErrorStatus(status: unknown): boolean {
  return typeof status === 'number' && status >= 300
}
