import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { StatewrightError } from '../core/base/errors.js'
import { findNearestName } from '../core/base/text.js'
import { StoreError } from '../core/sessions/store/store-error.js'
import { stripControls } from '../core/format/format-words.js'
import { quoteShellWord } from '../core/format/shell-words.js'
import { packageRoot } from '../studio/studio-page.js'
import { badUsageError, CliError } from './cli-error.js'
import type { CliIO, Command, CommandGroup } from './command.js'
import { batchCommand } from './commands/batch.js'
import { budgetsCommand } from './commands/budgets.js'
import { diagramCommand } from './commands/diagram.js'
import { diffCommand } from './commands/diff.js'
import { evalCommand } from './commands/eval.js'
import { guardsCommand } from './commands/guards.js'
import { mcpCommand } from './commands/mcp.js'
import { pathsCommand } from './commands/paths.js'
import { propertiesCommand } from './commands/properties.js'
import { resumeCommand } from './commands/resume.js'
import { runCommand } from './commands/run.js'
import { sessionsCommands } from './commands/sessions/index.js'
import { statelyCommand } from './commands/stately.js'
import { studioCommand } from './commands/studio.js'
import { sendCommand } from './commands/send.js'
import { type ExitCode, exitCodes } from './exit-codes.js'
import { type OptionSpecs, parseOptions, type OptionSpec } from './parse-options.js'
import { watchOutput } from './watch-output.js'

const commands: readonly (Command | CommandGroup)[] = [
  runCommand,
  resumeCommand,
  sendCommand,
  batchCommand,
  budgetsCommand,
  sessionsCommands,
  studioCommand,
  mcpCommand,
  evalCommand,
  guardsCommand,
  diagramCommand,
  statelyCommand,
  pathsCommand,
  propertiesCommand,
  diffCommand,
]

const globalOptions = {
  help: { short: 'h', about: 'show this help' },
  version: { short: 'V', about: 'show the version' },
} satisfies OptionSpecs

/**
 * Runs the command line. `io` has everything that it uses of the process. Resolves with the exit code and never rejects:
 * errors are written to `stderr`.
 */
export async function runCli(argv: readonly string[], io: CliIO): Promise<ExitCode> {
  const stdout = watchOutput(io.stdout)
  const code = await executeLine(argv, io)
  const fault = await stdout.end()
  if (fault === null) return code
  io.stderr.write(`statewright: The output is incomplete: stdout cannot be written (${fault}).\n`)
  return exitCodes.error
}

async function executeLine(argv: readonly string[], io: CliIO): Promise<ExitCode> {
  const [first, second] = argv
  const named = commands.find(({ name }) => name === first)
  const group = named !== undefined && 'commands' in named ? named : undefined
  const command = group
    ? group.commands.find(({ name }) => name === `${group.name} ${second ?? ''}`)
    : (named as Command | undefined)
  try {
    if (command) return await executeCommand(command, argv.slice(group ? 2 : 1), io)
    return group ? executeGroup(group, argv.slice(1), io) : executeGlobal(argv, io)
  } catch (error) {
    if (io.signal.aborted) return exitCodes.cancelled
    return writeError(error, command ?? group, io)
  }
}

async function executeCommand(command: Command, args: readonly string[], io: CliIO): Promise<ExitCode> {
  if (asksForHelp(args)) {
    io.stdout.write(formatCommandHelp(command))
    return exitCodes.completed
  }
  return command.execute(args, io)
}

/** Help takes precedence over everything else, including errors. */
function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return (end < 0 ? args : args.slice(0, end)).some((arg) => arg === '--help' || arg === '-h')
}

function executeGlobal(argv: readonly string[], io: CliIO): ExitCode {
  const [first] = argv
  if (first === undefined) {
    io.stderr.write(formatGlobalHelp(commands, globalOptions))
    return exitCodes.usage
  }
  if (first !== 'help' && !first.startsWith('-')) throw unknownCommandError(first, commands)
  const { values } = parseOptions(first === 'help' ? [] : argv, globalOptions)
  io.stdout.write(
    values.has('version') ? `${readPackageVersion()}\n` : formatGlobalHelp(commands, globalOptions),
  )
  return exitCodes.completed
}

/** A group without a command, or with an unknown one. */
function executeGroup(group: CommandGroup, [first, ...rest]: readonly string[], io: CliIO): ExitCode {
  if (asksForHelp([first ?? '', ...rest]) || first === 'help') {
    io.stdout.write(formatGroupHelp(group))
    return exitCodes.completed
  }
  if (first !== undefined && !first.startsWith('-'))
    throw unknownCommandError(`${group.name} ${first}`, group.commands)
  io.stderr.write(formatGroupHelp(group))
  return exitCodes.usage
}

function unknownCommandError(word: string, known: readonly { name: string }[]): Error {
  const names = known.map(({ name }) => name)
  const meant = findNearestName(word, names)
  const hint = meant === undefined ? `Commands: ${names.join(', ')}.` : `Did you mean '${meant}'?`
  return badUsageError(`Unknown command '${word}'. ${hint}`, word)
}

function writeError(error: unknown, command: { name: string } | undefined, io: CliIO): ExitCode {
  io.stderr.write(`statewright: ${formatError(error)}\n`)
  if (error instanceof CliError && error.code === 'bad_usage') {
    io.stderr.write(`See 'statewright ${command ? `${command.name} ` : ''}--help'.\n`)
  }
  return error instanceof StatewrightError ? exitCodes.usage : exitCodes.error
}

/** Replaces API calls in error messages by the equivalent commands. */
const commandReplacements: readonly (readonly [RegExp, (id: string, seq: string) => string])[] = [
  [/agent\.fork\('([^']+)', (\d+)\)/g, (id, seq) => `statewright sessions fork ${id} --at ${seq}`],
  [/agent\.resume\('([^']+)'\)/g, (id) => `statewright resume ${id}`],
  [/agent\.send\('([^']+)', \{ type: 'cancel' \}\)/g, (id) => `statewright send ${id} cancel`],
  [/agent\.run\(input, \{ session: '([^']+)' \}\)/g, (id) => `statewright run --session ${id} 'Your prompt'`],
  [/delete the session, or/g, () => "delete the session ('statewright sessions delete'), or"],
]

/** Formats an error for the terminal, with commands instead of API calls. */
function formatError(error: unknown): string {
  const message = error instanceof Error ? error.message || error.name : String(error)
  const replaced = commandReplacements.reduce(
    (text, [pattern, toCommand]) =>
      // A pattern without groups gets the offset in place of an id.
      text.replaceAll(pattern, (_, id: string | number, seq: string) =>
        toCommand(quoteShellWord(String(id)), seq),
      ),
    message,
  )
  const isBusy = error instanceof StoreError && error.code === 'session_busy'
  const hint = isBusy
    ? ` To look at it: statewright sessions show ${quoteShellWord(error.subject ?? '')}`
    : ''
  return stripControls(replaced + hint).trimEnd()
}

function readPackageVersion(): string {
  const { version } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as {
    version: string
  }
  return version
}

function formatGlobalHelp(
  commands: readonly Pick<Command, 'name' | 'about'>[],
  options: OptionSpecs,
): string {
  return [
    'Runs LLM agents as explicit statecharts, with guardrails built in.',
    '',
    'Usage: statewright <command> [options]',
    '',
    'Commands:',
    ...formatColumns(commands.map(({ name, about }) => [name, about])),
    '',
    'Options:',
    ...formatColumns(Object.entries(options).map(([name, spec]) => [formatFlag(name, spec), spec.about])),
    '',
    "'statewright <command> --help' says more about a command.",
    '',
  ].join('\n')
}

function formatGroupHelp({ name, about, commands }: CommandGroup): string {
  return [
    about,
    '',
    `Usage: statewright ${name} <command> [options]`,
    '',
    'Commands:',
    ...formatColumns(commands.map((command) => [command.name, command.about])),
    '',
    `'statewright ${name} <command> --help' says more about a command.`,
    '',
  ].join('\n')
}

function formatCommandHelp({ name, about, positional, options, notes }: Command): string {
  return [
    about,
    '',
    `Usage: statewright ${name} [options] ${positional}`.trimEnd(),
    '',
    'Options:',
    ...formatColumns(Object.entries(options).map(([option, spec]) => [formatFlag(option, spec), spec.about])),
    ...notes.flatMap((note) => ['', note]),
    '',
  ].join('\n')
}

function formatFlag(name: string, { short, value, optional }: OptionSpec): string {
  const flag = short === undefined ? `    --${name}` : `-${short}, --${name}`
  if (value === undefined) return flag
  return optional ? `${flag}[=${value}]` : `${flag} ${value}`
}

function formatColumns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}
