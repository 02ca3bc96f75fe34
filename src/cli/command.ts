import type { Readable, Writable } from 'node:stream'
import type { SigtermHandler } from './sigterm.js'
import type { ExitCode } from './exit-codes.js'
import type { OptionSpecs } from './parse-options.js'

/** What a command uses of the process. */
export interface CliIO {
  stdin: Readable & { isTTY?: boolean }
  stdout: Writable & { isTTY?: boolean; columns?: number }
  stderr: Writable & { isTTY?: boolean; columns?: number }
  env: Readonly<Record<string, string | undefined>>
  /** The folder for relative paths. */
  cwd: string
  /** The folder for the user's data; null when there is none. */
  dataFolder: () => Promise<string | null>
  /** Aborts with Ctrl-C. */
  signal: AbortSignal
  /** Handles SIGTERM. */
  sigterm: SigtermHandler
}

export interface Command {
  name: string
  /** One line for the list of commands. */
  about: string
  /** What follows the options in the usage line. */
  positional: string
  options: OptionSpecs
  /** Paragraphs below the options in `--help`. */
  notes: readonly string[]
  /** Throws a CliError or ConfigError for invalid arguments. */
  execute(args: readonly string[], io: CliIO): Promise<ExitCode>
}

/** Commands with a common first word: `statewright sessions list`. */
export interface CommandGroup {
  name: string
  about: string
  /** With full names: `sessions list`. */
  commands: readonly Command[]
}
