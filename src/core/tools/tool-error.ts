import type { ToolErrorKind } from '../../../machines/agent/batch-calls.js'
import { StatewrightError, listCauses, describeError } from '../base/errors.js'
import { transientCodes, transientWords } from '../../../guards/lib/answers.js'
import { readProperty } from '../base/json.js'

const toolErrorKinds: readonly ToolErrorKind[] = ['policy_denied', 'transient', 'failed']

export interface ToolErrorOptions extends ErrorOptions {
  /** A sentence for people that is shown in user interfaces. Defaults to none. */
  publicMessage?: string
}

/**
 * Throw this error in a tool to classify a failure. `code` is the kind.
 * - `policy_denied` – this call is not allowed, and a retry will not change that; by default, two identical denials end
 *   the run
 * - `transient` – a retry may succeed later (timeouts, rate limits, lost connections)
 * - `failed` – any other failure
 *
 * ```ts
 * throw new ToolError('policy_denied', 'Paths outside /srv may not be read.', { publicMessage: 'That file is not shared.' })
 * ```
 */
export class ToolError extends StatewrightError {
  override readonly name = 'ToolError'
  /** A sentence for people, because `message` is for the model. Without it, user interfaces show a generic sentence. */
  readonly publicMessage: string | undefined
  /** How guards treat the failure. */
  readonly kind: ToolErrorKind

  /** Creates the error. Unknown kinds count as `failed`. */
  constructor(kind: ToolErrorKind, message: string, options?: ToolErrorOptions) {
    const known = toolErrorKinds.includes(kind) ? kind : 'failed'
    super(known, message, undefined, options)
    this.kind = known
    this.publicMessage = options?.publicMessage
  }
}

/** An AbortError is a timeout set by the tool itself, because calls with an aborted signal have already been closed. */
const names = ['TimeoutError', 'AbortError', 'APIConnectionError', 'APIConnectionTimeoutError']

/**
 * Classifies a tool failure. A ToolError states its kind. Other errors are classified by these properties, of the error
 * and then of its `cause`s:
 * 1. its code: `ECONNRESET`, `ETIMEDOUT`, `EAI_AGAIN`, `UND_ERR_SOCKET`, … are transient;
 * 2. its name: `TimeoutError`, `AbortError`;
 * 3. its HTTP status (`status`, `statusCode`, `response.status`): 408, 425, 429 and 502–504 are transient, other 4xx
 *    are failures regardless of the words. 401 and 403 are failures too, because they concern the tool's credentials,
 *    and only the tool itself can report that a policy refuses the call;
 * 4. the words of its message: timed out, connection refused, rate limit, 503, service unavailable, HTTP 429, …
 *
 * Never throws, for any thrown value.
 */
export function classifyToolError(error: unknown): { kind: ToolErrorKind; message: string } {
  const message = describeError(error)
  const named = isToolError(error) ? readProperty(error, 'kind') : undefined
  const kind =
    toolErrorKinds.find((known) => known === named) ??
    classifyCauses(listCauses(error)) ??
    (transientWords.test(message) ? 'transient' : 'failed')
  return { kind, message }
}

export function findPublicMessage(error: unknown): string | undefined {
  const message = isToolError(error) ? readProperty(error, 'publicMessage') : undefined
  return typeof message === 'string' ? message : undefined
}

/** Compares names, because a second copy of this package may be installed. */
const isToolError = (error: unknown): boolean => readProperty(error, 'name') === 'ToolError'

function classifyCauses(causes: readonly unknown[]): ToolErrorKind | undefined {
  for (const cause of causes) {
    const [code, name] = [readProperty(cause, 'code'), readProperty(cause, 'name')]
    if (transientCodes.some((known) => known === code) || names.some((known) => known === name))
      return 'transient'
    const status = findStatus(cause)
    if (status === undefined) continue
    if ([408, 425, 429, 502, 503, 504].includes(status)) return 'transient'
    if (status >= 400 && status < 500) return 'failed'
  }
  return undefined
}

function findStatus(error: unknown): number | undefined {
  const found = [
    readProperty(error, 'status'),
    readProperty(error, 'statusCode'),
    readProperty(readProperty(error, 'response'), 'status'),
  ]
  return found.find((status) => typeof status === 'number')
}
