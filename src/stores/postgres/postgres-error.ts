import { ConfigError, StatewrightError } from '../../core/base/errors.js'
import { StoreError, type StoreErrorCode } from '../../core/sessions/store/store-error.js'

/** Where the sessions are, for people: never a user or a password. */
export function describePlace(options: object): string {
  const { connectionString } = options as { connectionString?: string }
  try {
    const { hostname } = new URL(connectionString ?? '')
    return hostname === '' ? 'Postgres' : `Postgres on ${hostname}`
  } catch {
    return 'Postgres'
  }
}

/** What the server or the connection to it reports, as an error that says what to do. `place` holds no password. */
export function toPostgresError(error: unknown, place: string): StatewrightError {
  if (error instanceof StatewrightError) return error
  const code = getCode(error)
  // Without its cause: that one holds the whole text, with the password.
  if (code === 'ERR_INVALID_URL' || error instanceof URIError) {
    return new ConfigError(
      'invalid_store',
      'The connection string is no URL. Write postgres://USER:PASSWORD@HOST:PORT/DATABASE, and special characters of ' +
        'the password as %XX.',
      'connectionString',
    )
  }
  const [kind, advice] = classifyCode(code)
  return new StoreError(kind, `The sessions in ${place}: ${getReason(error)}. ${advice}`, place, {
    cause: error,
  })
}

function classifyCode(code: string): [StoreErrorCode, string] {
  if (code === '53100')
    return ['disk_full', 'Free some space on the server: the sessions are as they were before.']
  if (code === '25006' || code === '42501') {
    return ['read_only', 'Connect to the primary server, as a user who may write to the schema.']
  }
  if (code.startsWith('XX00')) return ['corrupt_log', 'See the log of the server, and restore from a backup.']
  return [
    'store_unavailable',
    'See that the server runs and takes connections from here, then try again. What was being written may or may not ' +
      'have been kept.',
  ]
}

/** Node reports a host with several addresses as one error without a message that has one for each. */
function getReason(error: unknown): string {
  const { message, errors } = error as { message?: string; errors?: unknown[] }
  if (message) return message
  return errors?.length ? getReason(errors[0]) : getCode(error) || 'no answer'
}

function getCode(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code === 'string' ? code : ''
}

/** Whether the server has looked at a statement and refused it for what is in it, so that nothing of it was kept. */
export function isStatementRefused(error: unknown): boolean {
  return /^(22|23|54)/.test(getCode(error instanceof StatewrightError ? error.cause : error))
}
