import type { ModelFailure } from '../../../machines/agent/model-response.js'
import { ModelError } from '../models/provider.js'

/** A request that a budget does not allow, so that it is not sent. */
export class OverBudgetError extends ModelError {
  /** The shared budget that it is about; undefined for the limits of the run itself. */
  readonly budget: string | undefined

  constructor(failure: Pick<ModelFailure, 'kind' | 'code' | 'message'>, budget?: string) {
    super(failure)
    this.budget = budget
  }
}

/** The codes by which the machine knows that a budget refused a request. */
const ourCodes = /^(token_budget|shared_budget(_\w+)?)$/

/** The same code from a provider does not mean our budget: it gets a prefix. */
export function withoutOurCode(failure: ModelFailure, error: unknown): ModelFailure & { budget?: string } {
  if (error instanceof OverBudgetError)
    return error.budget === undefined ? failure : { ...failure, budget: error.budget }
  return ourCodes.test(failure.code) ? { ...failure, code: `provider_${failure.code}` } : failure
}
