import { ConfigError, StatewrightError } from '../core/base/errors.js'
import { describeError } from '../core/base/describe-error.js'

/** What is not said by 409: that the session does not stand so that the request can be done. */
const statuses: Readonly<Record<string, number>> = {
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

/**
 * Told what went wrong on the server's side, which a page is not told.
 *
 * @example
 * const onError: OnError = (error) => console.error(error)
 */
export type OnError = (error: unknown) => void

/**
 * What a request is told that cannot be done: `{ error: { code, message, key } }`, with the status that fits. What is the
 * server's own fault goes to `onError`, and of it the page is told the code alone.
 */
export function refused(error: unknown, onError: OnError = warn): Response {
  if (error instanceof Response) return error
  const isTyped = error instanceof StatewrightError
  const status = !isTyped || error instanceof ConfigError ? 500 : (statuses[error.code] ?? 409)
  const code = isTyped ? error.code : 'internal'
  if (status >= 500) onError(error)
  const told =
    isTyped && status < 500
      ? { code, message: error.message, ...(error.subject !== undefined && { key: error.subject }) }
      : { code, message: 'The server has failed; its own log says why. Try again later.' }
  return Response.json({ error: told }, { status, headers: { 'cache-control': 'no-store' } })
}

/** Where nobody has said where errors go: the platform's own warnings. */
function warn(error: unknown): void {
  const { process } = globalThis as { process?: { emitWarning?: (message: string, how: object) => void } }
  const cause = error instanceof Error && error.cause !== undefined ? ` (${describeError(error.cause)})` : ''
  const sentence = `A request to the chat has failed: ${describeError(error)}${cause}`
  if (process?.emitWarning) process.emitWarning(sentence, { type: 'StatewrightWarning' })
  // oxlint-disable-next-line no-console -- other runtimes have no other place
  else console.warn(sentence)
}
