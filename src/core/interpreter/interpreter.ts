import { ConfigError } from '../base/errors.js'

/** What takes the transitions of a machine: tables that are read from its chart, or XState's own interpreter. */
export type Interpreter = 'tables' | 'xstate'

/** @throws {ConfigError} `invalid_config` */
export function checkInterpreter(given: unknown): Interpreter {
  if (given === undefined) return 'tables'
  if (given === 'tables' || given === 'xstate') return given
  throw new ConfigError('invalid_config', "interpreter must be 'tables' or 'xstate'.", 'interpreter')
}
