import { StatewrightError } from '../core/base/errors.js'

/** An error that the user can fix: bad usage, a missing file. Exit code 2. */
export class CliError extends StatewrightError {
  override readonly name = 'CliError'
}

/** Creates a `bad_usage` error. `subject`: the option or argument. */
export function badUsageError(message: string, subject?: string, options?: ErrorOptions): CliError {
  return new CliError('bad_usage', message, subject, options)
}
