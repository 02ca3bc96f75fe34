import { StatewrightError } from '../errors.js'
import { badUsage, CliError } from './cli-error.js'
import type { CliIO, Command } from './command.js'
import { diagramCommand } from './commands/diagram.js'
import { pathsCommand } from './commands/paths.js'
import { runCommand } from './commands/run.js'
import { type ExitCode, exitCodes } from './exit-codes.js'
import { commandHelp, globalHelp } from './help.js'
import { nearest } from '../config/nearest.js'
import { type OptionSpecs, parseOptions } from './options.js'
import { packageVersion } from './package-info.js'

const commands: readonly Command[] = [runCommand, diagramCommand, pathsCommand]

const globalOptions = {
  help: { short: 'h', about: 'show this help' },
  version: { short: 'V', about: 'show the version' },
} satisfies OptionSpecs

/**
 * The command line, with its whole world handed in. Resolves with the exit code and never rejects: what goes wrong is
 * one sentence on `stderr`.
 */
export async function runCli(argv: readonly string[], io: CliIO): Promise<ExitCode> {
  const [first] = argv
  const command = commands.find(({ name }) => name === first)
  try {
    return command ? await execute(command, argv.slice(1), io) : global(argv, io)
  } catch (error) {
    if (io.signal.aborted) return exitCodes.cancelled
    return explain(error, command, io)
  }
}

async function execute(command: Command, args: readonly string[], io: CliIO): Promise<ExitCode> {
  if (asksForHelp(args)) {
    io.stdout.write(commandHelp(command))
    return exitCodes.completed
  }
  return command.execute(args, io)
}

/** Help wins over everything else on the line, mistakes included. */
function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return (end < 0 ? args : args.slice(0, end)).some((arg) => arg === '--help' || arg === '-h')
}

function global(argv: readonly string[], io: CliIO): ExitCode {
  const [first] = argv
  if (first === undefined) {
    io.stderr.write(globalHelp(commands, globalOptions))
    return exitCodes.usage
  }
  if (first !== 'help' && !first.startsWith('-')) {
    const names = commands.map(({ name }) => name)
    const meant = nearest(first, names)
    const hint = meant === undefined ? `Commands: ${names.join(', ')}.` : `Did you mean '${meant}'?`
    throw badUsage(`Unknown command '${first}'. ${hint}`, first)
  }
  const { values } = parseOptions(first === 'help' ? [] : argv, globalOptions)
  io.stdout.write(values.has('version') ? `${packageVersion()}\n` : globalHelp(commands, globalOptions))
  return exitCodes.completed
}

function explain(error: unknown, command: Command | undefined, io: CliIO): ExitCode {
  const message = error instanceof Error ? error.message || error.name : String(error)
  io.stderr.write(`statewright: ${message}\n`)
  if (error instanceof CliError && error.code === 'bad_usage') {
    io.stderr.write(`See 'statewright ${command ? `${command.name} ` : ''}--help'.\n`)
  }
  return error instanceof StatewrightError ? exitCodes.usage : exitCodes.error
}
