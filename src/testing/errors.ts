import { StatewrightError } from '../core/base/errors.js'

/**
 * What can be wrong with a machine, or with what it is explored by:
 *
 * - `not_a_machine`, `xstate_v4`: the value cannot be explored at all
 * - `bad_option`: an input list, alphabet, limit or callback that makes no sense
 * - `state_limit`: more distinct states than the limit; names the context keys that keep growing
 * - `guard_threw`, `guard_missing`, `action_threw`, `endless_loop`: the machine breaks on the path that is named
 * - `coarse_states`: serializeState leaves out what guards read
 * - `property_threw`: a property that throws, by its name
 * - `unknown_state`: a state name that the machine does not have
 * - `unserializable_state`, `not_json`: a value that cannot be compared or written down
 */
export type PathErrorCode =
  | 'not_a_machine'
  | 'xstate_v4'
  | 'bad_option'
  | 'state_limit'
  | 'guard_threw'
  | 'guard_missing'
  | 'action_threw'
  | 'endless_loop'
  | 'coarse_states'
  | 'property_threw'
  | 'unknown_state'
  | 'unserializable_state'
  | 'not_json'

/**
 * A machine that cannot be explored, and why. `subject` is the option, guard or state that it is about.
 *
 * @example
 * try {
 *   generatePaths(machine, { alphabet, limit: 1 })
 * } catch (error) {
 *   if (error instanceof PathError) console.log(error.code, error.message) // → state_limit …
 * }
 */
export class PathError extends StatewrightError {
  override readonly name = 'PathError'
  declare readonly code: PathErrorCode
}

/** The message of anything that can be thrown. */
export function getErrorMessage(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
