import { parseArgs } from 'node:util'
import { badUsageError } from './cli-error.js'
import { findNearestName } from '../core/base/text.js'

/** One option of a command, for parsing and for `--help`. */
export interface OptionSpec {
  /** The name of its value (`FILE`); absent for a switch. */
  value?: string
  /** The value is optional, and written as `--name=VALUE`. */
  optional?: true
  short?: string
  about: string
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>

export interface ParsedOptions<Name extends string = string> {
  /** The value of an option; true for a switch. The last one counts. */
  values: ReadonlyMap<Name, string | true>
  /** All values of an option that may be repeated, in order. */
  all: (name: Name) => readonly string[]
  /** The value of an option; undefined for a switch. */
  text: (name: Name) => string | undefined
  has: (name: Name) => boolean
  positionals: readonly string[]
}

/** The part that a reader of some options needs. */
export type GivenOptions<Name extends string> = Pick<ParsedOptions<Name>, 'all' | 'text' | 'has'>

/**
 * Parses a command's arguments with `node:util` parseArgs in its lenient mode, so that the errors are ours. Throws a CliError
 * for unknown options and for missing or misplaced values.
 */
export function parseOptions<Specs extends OptionSpecs>(
  args: readonly string[],
  specs: Specs,
): ParsedOptions<keyof Specs & string> {
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      Object.entries(specs).map(([name, { value, optional, short }]) => [
        name,
        {
          type: value === undefined || optional ? 'boolean' : 'string',
          ...(short !== undefined && { short }),
        },
      ]),
    ),
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  type Name = keyof Specs & string
  const given: [Name, string | true][] = []
  const positionals: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    else if (token.kind === 'option') {
      const spec = Object.hasOwn(specs, token.name) ? specs[token.name] : undefined
      if (!spec) throw unknownOptionError(token.rawName, Object.keys(specs))
      given.push([token.name, readValue(token, spec)])
    }
  }
  const values = new Map(given)
  return {
    values,
    all: (name) => given.flatMap(([option, value]) => (option === name && value !== true ? value : [])),
    text: (name) => {
      const value = values.get(name)
      return value === true ? undefined : value
    },
    has: (name) => values.has(name),
    positionals,
  }
}

/** A whole number of at least `from`. */
export function parseWholeNumber(option: string, text: string | undefined, from: number): number | undefined {
  if (text === undefined) return undefined
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(value) && value >= from) return value
  throw badUsageError(`${option} must be a whole number of at least ${from} (is '${text}').`, option)
}

/** The value of `--tag NAME=VALUE`. */
export function parseTag(text: string): [name: string, value: string] {
  const at = text.indexOf('=')
  if (at < 1 || at === text.length - 1)
    throw badUsageError(`--tag must be NAME=VALUE, such as user=ann (is '${text}').`, '--tag')
  return [text.slice(0, at), text.slice(at + 1)]
}

interface OptionToken {
  rawName: string
  value?: string | undefined
  inlineValue?: boolean | undefined
}

function readValue({ rawName, value, inlineValue }: OptionToken, spec: OptionSpec): string | true {
  if (spec.value === undefined) {
    if (value !== undefined) throw badUsageError(`${rawName} is a switch and takes no value.`, rawName)
    return true
  }
  if (spec.optional && value === undefined) return true
  if (value === undefined || value === '')
    throw badUsageError(`${rawName} needs a value: ${rawName} ${spec.value}.`, rawName)
  if (!inlineValue && value.length > 1 && value.startsWith('-')) {
    throw badUsageError(
      `${rawName} needs a value, and '${value}' looks like an option. If it is the value, write ${rawName}=${value}.`,
      rawName,
    )
  }
  return value
}

function unknownOptionError(rawName: string, names: readonly string[]): Error {
  const word = rawName.replace(/^-+/, '')
  const meant = names.find((name) => word.length > 1 && name.startsWith(word)) ?? findNearestName(word, names)
  return badUsageError(
    `Unknown option ${rawName}.${meant === undefined ? '' : ` Did you mean --${meant}?`}`,
    rawName,
  )
}
