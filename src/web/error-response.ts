import type { PendingCall } from '../../machines/agent/run-result.js'
import { ConfigError, describeError, StatewrightError, UsageError } from '../core/base/errors.js'
import { warnProcess } from '../core/base/platform.js'
import type { CheckedExpose } from './exposure.js'

export const hasCode = (error: unknown, ...codes: string[]): boolean =>
  error instanceof StatewrightError && codes.includes(error.code)

export function invalidInputError(message: string, at: string, options?: ErrorOptions): UsageError {
  return new UsageError('invalid_input', message, at, options)
}

export function alreadySentError(clientId?: string): UsageError {
  return new UsageError(
    'already_said',
    'This message was already answered, and later messages exist. Read the history, then send a new message.',
    clientId,
  )
}

export function runInProgressError(sessionId: string): UsageError {
  return new UsageError(
    'run_in_progress',
    'The previous answer is still in progress. Wait for it or stop it, then send the message again.',
    sessionId,
  )
}

export function answersPendingError(pending: readonly PendingCall[]): UsageError {
  const names = pending.map(({ name }) => name).join(', ')
  return new UsageError(
    'waiting_for_answers',
    `The previous answer is waiting for approval (${names}). Approve or reject it first, or stop it.`,
    pending[0]?.callId,
  )
}

/**
 * Codes by status. Others are 409, because the session's state does not allow the request. Of the listed codes below 500,
 * all but `not_an_approver` are errors in the request itself, whose messages help the sender and do not reveal anything
 * about the server.
 */
const codesByStatus: Readonly<Record<number, readonly string[]>> = {
  400: ['invalid_input', 'invalid_answer', 'invalid_option', 'invalid_session', 'unknown_client'],
  401: ['unauthorized'],
  403: ['forbidden', 'not_an_approver'],
  404: ['not_found', 'unknown_session', 'unknown_message', 'unknown_branch'],
  405: ['method_not_allowed'],
  409: [
    'not_answered',
    'other_branch',
    'too_many_branches',
    'refused_by_shield',
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
  ],
  413: ['too_large'],
  415: ['wrong_content_type'],
  429: ['queue_full'],
  500: ['authorize_failed', 'corrupt_log', 'newer_log', 'unknown_state', 'no_store', 'missing_package'],
  503: ['store_unavailable', 'read_only', 'disk_full'],
}

/**
 * Where an error occurred.
 *
 * - `where`: `request` (the request failed), `run` (a run failed), `tool` (a tool call failed), `retry` (a model request failed
 *   and will be retried), `warning`, `hook` (`onStart`, `onSettle`, `onFinish` or a function of `expose` failed)
 * - `session`: the session id, or null if the request names none
 * - `callId`: the call's id; for a sub-agent's call, the ids on its path, joined by slashes
 */
export interface ErrorContext {
  where: 'request' | 'run' | 'tool' | 'retry' | 'warning' | 'hook'
  session: string | null
  runId: string | null
  callId: string | null
}

/**
 * Receives each error that pages do not see in full, with its original `stack` and `cause`. If this function throws,
 * the error becomes a process warning.
 */
export type OnError = (error: unknown, at: ErrorContext) => void

export interface FailedRequest {
  /** The session id prefix, which is hidden from the page. */
  prefix: string
  session: string | null
  expose: CheckedExpose
  onError: OnError | undefined
}

/**
 * The response to a failed request: `{ error: { code, message, key } }` with the matching status. If the error is not
 * about the request itself, the page receives only the code, and `onError` receives the error.
 */
export function toErrorResponse(
  error: unknown,
  { prefix, session, expose, onError }: FailedRequest,
): Response {
  if (error instanceof Response) return error
  const isTyped = error instanceof StatewrightError
  const code = isTyped ? error.code : 'internal'
  const [listed] = Object.entries(codesByStatus).find(([, codes]) => codes.includes(code)) ?? []
  const status = isTyped && !(error instanceof ConfigError) ? Number(listed ?? 409) : 500
  const isOfRequest = status < 500 && listed !== undefined && code !== 'not_an_approver'
  const isPlain = isOfRequest || expose.errors === true
  if (!isPlain || status >= 500)
    reportError(onError, error, { where: 'request', session, runId: null, callId: null })
  const removePrefix = (text: string): string => (prefix === '' ? text : text.replaceAll(`${prefix}:`, ''))
  const format = typeof expose.errors === 'function' ? expose.errors : () => null
  const generic =
    status < 500
      ? 'This is not possible right now. Reload the chat and try again.'
      : 'The server failed. See its log for the reason. Try again later.'
  const details = isPlain
    ? {
        message: removePrefix(describeError(error)),
        ...(isTyped && error.subject !== undefined && { key: removePrefix(error.subject) }),
      }
    : { message: format(error, { session: session ?? '' }) ?? generic }
  const headers = { 'cache-control': 'no-store' }
  return Response.json({ error: { code, ...details } }, { status, headers })
}

/** Calls `onError`, or emits a process warning if there is none. Never throws. */
export function reportError(onError: OnError | undefined, error: unknown, at: ErrorContext): void {
  if (onError === undefined) return emitProcessWarning(error, at)
  callSafely(
    () => onError(error, at),
    (thrown) => emitProcessWarning(thrown, at),
  )
}

/** Calls a function of the app, which may be async. Its failure affects neither the caller nor the process. */
export function callSafely(call: () => unknown, onFailure: (thrown: unknown) => void): void {
  try {
    void Promise.resolve(call()).catch(onFailure)
  } catch (thrown) {
    onFailure(thrown)
  }
}

const sentenceByPlace: Record<ErrorContext['where'], string> = {
  request: 'A chat request failed',
  run: 'A chat run failed',
  tool: 'A tool call in a chat failed',
  retry: 'A model request failed and will be retried',
  warning: 'Warning from a chat run',
  hook: 'A chat hook failed',
}

function emitProcessWarning(error: unknown, { where, session, callId }: ErrorContext): void {
  const cause = error instanceof Error && error.cause !== undefined ? ` (${describeError(error.cause)})` : ''
  const place = [session, callId].filter((part) => part !== null).join(', ')
  const shown = place === '' ? '' : ` (${place})`
  warnProcess(`${sentenceByPlace[where]}${shown}: ${describeError(error)}${cause}`)
}
