import type { Readable, Writable } from 'node:stream'
import { parseArgs } from 'node:util'
import { StatewrightError } from '../core/base/errors.js'
import { findNearestName } from '../core/base/text.js'
import { stripControls } from '../core/format/format-words.js'
import { quoteShellWord } from '../core/format/shell-words.js'
import { type ExitCode, exitCodes } from './exit-codes.js'

export interface CliIO {
  stdin: Readable & { isTTY?: boolean }
  stdout: Writable & { isTTY?: boolean; columns?: number }
  stderr: Writable & { isTTY?: boolean; columns?: number }
  env: Readonly<Record<string, string | undefined>>
  cwd: string
  /** The user's data folder, or null. */
  dataFolder: () => Promise<string | null>
  /** Aborts when the user presses Ctrl-C. */
  signal: AbortSignal
  sigterm: SigtermHandler
}

/** A run with a stored session drains at SIGTERM. Without a listener, SIGTERM interrupts like Ctrl-C. */
export class SigtermHandler {
  #listener: (() => void) | undefined
  hasArrived = false

  setListener(listener: () => void): () => void {
    this.#listener = listener
    return () => {
      if (this.#listener === listener) this.#listener = undefined
    }
  }

  /** Returns false if there is no listener. */
  raise(): boolean {
    if (this.#listener === undefined) return false
    this.hasArrived = true
    this.#listener()
    return true
  }
}

/** An error that the user can fix, such as invalid usage or a missing file. Exit code 2. */
export class CliError extends StatewrightError {
  override readonly name = 'CliError'
}

/** `subject` is the option or argument. */
export function badUsageError(message: string, subject?: string, options?: ErrorOptions): CliError {
  return new CliError('bad_usage', message, subject, options)
}

export function writeNotice({ stderr }: Pick<CliIO, 'stderr'>, text: string): void {
  stderr.write(`statewright: ${stripControls(text)}\n`)
}

/** Replaces API calls in error messages with the equivalent commands. */
const commandReplacements: readonly (readonly [RegExp, (id: string, seq: string | undefined) => string])[] = [
  [
    /agent\.fork\('([^']+)'(?:, (\d+))?\)/g,
    (id, seq) => `statewright sessions fork ${id}${seq ? ` --at ${seq}` : ''}`,
  ],
  [/agent\.resume\('([^']+)'\)/g, (id) => `statewright resume ${id}`],
  [/agent\.replay\('([^']+)'\)/g, (id) => `statewright sessions show ${id}`],
  [/agent\.send\('([^']+)', \{ type: 'cancel' \}\)/g, (id) => `statewright send ${id} cancel`],
  [/agent\.run\(input, \{ session: '([^']+)' \}\)/g, (id) => `statewright run --session ${id} 'Your prompt'`],
  [/delete the session, or/g, () => "delete the session ('statewright sessions delete'), or"],
]

export function toCommands(message: string): string {
  return commandReplacements.reduce(
    (text, [pattern, toCommand]) =>
      // For a pattern without groups, this argument is the offset instead of an id.
      text.replaceAll(pattern, (_, id: string | number, seq: string | undefined) =>
        toCommand(quoteShellWord(String(id)), seq),
      ),
    message,
  )
}

/** One option of a command, for parsing and for `--help`. */
export interface OptionSpec {
  /** The name of the option's value, such as `FILE`. Absent for a flag. */
  value?: string
  /** Whether the value can be omitted. If present, it is written as `--name=VALUE`. */
  optional?: true
  /** For an option with an optional value, a following word that matches this pattern is the value. */
  nextWord?: RegExp
  short?: string
  about: string
  choices?: readonly string[]
  /** The value is a whole number from `min` to `max`. */
  min?: number
  max?: number
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>

type OptionValue<Spec> = Spec extends { choices: readonly (infer Choice)[] }
  ? Choice
  : Spec extends { min: number }
    ? number
    : Spec extends { value: string }
      ? string | (Spec extends { optional: true } ? true : never)
      : true

type OptionValues<Specs extends OptionSpecs> = {
  readonly [Name in keyof Specs]?: OptionValue<Specs[Name]>
}

export interface ParsedOptions<Specs extends OptionSpecs = OptionSpecs> {
  /** The last value of each option. True for a flag, or if the value is omitted. */
  values: OptionValues<Specs>
  all: (name: keyof Specs & string) => readonly string[]
  positionals: readonly string[]
}

export interface Command {
  name: string
  about: string
  /** The arguments in the usage line, such as `ID [MESSAGE…]`. */
  positional: string
  options: OptionSpecs
  /** Paragraphs below the options in `--help`. Indented lines are not wrapped. */
  notes: readonly string[]
  execute(args: readonly string[], io: CliIO): Promise<ExitCode>
}

export interface CommandGroup {
  name: string
  about: string
  /** Commands with their full names, such as `sessions list`. */
  commands: readonly Command[]
}

const helpOption = { help: { short: 'h', about: 'show this help' } } satisfies OptionSpecs

interface CommandSpec<Specs extends OptionSpecs> extends Omit<Command, 'options' | 'execute' | 'positional'> {
  positional?: string
  /** Completes the error for a missing argument. Defaults to `missingSession` for `ID`. */
  missing?: string
  options: Specs
  /** Returns no exit code if the command completed. */
  execute(parsed: ParsedOptions<Specs>, io: CliIO): Promise<ExitCode | void>
}

export function defineCommand<const Specs extends OptionSpecs>(spec: CommandSpec<Specs>): Command {
  const { name, about, notes, positional = '', missing, options } = spec
  return {
    name,
    about,
    notes,
    positional,
    options: { ...options, ...helpOption },
    execute: async (args, io) => {
      const parsed = parseOptions(args, options)
      checkPositionals(parsed.positionals, name, positional, missing)
      return (await spec.execute(parsed, io)) ?? exitCodes.completed
    },
  }
}

export const missingSession = "'statewright sessions list' shows the ids."

function checkPositionals(
  words: readonly string[],
  name: string,
  positional: string,
  hint = positional.startsWith('ID') ? missingSession : '',
): void {
  const names = positional.split(' ').filter(Boolean)
  const usage = `Usage: statewright ${name} ${positional}`.trimEnd()
  const absent = names.filter((word) => !word.startsWith('['))[words.length]
  if (absent !== undefined)
    throw badUsageError(`${absent} is missing. ${hint === '' ? '' : `${hint} `}${usage}`, absent)
  const extra = positional.includes('…') ? undefined : words[names.length]
  if (extra !== undefined) throw badUsageError(`Unexpected argument '${extra}'. ${usage}`, extra)
}

/** `node:util` parses leniently, in order to report errors in our own words. @throws {CliError} `bad_usage` */
export function parseOptions<const Specs extends OptionSpecs>(
  args: readonly string[],
  specs: Specs,
): ParsedOptions<Specs> {
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      Object.entries(specs).map(([name, { value, optional, short }]) => [
        name,
        { type: value === undefined || optional ? 'boolean' : 'string', ...(short && { short }) },
      ]),
    ),
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  const options: [name: string, value: string | true][] = []
  const positionals: string[] = []
  for (const token of tokens) {
    const last = options.at(-1)
    if (token.kind === 'positional') {
      const isValue = last?.[1] === true && args[token.index - 1] === `--${last[0]}`
      if (isValue && specs[last[0]]?.nextWord?.test(token.value)) last[1] = token.value
      else positionals.push(token.value)
    } else if (token.kind === 'option') {
      const spec = Object.hasOwn(specs, token.name) ? specs[token.name] : undefined
      if (!spec) throw unknownOptionError(token.rawName, { ...specs, ...helpOption })
      options.push([token.name, readValue(token, spec)])
    }
  }
  const values = options.map(([name, value]) => [
    name,
    specs[name]?.min === undefined ? value : Number(value),
  ])
  return {
    values: Object.fromEntries(values) as OptionValues<Specs>,
    all: (name) => options.flatMap(([option, value]) => (option === name && value !== true ? value : [])),
    positionals,
  }
}

interface OptionToken {
  name: string
  rawName: string
  value?: string | undefined
  inlineValue?: boolean | undefined
}

function readValue({ name, rawName, value, inlineValue }: OptionToken, spec: OptionSpec): string | true {
  if (spec.value === undefined) {
    if (value !== undefined) throw badUsageError(`${rawName} is a flag and takes no value.`, rawName)
    return true
  }
  if (spec.optional && value === undefined) return true
  if (value === undefined || value === '')
    throw badUsageError(`${rawName} needs a value: ${rawName} ${spec.value}.`, rawName)
  if (!inlineValue && value.length > 1 && value.startsWith('-'))
    throw badUsageError(
      `${rawName} needs a value, and '${value}' looks like an option. If it is the value, write ${rawName}=${value}.`,
      rawName,
    )
  if (spec.choices) checkChoice(`--${name}`, value, spec.choices)
  const { min, max = Number.MAX_SAFE_INTEGER } = spec
  if (min === undefined || (/^\d+$/.test(value) && Number(value) >= min && Number(value) <= max)) return value
  const range = spec.max === undefined ? `of at least ${min}` : `from ${min} to ${max}`
  throw badUsageError(`--${name} must be a whole number ${range} (got '${value}').`, `--${name}`)
}

/** @throws {CliError} `bad_usage`, with the closest choice */
export function checkChoice(option: string, value: string, choices: readonly string[]): void {
  if (choices.includes(value)) return
  const near = findNearestName(value, choices)
  const hint = near === undefined ? '' : ` Did you mean ${near}?`
  throw badUsageError(`${option} must be one of ${choices.join(', ')} (got '${value}').${hint}`, option)
}

function unknownOptionError(rawName: string, specs: OptionSpecs): CliError {
  const names = Object.keys(specs)
  const word = rawName.replace(/^-+/, '')
  const near =
    names.find((name) => word.length > 1 && name.startsWith(word)) ??
    findNearestName(word, names) ??
    names.find((name) => name.split('-').some((part) => part === word || word.split('-').includes(part)))
  const hint =
    near === undefined
      ? `Options: ${names.map((name) => `--${name}`).join(', ')}.`
      : `Did you mean --${near}?`
  return badUsageError(`Unknown option ${rawName}. ${hint}`, rawName)
}

export function parseTag(text: string): [name: string, value: string] {
  const at = text.indexOf('=')
  if (at < 1 || at === text.length - 1)
    throw badUsageError(`--tag must be NAME=VALUE, such as user=ann (got '${text}').`, '--tag')
  return [text.slice(0, at), text.slice(at + 1)]
}

export function parseDecimal(
  option: string,
  text: string | undefined,
  { is, phrase }: { is: (value: number) => boolean; phrase: string },
): number | undefined {
  if (text === undefined) return undefined
  if (/^\d*\.?\d+$/.test(text) && is(Number(text))) return Number(text)
  throw badUsageError(`${option} must be ${phrase} (got '${text}').`, option)
}

/** Parses an age (`30m`, `12h`, `7d`) or a date. Without a time zone, a date would depend on the machine. */
export function parseTime(subject: string, text: string, now: number): number {
  const age = /^(\d+)(m|h|d)$/.exec(text)
  if (age) return now - Number(age[1]) * { m: 60_000, h: 3_600_000, d: 86_400_000 }[age[2] as 'm' | 'h' | 'd']
  const at = parseDate(text)
  if (at !== undefined) return at
  throw badUsageError(
    `${subject} must be an age such as 12h or 7d, or a date with a time zone such as 2026-05-04T08:30:00Z (got '${text}').`,
    subject,
  )
}

/** Parses a date with a time zone to milliseconds since the epoch. Undefined for other texts. */
export function parseDate(text: string): number | undefined {
  const at = /^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:?\d\d)$/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? undefined : at
}
