import { limitTime } from '../core/base/abort.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { listStoredBudgets } from '../fleet/stored-budgets.js'

/** How a shared budget stands: one view for each of its limits. */
export interface BudgetView {
  id: string
  unit: 'usd' | 'tokens'
  spent: number
  reserved: number
  limit: number
  /** When it is whole again; null: never. */
  resetsAt: number | null
}

/** How long a list of sessions waits for budgets. What comes later is in the next list. */
const patienceMs = 150

/** The shared budgets of the store, as they were last read. A store that keeps none, or is away, has none to show. */
export class BudgetViews {
  readonly #store: Pick<SessionStore, 'openBudgets'>
  #known: BudgetView[] = []
  #reading: Promise<void> | null = null

  constructor(store: Pick<SessionStore, 'openBudgets'>) {
    this.#store = store
  }

  async read(): Promise<BudgetView[]> {
    if (!this.#store.openBudgets) return []
    this.#reading ??= this.#refresh().finally(() => (this.#reading = null))
    await limitTime({ ms: patienceMs }, this.#reading).catch(() => undefined)
    return this.#known
  }

  async #refresh(): Promise<void> {
    try {
      const { rows } = await listStoredBudgets(this.#store)
      this.#known = rows.flatMap(({ id, limits, spent, reserved, resetsAt }) =>
        (['usd', 'tokens'] as const).flatMap((unit): BudgetView[] => {
          const limit = limits[unit]
          return limit === undefined
            ? []
            : [{ id, unit, spent: spent[unit], reserved: reserved[unit], limit, resetsAt }]
        }),
      )
    } catch {
      this.#known = []
    }
  }
}
