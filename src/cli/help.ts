import type { Command, CommandGroup } from './command.js'
import type { OptionSpec, OptionSpecs } from './parse-options.js'

export function formatGlobalHelp(
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

export function formatGroupHelp({ name, about, commands }: CommandGroup): string {
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

export function formatCommandHelp({ name, about, positional, options, notes }: Command): string {
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
