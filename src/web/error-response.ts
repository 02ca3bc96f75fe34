import { warnProcess } from '../core/base/platform.js'
import { describeError, ConfigError, StatewrightError } from '../core/base/errors.js'
import type { CheckedExpose } from './exposure.js'

/** Other codes are answered with 409: the session is not in a state that allows the request. */
const statusByCode: Readonly<Record<string, number>> = {
  invalid_input: 400,
  invalid_answer: 400,
  invalid_option: 400,
  invalid_session: 400,
  unknown_client: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  unknown_session: 404,
  unknown_message: 404,
  unknown_branch: 404,
  method_not_allowed: 405,
  too_large: 413,
  wrong_content_type: 415,
  queue_full: 429,
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

/** Errors of the request itself: their message helps the sender and reveals nothing about the server. */
const requestErrorCodes: ReadonlySet<string> = new Set([
  'invalid_input',
  'invalid_answer',
  'invalid_option',
  'invalid_session',
  'unknown_client',
  'unauthorized',
  'forbidden',
  'not_found',
  'unknown_session',
  'unknown_message',
  'unknown_branch',
  'not_answered',
  'other_branch',
  'too_many_branches',
  'refused_by_shield',
  'method_not_allowed',
  'too_large',
  'wrong_content_type',
  'stale_answer',
  'unknown_call',
  'already_answered',
  'not_waiting',
  'run_in_progress',
  'queue_full',
  'waiting_for_answers',
  'message_changed',
  'already_said',
  'nothing_to_resume',
  'run_ended',
])

/**
 * Where an error comes from.
 *
 * - `where`: `request` (it could not be done), `run` (a run has failed), `tool` (a call has), `retry` (a request to a model
 *   failed and is made again), `warning`, `hook` (`onStart`, `onRest`, `onFinish` or a function of `expose` has failed)
 * - `session`: its id, null when a request names none; `callId`: for a sub-agent's call, ids joined by slashes
 */
export interface ErrorContext {
  where: 'request' | 'run' | 'tool' | 'retry' | 'warning' | 'hook'
  session: string | null
  runId: string | null
  callId: string | null
}

/**
 * Receives each error that pages do not see in full: as it was thrown, with its `stack` and `cause`. An error that this
 * function throws becomes a warning of the process.
 */
export type OnError = (error: unknown, at: ErrorContext) => void

/** A failed request, and what its sender may be told. */
export interface FailedRequest {
  /** The prefix of the session ids, which the page does not know. */
  prefix: string
  session: string | null
  expose: CheckedExpose
  onError: OnError | undefined
}

/**
 * The response for a failed request: `{ error: { code, message, key } }` with the matching status. For errors that are not
 * about the request itself, the page gets the code only and `onError` gets the error.
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
          (typeof errors === 'function' ? errors(error, { session: session ?? '' }) : null) ??
          getGenericMessage(status),
      }
  const body = { error: { code, ...details } }
  return Response.json(body, { status, headers: { 'cache-control': 'no-store' } })
}

function getGenericMessage(status: number): string {
  return status < 500
    ? 'This cannot be done now: read the chat again, and retry.'
    : 'The server failed. Its log has the reason. Try again later.'
}

/** Calls `onError`, or emits a process warning. Never throws. */
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
  hook: 'A hook of the chat has failed',
}

/** The default without `onError`: a warning of the platform. */
function emitProcessWarning(error: unknown, { where, session, callId }: ErrorContext): void {
  const cause = error instanceof Error && error.cause !== undefined ? ` (${describeError(error.cause)})` : ''
  const place = [session, callId].filter((part) => part !== null).join(', ')
  warnProcess(
    `${sentenceByPlace[where]}${place === '' ? '' : ` (${place})`}: ${describeError(error)}${cause}`,
  )
}
