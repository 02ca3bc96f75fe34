import * as z from 'zod/mini'
import { ConfigError } from '../errors.js'
import { keyPaths, keysAt } from './known-keys.js'
import { nearest } from './nearest.js'

/** One thing that is wrong: the key's path, and a sentence that says what to do about it. */
export interface Problem {
  path: string
  sentence: string
}

export interface CheckOptions {
  /** Options that stand beside the checked keys, for "did you mean". */
  beside?: readonly string[]
  /** Whether the value at this path stays out of messages because it may be a secret. */
  isSecret?: (path: string) => boolean
}

/** Holds the input against the schema. Throws one ConfigError with every problem; `what` names the input in it. */
export function check<Output>(
  schema: z.core.$ZodType<Output>,
  input: unknown,
  what: string,
  options: CheckOptions = {},
): Output {
  let result: z.core.util.SafeParseResult<Output>
  try {
    result = z.safeParse(schema, input)
  } catch (error) {
    // Only an input that fights back gets here: a getter that throws, a revoked proxy.
    throw refusal(what, [{ path: '', sentence: 'It cannot be read; use plain objects.' }], { cause: error })
  }
  if (result.success) return result.data
  throw refusal(what, problemsIn(result.error.issues, schema, input, options))
}

export function refusal(what: string, problems: readonly Problem[], options?: ErrorOptions): ConfigError {
  const lines = problems.map(({ sentence }) => `  ${sentence}`)
  return new ConfigError(
    'invalid_config',
    [`Invalid ${what}:`, ...lines].join('\n'),
    problems[0]?.path || undefined,
    options,
  )
}

function problemsIn(
  issues: readonly z.core.$ZodIssue[],
  schema: z.core.$ZodType,
  input: unknown,
  options: CheckOptions,
): Problem[] {
  const problems = new Map<string, Problem>()
  const add = (path: string, sentence: string) => {
    if (!problems.has(path)) problems.set(path, { path, sentence })
  }
  for (const issue of issues) {
    const path = pathOf(issue.path)
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys) {
        add(pathOf([...issue.path, key]), unknownKey(issue.path, key, schema, options.beside ?? []))
      }
    } else {
      const shown = options.isSecret?.(path) === true ? '' : ` (is ${show(valueAt(input, issue.path))})`
      add(path, `${path === '' ? 'It' : path} must be ${issue.message}${shown}.`)
    }
  }
  return [...problems.values()]
}

function unknownKey(
  path: readonly PropertyKey[],
  key: string,
  schema: z.core.$ZodType,
  beside: readonly string[],
): string {
  const siblings = [...keysAt(schema, path), ...(path.length === 0 ? beside : [])]
  const meant = nearest(key, siblings)
  return `${pathOf([...path, key])} is not a known key. ${
    meant === undefined ? (elsewhere(key, schema) ?? known(siblings)) : didYouMean(pathOf([...path, meant]))
  }`
}

/** A key that stands under another section: `maxSteps` at the top. */
function elsewhere(key: string, schema: z.core.$ZodType): string | undefined {
  // Reversed, so that of two keys with one name the first is meant.
  const byName = new Map(
    keyPaths(schema)
      .toReversed()
      .map((path) => [path.slice(path.lastIndexOf('.') + 1), path]),
  )
  const path = byName.get(nearest(key, [...byName.keys()]) ?? '')
  return path === undefined ? undefined : didYouMean(path)
}

function didYouMean(path: string): string {
  return `Did you mean ${path}?`
}

function known(keys: readonly string[]): string {
  return `Known here: ${keys.join(', ')}.`
}

/** `prices["gpt-5"].inputPerMillion`, `messages[0].role` */
function pathOf(keys: readonly PropertyKey[]): string {
  return keys.reduce<string>((path, key) => {
    if (typeof key === 'number') return `${path}[${key}]`
    const name = String(key)
    if (!/^[A-Za-z_$][\w$]{0,59}$/.test(name)) return `${path}[${JSON.stringify(cut(name))}]`
    return path === '' ? name : `${path}.${name}`
  }, '')
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((value, key) => (isObject(value) ? Reflect.get(value, key) : undefined), input)
}

/** A value for people: short, and never an exception. */
function show(value: unknown): string {
  if (value === null) return 'null'
  switch (typeof value) {
    case 'undefined':
      return 'missing'
    case 'string':
      return `'${cut(value)}'`
    case 'object':
      return Array.isArray(value) ? 'a list' : 'an object'
    case 'number':
    case 'boolean':
    case 'bigint':
      return String(value)
    default:
      return `a ${typeof value}`
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** On one line, and not too long. */
function cut(value: string): string {
  const text = value.slice(0, 100).replaceAll(/\s+/g, ' ')
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}
