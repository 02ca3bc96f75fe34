import type { ToolErrorKind } from '../../../machines/agent/results.js'
import { StatewrightError } from '../base/errors.js'

export const toolErrorKinds: readonly ToolErrorKind[] = ['policy_denied', 'transient', 'failed']

/**
 * Thrown by a tool to say how it failed. `code` is the kind.
 * - `policy_denied`: this call is not allowed; asking again will not change that. By default two identical ones end the run
 * - `transient`: it may work later (timeouts, rate limits, lost connections)
 * - `failed`: everything else
 *
 * ```ts
 * throw new ToolError('policy_denied', 'Paths outside /srv may not be read.')
 * ```
 */
export class ToolError extends StatewrightError {
  override readonly name = 'ToolError'
  /** What the guards make of it. */
  readonly kind: ToolErrorKind

  /** An unknown `kind`, which only JavaScript can pass, counts as `failed`. */
  constructor(kind: ToolErrorKind, message: string, options?: ErrorOptions) {
    const known = toolErrorKinds.includes(kind) ? kind : 'failed'
    super(known, message, undefined, options)
    this.kind = known
  }
}
