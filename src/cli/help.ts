import type { Command, CommandGroup } from './command.js'
import type { OptionSpec, OptionSpecs } from './options.js'

export function globalHelp(
  commands: readonly Pick<Command, 'name' | 'about'>[],
  options: OptionSpecs,
): string {
  return [
    'Runs LLM agents as explicit statecharts, with guardrails built in.',
    '',
    'Usage: statewright <command> [options]',
    '',
    'Commands:',
    ...columns(commands.map(({ name, about }) => [name, about])),
    '',
    'Options:',
    ...columns(Object.entries(options).map(([name, spec]) => [label(name, spec), spec.about])),
    '',
    "'statewright <command> --help' says more about a command.",
    '',
  ].join('\n')
}

export function groupHelp({ name, about, commands }: CommandGroup): string {
  return [
    about,
    '',
    `Usage: statewright ${name} <command> [options]`,
    '',
    'Commands:',
    ...columns(commands.map((command) => [command.name, command.about])),
    '',
    `'statewright ${name} <command> --help' says more about a command.`,
    '',
  ].join('\n')
}

export function commandHelp({ name, about, positional, options, notes }: Command): string {
  return [
    about,
    '',
    `Usage: statewright ${name} [options] ${positional}`.trimEnd(),
    '',
    'Options:',
    ...columns(Object.entries(options).map(([option, spec]) => [label(option, spec), spec.about])),
    ...notes.flatMap((note) => ['', note]),
    '',
  ].join('\n')
}

function label(name: string, { short, value, optional }: OptionSpec): string {
  const flag = short === undefined ? `    --${name}` : `-${short}, --${name}`
  if (value === undefined) return flag
  return optional ? `${flag}[=${value}]` : `${flag} ${value}`
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}
