import { badUsageError } from '../../cli-error.js'
import type { OptionSpecs } from '../../parse-options.js'
import { storeOptionSpec } from '../common-options.js'

/** The options of every command on sessions. */
export const sessionOptionSpecs = {
  ...storeOptionSpec,
  help: { short: 'h', about: 'show this help' },
} satisfies OptionSpecs

/** The session id of a command that takes exactly one. */
export function parseSessionId([id, ...more]: readonly string[]): string {
  if (id === undefined)
    throw badUsageError("Which session? Give its id: 'statewright sessions list' shows them.", 'ID')
  if (more.length > 0) throw badUsageError(`One session at a time: '${more.join("', '")}' is too much.`, 'ID')
  return id
}
