import { StatewrightError } from '../core/base/errors.js'

/**
 * A rehearsal that cannot start. `code` is `invalid_scenario` or `invalid_options` (`subject` is the path of the
 * mistake, `turns[2].toolCalls[0].name`), `unreadable_scenario` (`subject` is the file) or `cannot_listen`.
 *
 * @example
 * try {
 *   parseScenario({ turns: 1 })
 * } catch (error) {
 *   if (error instanceof RehearsalError) console.log(error.code, error.message)
 * }
 */
export class RehearsalError extends StatewrightError {
  override readonly name = 'RehearsalError'
}
