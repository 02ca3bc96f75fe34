import type { Readable, Writable } from 'node:stream'
import type { ExitCode } from './exit-codes.js'
import type { OptionSpecs } from './options.js'

/** The world as a command sees it: nothing else of the process is touched. */
export interface CliIO {
  stdin: Readable & { isTTY?: boolean }
  stdout: Writable & { isTTY?: boolean; columns?: number }
  stderr: Writable
  env: Readonly<Record<string, string | undefined>>
  /** What relative paths are relative to. */
  cwd: string
  /** Aborts when the person interrupts (Ctrl-C). */
  signal: AbortSignal
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
