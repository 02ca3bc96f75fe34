import { parseArgs } from 'node:util'
import { templates } from './templates.mjs'

/** Invalid command line. The message describes the fix. */
export class UsageError extends Error {}

/**
 * Reads the arguments of the command.
 * @throws {UsageError} for an unknown option or template, or more than one folder
 */
export function readOptions(args) {
  const { values, positionals } = parse(args)
  if (positionals.length > 1)
    throw new UsageError(`Give only one FOLDER, and remove '${positionals.slice(1).join("', '")}'.`)
  const { template, package: spec } = values
  if (template !== undefined && !Object.hasOwn(templates, template))
    throw new UsageError(
      `--template: there is no '${template}'. Choose one of ${Object.keys(templates).join(', ')}.`,
    )
  if (spec !== undefined && spec.trim() === '')
    throw new UsageError('--package is empty. Give a version, such as ^1.2.0, or file:PATH.')
  return { ...values, folder: positionals[0] }
}

function parse(args) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        template: { type: 'string', short: 't' },
        package: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean', short: 'V' },
      },
    })
  } catch (error) {
    if (String(error.code).startsWith('ERR_PARSE_ARGS')) throw new UsageError(error.message)
    throw error
  }
}
