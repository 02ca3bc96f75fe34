import type { Readable, Writable } from 'node:stream'
import type { SigtermHandler } from './sigterm.js'
import type { ExitCode } from './exit-codes.js'
import type { OptionSpecs } from './parse-options.js'

/** The world as a command sees it: nothing else of the process is touched. */
export interface CliIO {
  stdin: Readable & { isTTY?: boolean }
  stdout: Writable & { isTTY?: boolean; columns?: number }
  stderr: Writable
  env: Readonly<Record<string, string | undefined>>
  /** What relative paths are relative to. */
  cwd: string
  /** The folder for this user's data; null when there is no such place. */
  dataFolder: () => Promise<string | null>
  /** Aborts when the person interrupts (Ctrl-C). */
  signal: AbortSignal
  /** Begins when the process is told to end (SIGTERM). */
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
  /** Throws a CliError or ConfigError for what cannot be run. */
  execute(args: readonly string[], io: CliIO): Promise<ExitCode>
}

/** Commands with a first word in common: `statewright sessions list`. */
export interface CommandGroup {
  name: string
  about: string
  /** Their names are whole: `sessions list`. */
  commands: readonly Command[]
}
