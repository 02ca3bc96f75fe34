import { badUsageError } from '../../cli-error.js'
import type { OptionSpecs } from '../../parse-options.js'
import { storeOptionSpec } from '../common-options.js'

/** What every command on sessions takes. */
export const sessionOptionSpecs = {
  ...storeOptionSpec,
  help: { short: 'h', about: 'show this help' },
} satisfies OptionSpecs

/** The one session that a command is about. */
export function parseSessionId([id, ...more]: readonly string[]): string {
  if (id === undefined)
    throw badUsageError("Which session? Give its id: 'statewright sessions list' shows them.", 'ID')
  if (more.length > 0) throw badUsageError(`One session at a time: '${more.join("', '")}' is too much.`, 'ID')
  return id
}
