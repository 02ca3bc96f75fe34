import type { ToolErrorKind } from '../../../machines/agent/batch-calls.js'
import { StatewrightError } from '../base/errors.js'

export const toolErrorKinds: readonly ToolErrorKind[] = ['policy_denied', 'transient', 'failed']

export interface ToolErrorOptions extends ErrorOptions {
  /** A sentence for people, which pages show as it is. Default: none. */
  publicMessage?: string
}

/**
 * Thrown by a tool to say how it failed. `code` is the kind.
 * - `policy_denied`: this call is not allowed; asking again will not change that. By default two identical ones end the run
 * - `transient`: it may work later (timeouts, rate limits, lost connections)
 * - `failed`: everything else
 *
 * ```ts
 * throw new ToolError('policy_denied', 'Paths outside /srv may not be read.', { publicMessage: 'That file is not shared.' })
 * ```
 */
export class ToolError extends StatewrightError {
  override readonly name = 'ToolError'
  /**
   * What a page shows of it; `message` is for the model. Without it, a page shows a sentence that says nothing of the
   * tool.
   */
  readonly publicMessage: string | undefined
  /** What the guards make of it. */
  readonly kind: ToolErrorKind

  /** An unknown `kind`, which only JavaScript can pass, counts as `failed`. */
  constructor(kind: ToolErrorKind, message: string, options?: ToolErrorOptions) {
    const known = toolErrorKinds.includes(kind) ? kind : 'failed'
    super(known, message, undefined, options)
    this.kind = known
    this.publicMessage = options?.publicMessage
  }
}
