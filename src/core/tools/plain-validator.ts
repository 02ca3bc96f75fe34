import { format, type OutputUnit, type Schema, Validator } from '@cfworker/json-schema'
import type { JsonObject } from '../../../machines/agent/json.js'
import { asList, isObject } from '../base/values.js'
import { valueOr } from '../base/maybe-promise.js'
import { loadOnce } from '../base/platform.js'
import { normalizeSchema } from '../models/normalize-schema.js'

export type Validation<Output = unknown> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] }

export interface Issue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/**
 * Validates against a plain JSON Schema of any draft since 4. Unknown or invalid keywords, foreign patterns and
 * external references are ignored. No code is generated, so the validator works on pages that forbid `eval`. Schemas
 * may be untrusted, so patterns run in linear time with RE2.
 */
export async function createPlainValidator(schema: JsonObject): Promise<(value: unknown) => Validation> {
  const { checks, schema: safe } = await withLinearPatterns(normalizeSchema(schema))
  // Null for a contradictory schema, for example because of a duplicate `$id`.
  const validator = valueOr(() => new Validator(safe as Schema, '2020-12', false), null)
  return (value) => {
    // The validator looks up formats globally, but it is synchronous, so no other code sees these formats.
    Object.assign(format, checks)
    try {
      const { valid, errors } = validator?.validate(value) ?? { valid: true, errors: [] }
      return valid ? { value } : { issues: toIssues(errors) }
    } catch {
      return { value }
    } finally {
      for (const name of Object.keys(checks)) delete format[name]
    }
  }
}

type Checks = Record<string, (text: string) => boolean>

const patternName = 'statewright pattern '

const loadRe2 = loadOnce(() => import('re2js'))

/**
 * Replaces patterns with formats that are checked in linear time. Patterns that RE2 does not support (lookaheads, back
 * references, other dialects) are dropped.
 */
async function withLinearPatterns(schema: JsonObject): Promise<{ schema: unknown; checks: Checks }> {
  const checks: Checks = {}
  const text = JSON.stringify(schema)
  const engine = text.includes('"pattern"') ? (await loadRe2()).RE2JS : null
  // Keys that a dropped pattern might have allowed must not be rejected.
  const isOpen = text.includes('"patternProperties"') && hasUnsafeKeys(schema)

  const named = (pattern: string): string | null => {
    const name = `${patternName}${pattern}`
    if (Object.hasOwn(checks, name)) return name
    const compiled = valueOr(() => engine?.compile(engine.translateRegExp(pattern)), undefined)
    if (compiled === undefined) return null
    checks[name] = (source) => compiled.matcher(source).find()
    return name
  }

  const copy = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(copy)
    if (typeof part !== 'object' || part === null) return part
    const { pattern, ...rest } = part as JsonObject
    const copied: Record<string, unknown> = {}
    for (const [key, value] of Object.entries(rest)) {
      if (isOpen && (key === 'additionalProperties' || key === 'unevaluatedProperties') && value === false)
        continue
      copied[key] =
        key === 'enum' && Array.isArray(value)
          ? value
          : key === 'patternProperties' && isObject(value)
            ? copy(Object.fromEntries(Object.entries(value).filter(([name]) => isSafe(name))))
            : copy(value)
    }
    // The built-in `url` pattern takes exponential time.
    if (copied['format'] === 'url') copied['format'] = 'uri'
    if (typeof pattern !== 'string')
      return pattern === undefined ? copied : { ...copied, pattern: copy(pattern) }
    const name = named(pattern)
    if (name === null) return copied
    if (copied['format'] === undefined) return { ...copied, format: name }
    return { ...copied, allOf: [...asList(copied['allOf']), { format: name }] }
  }
  return { schema: copy(schema), checks }
}

function hasUnsafeKeys(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return false
  return Object.entries(schema).some(
    ([key, value]: [string, unknown]) =>
      (key === 'patternProperties' && isObject(value) && !Object.keys(value).every(isSafe)) ||
      hasUnsafeKeys(value),
  )
}

/**
 * Whether the platform's engine is certain to match the pattern in linear time, because it has no repetition or repeats
 * one character from the start.
 */
function isSafe(pattern: string): boolean {
  // `test` compiles the pattern, which can fail.
  if (valueOr(() => new RegExp(pattern, 'u').test(''), null) === null) return false
  const bare = pattern.replace(/\\[^]/gu, 'x').replace(/\[[^\]]*\]/gu, 'x')
  const repeats = bare.match(/[*+?{]/g)?.length ?? 0
  if (/\\[1-9k]/.test(pattern)) return false
  return repeats === 0 || bare === '.*' || (repeats === 1 && /^\^[^|()]*$/.test(bare))
}

/** Keywords that are reported as a whole, without the problems in their parts. */
const choices: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'not', 'contains', 'propertyNames'])

/** Keywords whose nested problems are reported at their own location. */
const wrappings: ReadonlySet<string> = new Set(
  (
    '$ref $recursiveRef allOf if dependencies dependentSchemas properties patternProperties additionalProperties ' +
    'unevaluatedProperties items prefixItems additionalItems unevaluatedItems'
  ).split(' '),
)

function toIssues(errors: readonly OutputUnit[]): Issue[] {
  const chosen = errors.filter(({ keyword }) => choices.has(keyword))
  const isInChoice = ({ keyword, keywordLocation, instanceLocation }: OutputUnit): boolean =>
    chosen.some((choice) =>
      // `false` schemas have no location of their own.
      keyword === 'false'
        ? `${instanceLocation}/`.startsWith(`${choice.instanceLocation}/`)
        : keywordLocation.startsWith(`${choice.keywordLocation}/`),
    )
  const reported = errors.filter((error) => !wrappings.has(error.keyword) && !isInChoice(error))
  return (reported.length > 0 ? reported : errors.slice(0, 1)).map(toIssue)
}

function toIssue({ keyword, instanceLocation, error }: OutputUnit): Issue {
  const path = parsePointer(instanceLocation)
  if (keyword === 'false') return { path, message: 'This field is not allowed.' }
  if (keyword === 'format' && error.includes(`"${patternName}`))
    return { path, message: 'String does not match pattern.' }
  const missing = keyword === 'required' ? /"(.*)"/s.exec(error)?.[1] : undefined
  if (missing !== undefined) return { path: [...path, missing], message: 'Missing.' }
  return { path, message: error.replace(/^Instance type/, 'Type').replace(/^Instance\b/, 'This') }
}

/** Parses a JSON pointer, such as `#/files/0/na~1me`. */
function parsePointer(pointer: string): (string | number)[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((key) => (/^\d+$/.test(key) ? Number(key) : key))
}
