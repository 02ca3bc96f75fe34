import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { StatewrightError } from '../core/base/errors.js'
import { findNearestName } from '../core/base/text.js'
import { StoreError } from '../core/sessions/store/store-error.js'
import { quoteShellWord } from '../core/format/shell-words.js'
import { packageRoot } from '../studio/studio-page.js'
import {
  badUsageError,
  CliError,
  type CliIO,
  type Command,
  type CommandGroup,
  type OptionSpecs,
  parseOptions,
  toCommands,
  writeNotice,
} from './command.js'
import { batchCommand } from './commands/batch.js'
import { budgetsCommand } from './commands/budgets.js'
import { diagramCommand } from './commands/diagram.js'
import { diffCommand, pathsCommand, propertiesCommand } from './commands/machines.js'
import { evalCommand } from './commands/eval.js'
import { grantsCommand } from './commands/grants.js'
import { guardsCommand } from './commands/guards.js'
import { mcpCommand } from './commands/mcp.js'
import { resumeCommand } from './commands/resume.js'
import { runCommand } from './commands/run.js'
import { sessionsCommands } from './commands/sessions/index.js'
import { studioCommand, statelyCommand } from './commands/studio.js'
import { sendCommand } from './commands/send.js'
import { type ExitCode, exitCodes } from './exit-codes.js'
import { formatCommandHelp, formatGlobalHelp, formatGroupHelp } from './help.js'
import { watchOutput } from './output.js'

const sections: readonly { title: string; commands: readonly (Command | CommandGroup)[] }[] = [
  { title: 'Run agents', commands: [runCommand, resumeCommand, sendCommand, batchCommand, mcpCommand] },
  {
    title: 'Inspect runs',
    commands: [sessionsCommands, grantsCommand, studioCommand, statelyCommand, budgetsCommand],
  },
  { title: 'Evaluate agents', commands: [evalCommand, guardsCommand] },
  {
    title: 'Work with state machines',
    commands: [diagramCommand, pathsCommand, propertiesCommand, diffCommand],
  },
]
const commands = sections.flatMap((section) => section.commands)

const globalOptions = {
  help: { short: 'h', about: 'show this help' },
  version: { short: 'V', about: 'show the version' },
} satisfies OptionSpecs

/** Runs a command line and returns its exit code. Never rejects. Errors are written to `stderr`. */
export async function runCli(argv: readonly string[], io: CliIO): Promise<ExitCode> {
  const stdout = watchOutput(io.stdout)
  const code = await executeLine(argv, io)
  const fault = await stdout.end()
  if (fault === null) return code
  writeNotice(io, `The output is incomplete: cannot write to stdout (${fault}).`)
  return exitCodes.error
}

async function executeLine(argv: readonly string[], io: CliIO): Promise<ExitCode> {
  const [first, second] = argv
  if (first === 'help' && second !== undefined) return executeLine([...argv.slice(1), '--help'], io)
  const named = commands.find(({ name }) => name === first)
  const group = named !== undefined && 'commands' in named ? named : undefined
  const command = group
    ? group.commands.find(({ name }) => name === `${group.name} ${second ?? ''}`)
    : (named as Command | undefined)
  try {
    if (!command) return group ? executeGroup(group, argv.slice(1), io) : executeGlobal(argv, io)
    const args = argv.slice(group ? 2 : 1)
    if (!asksForHelp(args)) return await command.execute(args, io)
    io.stdout.write(formatCommandHelp(command))
    return exitCodes.completed
  } catch (error) {
    if (io.signal.aborted) return exitCodes.cancelled
    writeNotice(io, formatError(error).trimEnd())
    if (error instanceof CliError && error.code === 'bad_usage')
      io.stderr.write(`See 'statewright ${[(command ?? group)?.name ?? [], '--help'].flat().join(' ')}'.\n`)
    return error instanceof StatewrightError ? exitCodes.usage : exitCodes.error
  }
}

/** Help takes precedence over everything else, including errors. */
function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return (end < 0 ? args : args.slice(0, end)).some((arg) => arg === '--help' || arg === '-h')
}

function executeGlobal(argv: readonly string[], io: CliIO): ExitCode {
  const [first] = argv
  const help = formatGlobalHelp(sections, globalOptions)
  if (first === undefined) {
    io.stderr.write(help)
    return exitCodes.usage
  }
  if (first !== 'help' && !first.startsWith('-')) throw unknownCommandError(first, commands)
  const { values } = readGlobalOptions(first === 'help' ? [] : argv)
  const readManifest = (): { version: string } =>
    JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as { version: string }
  io.stdout.write(values.version ? `${readManifest().version}\n` : help)
  return exitCodes.completed
}

function readGlobalOptions(argv: readonly string[]) {
  const name = /^--([^=]+)/.exec(argv[0] ?? '')?.[1] ?? ''
  const owner = commands.find((command) => 'options' in command && Object.hasOwn(command.options, name))
  if (owner && !Object.hasOwn(globalOptions, name))
    throw badUsageError(
      `--${name} belongs to a command. Write the command first: statewright ${owner.name} --${name}.`,
      `--${name}`,
    )
  return parseOptions(argv, globalOptions)
}

/** Called for a group without a command, or with an unknown one. */
function executeGroup(group: CommandGroup, [first, ...rest]: readonly string[], io: CliIO): ExitCode {
  const isHelp = asksForHelp([first ?? '', ...rest]) || first === 'help'
  if (!isHelp && first !== undefined && !first.startsWith('-'))
    throw unknownCommandError(`${group.name} ${first}`, group.commands)
  ;(isHelp ? io.stdout : io.stderr).write(formatGroupHelp(group))
  return isHelp ? exitCodes.completed : exitCodes.usage
}

/** Suggestions for names that other tools use or that earlier versions used. */
const suggestedCommands: Readonly<Record<string, string>> = {
  ask: 'run',
  chat: 'run',
  start: 'run',
  continue: 'resume',
  tell: 'send',
  cancel: 'send ID cancel',
  evaluate: 'eval',
  test: 'eval',
  replay: 'guards',
  ls: 'sessions list',
  logs: 'sessions show',
  ui: 'studio',
  dev: 'studio',
  graph: 'diagram',
}

function unknownCommandError(word: string, known: readonly { name: string }[]): CliError {
  const names = known.map(({ name }) => name)
  const inGroup = commands
    .flatMap((one) => ('commands' in one ? one.commands : []))
    .find(({ name }) => name.endsWith(` ${word}`))?.name
  const near =
    (Object.hasOwn(suggestedCommands, word) ? suggestedCommands[word] : inGroup) ??
    findNearestName(word, names)
  const hint = near === undefined ? `Commands: ${names.join(', ')}.` : `Did you mean '${near}'?`
  return badUsageError(`Unknown command '${word}'. ${hint}`, word)
}

function formatError(error: unknown): string {
  const message = error instanceof Error ? error.message || error.name : String(error)
  const replaced = toCommands(message)
  const isBusy = error instanceof StoreError && error.code === 'session_busy'
  return isBusy
    ? `${replaced} To inspect it: statewright sessions show ${quoteShellWord(error.subject ?? '')}`
    : replaced
}
