import type { ToolErrorKind } from '../../../machines/agent/batch-calls.js'
import { StatewrightError, listCauses, describeError } from '../base/errors.js'
import { transientCodes, transientWords } from '../../../guards/lib/answers.js'
import { readProperty } from '../base/json.js'

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

/**
 * AbortError among them: a call whose own signal aborts is closed without asking, so this is a time limit that the tool
 * set itself.
 */
const names = ['TimeoutError', 'AbortError', 'APIConnectionError', 'APIConnectionTimeoutError']

/**
 * Whether a tool's failure may pass by itself, and what to say of it. A ToolError says so itself. Anything else is
 * judged, the error before its `cause`s, by
 * 1. its code: `ECONNRESET`, `ETIMEDOUT`, `EAI_AGAIN`, `UND_ERR_SOCKET`, … are transient;
 * 2. its name: `TimeoutError`, `AbortError`;
 * 3. its HTTP status (`status`, `statusCode`, `response.status`): 408, 425, 429 and 502–504 are transient, other 4xx
 *    are failures whatever the words. 401 and 403 are failures too: they are about the tool's credentials, and only
 *    the tool itself can say that a policy refuses the call;
 * 4. the words of its message: timed out, connection refused, rate limit, 503, service unavailable, HTTP 429, …
 *
 * Never throws, whatever was thrown.
 */
export function classifyToolError(error: unknown): { kind: ToolErrorKind; message: string } {
  const message = describeError(error)
  const kind =
    readNamedKind(error) ??
    classifyCauses(listCauses(error)) ??
    (transientWords.test(message) ? 'transient' : 'failed')
  return { kind, message }
}

/** What a ToolError says to pages. */
export function findPublicMessage(error: unknown): string | undefined {
  const message =
    readProperty(error, 'name') === 'ToolError' ? readProperty(error, 'publicMessage') : undefined
  return typeof message === 'string' ? message : undefined
}

/** By its name, not its class: a second copy of this package may be installed. */
function readNamedKind(error: unknown): ToolErrorKind | undefined {
  if (readProperty(error, 'name') !== 'ToolError') return undefined
  const kind = readProperty(error, 'kind')
  return toolErrorKinds.find((known) => known === kind)
}

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
