import type { ModelActorError, ModelFailure } from '../../../machines/agent/model-response.js'
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
