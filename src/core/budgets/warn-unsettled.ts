import { warnProcess } from '../base/platform.js'

/** The code of the warning about a settlement that a store did not take. */
export const unsettledCode = 'budget_unsettled'

export function warnUnsettled(message: string): void {
  warnProcess(message, unsettledCode)
}
