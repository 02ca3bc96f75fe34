import { describeError } from '../core/base/describe-error.js'
import { ConfigError, StatewrightError } from '../core/base/errors.js'
import type { ExposeOptions } from './exposure.js'

/** What is not said by 409: that the session does not stand so that the request can be done. */
const statusByCode: Readonly<Record<string, number>> = {
  invalid_input: 400,
  invalid_option: 400,
  invalid_session: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  unknown_session: 404,
  method_not_allowed: 405,
  too_large: 413,
  wrong_content_type: 415,
  authorize_failed: 500,
  corrupt_log: 500,
  newer_log: 500,
  unknown_state: 500,
  no_store: 500,
  missing_package: 500,
  store_unavailable: 503,
  read_only: 503,
  disk_full: 503,
}

/** About the request alone: the message helps its sender, and tells nothing of the server. */
const requestErrorCodes: ReadonlySet<string> = new Set([
  'invalid_input',
  'invalid_option',
  'invalid_session',
  'unauthorized',
  'forbidden',
  'not_found',
  'unknown_session',
  'method_not_allowed',
  'too_large',
  'wrong_content_type',
  'stale_answer',
  'unknown_call',
  'already_answered',
  'not_waiting',
  'run_in_progress',
  'waiting_for_answers',
  'message_changed',
  'already_said',
  'nothing_to_resume',
  'run_ended',
])

/**
 * Where an error comes from that a page is not shown as it is.
 *
 * - `where`: `request` (it could not be done), `run` (a run has failed), `tool` (a call has), `retry` (a request to a model
 *   failed and is made again), `warning`
 * - `session`: its id, null where a request names none; `callId`: of a sub-agent's call, with slashes in between
 */
export interface ErrorContext {
  where: 'request' | 'run' | 'tool' | 'retry' | 'warning'
  session: string | null
  runId: string | null
  callId: string | null
}

/**
 * Told each error that a page is not shown as it is: as it was thrown, with its `stack` and `cause`. What it throws itself is
 * a warning of the process.
 */
export type OnError = (error: unknown, at: ErrorContext) => void

/** Who has sent a request that is refused, and what of the reason may be told. */
export interface FailedRequest {
  /** What the ids of the sessions begin with; the page does not know it. */
  prefix: string
  session: string | null
  expose: ExposeOptions
  onError: OnError | undefined
}

/**
 * What a request is told that cannot be done: `{ error: { code, message, key } }`, with the status that fits. What is not
 * about the request itself goes to `onError`, and of it the page is told the code alone.
 */
export function toErrorResponse(
  error: unknown,
  { prefix, session, expose, onError }: FailedRequest,
): Response {
  if (error instanceof Response) return error
  const isTyped = error instanceof StatewrightError
  const status = !isTyped || error instanceof ConfigError ? 500 : (statusByCode[error.code] ?? 409)
  const code = isTyped ? error.code : 'internal'
  const isPlain = (isTyped && status < 500 && requestErrorCodes.has(code)) || expose.errors === true
  if (!isPlain || status >= 500)
    reportError(onError, error, { where: 'request', session, runId: null, callId: null })
  const removePrefix = (text: string): string => (prefix === '' ? text : text.replaceAll(`${prefix}:`, ''))
  const { errors } = expose
  const details = isPlain
    ? {
        message: removePrefix(describeError(error)),
        ...(isTyped && error.subject !== undefined && { key: removePrefix(error.subject) }),
      }
    : {
        message:
          typeof errors === 'function'
            ? errors(error, { session: session ?? '' })
            : getGenericMessage(status),
      }
  const body = { error: { code, ...details } }
  return Response.json(body, { status, headers: { 'cache-control': 'no-store' } })
}

function getGenericMessage(status: number): string {
  return status < 500
    ? 'This cannot be done now: ask for the chat as it stands, and try again.'
    : 'The server has failed; its own log says why. Try again later.'
}

/** Tells `onError`, or warns. Never throws: whoever is told has no say in what happens. */
export function reportError(onError: OnError | undefined, error: unknown, at: ErrorContext): void {
  if (onError === undefined) return emitProcessWarning(error, at)
  try {
    const told = onError(error, at) as unknown
    if (told instanceof Promise) told.catch((thrown: unknown) => emitProcessWarning(thrown, at))
  } catch (thrown) {
    emitProcessWarning(thrown, at)
  }
}

const sentenceByPlace: Record<ErrorContext['where'], string> = {
  request: 'A request to the chat has failed',
  run: 'A run of the chat has failed',
  tool: 'A call of the chat has failed',
  retry: 'A request to the model has failed and is made again',
  warning: 'A run of the chat warns',
}

/** Where nobody has said where errors go: the platform's own warnings. */
function emitProcessWarning(error: unknown, { where, session, callId }: ErrorContext): void {
  const { process } = globalThis as { process?: { emitWarning?: (message: string, how: object) => void } }
  const cause = error instanceof Error && error.cause !== undefined ? ` (${describeError(error.cause)})` : ''
  const place = [session, callId].filter((part) => part !== null).join(', ')
  const sentence = `${sentenceByPlace[where]}${place === '' ? '' : ` (${place})`}: ${describeError(error)}${cause}`
  if (process?.emitWarning) process.emitWarning(sentence, { type: 'StatewrightWarning' })
  // oxlint-disable-next-line no-console -- other runtimes have no other place
  else console.warn(sentence)
}
