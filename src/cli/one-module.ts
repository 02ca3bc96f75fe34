import { badUsage } from './cli-error.js'

/** The module of a command that takes at most one. Throws a CliError for more. */
export function oneModule(positionals: readonly string[]): string | undefined {
  if (positionals.length <= 1) return positionals[0]
  throw badUsage(`One MODULE at a time: '${positionals.slice(1).join("', '")}' is too much.`)
}
