import { StatewrightError } from '../core/base/errors.js'

/** Something that the person at the command line can mend: bad usage, a missing file. Exit code 2. */
export class CliError extends StatewrightError {
  override readonly name = 'CliError'
}

/** The error for `--option`, or for what is named by `subject`. */
export function badUsageError(message: string, subject?: string, options?: ErrorOptions): CliError {
  return new CliError('bad_usage', message, subject, options)
}
