import { wrapWords } from '../core/format/format-words.js'
import type { Command, CommandGroup, OptionSpec, OptionSpecs } from './command.js'

/** The maximum width of a line, which fits most terminals. */
const maxColumns = 80

/** The maximum width of the left column. Wider text gets its own line. */
const maxLeft = 26

interface CommandSection {
  title: string
  commands: readonly Pick<Command, 'name' | 'about'>[]
}

export function formatGlobalHelp(sections: readonly CommandSection[], options: OptionSpecs): string {
  const width = Math.max(...sections.flatMap(({ commands }) => commands.map(({ name }) => name.length)))
  return [
    'Runs LLM agents as explicit statecharts, with guardrails built in.',
    '',
    'Usage: statewright <command> [options]',
    ...sections.flatMap(({ title, commands }) => ['', `${title}:`, ...formatCommands(commands, width)]),
    '',
    'Options:',
    ...formatOptions(options),
    '',
    "Run 'statewright <command> --help' for a command's options.",
    '',
  ].join('\n')
}

export function formatGroupHelp({ name, about, commands }: CommandGroup): string {
  return [
    ...wrap(about),
    '',
    `Usage: statewright ${name} <command> [options]`,
    '',
    'Commands:',
    ...formatCommands(commands),
    '',
    `Run 'statewright ${name} <command> --help' for a command's options.`,
    '',
  ].join('\n')
}

export function formatCommandHelp({ name, about, positional, options, notes }: Command): string {
  return [
    ...wrap(about),
    '',
    `Usage: statewright ${name} [options] ${positional}`.trimEnd(),
    '',
    'Options:',
    ...formatOptions(options),
    ...notes.flatMap((note) => ['', ...note.split('\n').flatMap((line) => wrap(line))]),
    '',
  ].join('\n')
}

function formatCommands(commands: CommandSection['commands'], width?: number): string[] {
  return formatColumns(
    commands.map(({ name, about }) => [name, about]),
    width,
  )
}

function formatOptions(options: OptionSpecs): string[] {
  return formatColumns(Object.entries(options).map(([name, spec]) => [formatFlag(name, spec), spec.about]))
}

function formatFlag(name: string, { short, value, optional }: OptionSpec): string {
  const flag = short === undefined ? `    --${name}` : `-${short}, --${name}`
  if (value === undefined) return flag
  return optional ? `${flag}[=${value}]` : `${flag} ${value}`
}

function formatColumns(
  rows: readonly (readonly [string, string])[],
  width = Math.max(...rows.map(([left]) => (left.length > maxLeft ? 0 : left.length))),
): string[] {
  const indent = ' '.repeat(width + 4)
  return rows.flatMap(([left, right]) => {
    const lines = wrap(right, maxColumns - indent.length).map((line) => indent + line)
    const head = `  ${left}`
    if (left.length > width) return [head, ...lines]
    const [first = '', ...rest] = lines
    return [`${head.padEnd(indent.length)}${first.slice(indent.length)}`, ...rest]
  })
}

/** Wraps a paragraph. An indented line is kept whole. */
function wrap(text: string, width = maxColumns): string[] {
  return text.startsWith(' ') ? [text] : wrapWords(text, width).split('\n')
}
