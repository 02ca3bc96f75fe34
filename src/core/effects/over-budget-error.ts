import {
  createModelFailure,
  type ModelActorError,
  type ModelFailure,
} from '../../../machines/agent/model-response.js'
import { rememberThrown } from '../base/errors.js'
import type { BudgetError } from '../budgets/budget-error.js'
import { ModelError } from '../models/provider.js'

/** A request that a budget does not allow, so that it is not sent. */
export class OverBudgetError extends ModelError {
  /** The shared budget that it is about; undefined for the limits of the run itself. */
  readonly budget: string | undefined
  /** When a run goes on that waits for it, in milliseconds since the epoch; undefined: it does not wait. */
  readonly wakeAt: number | undefined

  constructor(
    failure: Pick<ModelFailure, 'kind' | 'code' | 'message'>,
    { budget, wakeAt }: { budget?: string; wakeAt?: number } = {},
  ) {
    super(failure)
    this.budget = budget
    this.wakeAt = wakeAt
  }
}

/** The code by which the machine knows what a budget said. */
export const toBudgetCode = ({ code }: BudgetError): string =>
  code === 'budget_exceeded'
    ? 'shared_budget'
    : `shared_${code}`.replace(/^shared_unknown/, 'shared_budget_unknown')

/** A search that a budget does not allow, as plain data. */
export function toRefusedSearch(error: BudgetError): ModelActorError {
  const { message, subject } = error
  const failure = createModelFailure({ kind: 'fatal', code: toBudgetCode(error), message })
  const refused = { ...failure, usage: null, jitter: 1, ...(subject !== undefined && { budget: subject }) }
  return rememberThrown(refused, error)
}

/** The codes by which the machine knows that a budget refused a request. */
const ourCodes = /^(token_budget|shared_budget(_\w+)?)$/

/** The same code from a provider does not mean our budget: it gets a prefix. */
export function withoutOurCode(
  failure: ModelFailure,
  error: unknown,
): ModelFailure & Pick<ModelActorError, 'budget' | 'wakeAt'> {
  if (error instanceof OverBudgetError) {
    const { budget, wakeAt } = error
    return { ...failure, ...(budget !== undefined && { budget }), ...(wakeAt !== undefined && { wakeAt }) }
  }
  return ourCodes.test(failure.code) ? { ...failure, code: `provider_${failure.code}` } : failure
}
