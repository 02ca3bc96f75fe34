import { format, type OutputUnit, type Schema, Validator } from '@cfworker/json-schema'
import type { JsonObject } from '../../../machines/agent/json.js'
import { asList, isObject } from '../base/values.js'
import { loadOnce } from '../base/platform.js'
import { normalizeSchema } from '../models/normalize-schema.js'
import type { Issue, Validation } from './input-schema.js'

/**
 * Checks values against a plain JSON Schema of any draft since 4. Parts that cannot be checked pass: unknown keywords,
 * keywords in a wrong shape, patterns of other languages, references to other documents. No code is generated, so pages that
 * forbid `eval` can use it.
 *
 * The schema can come from a stranger: its patterns run in linear time, by RE2.
 */
export async function createPlainValidator(schema: JsonObject): Promise<(value: unknown) => Validation> {
  const { checks, schema: safe } = await withLinearPatterns(normalizeSchema(schema))
  let validator: Validator | null = null
  try {
    validator = new Validator(safe as Schema, '2020-12', false)
  } catch {
    // A schema that contradicts itself: two parts with one `$id`, for example.
  }
  return (value) => {
    // The validator finds formats by global names. It is synchronous, so no other code sees these.
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

/** What a pattern's check is called among the formats. */
const patternName = 'statewright pattern '

const loadRe2 = loadOnce(() => import('re2js'))

/**
 * A copy whose patterns are formats, each with a check that takes linear time. RE2 knows neither lookaheads nor back
 * references: a pattern that has them is left out, and so is one of another language.
 */
async function withLinearPatterns(schema: JsonObject): Promise<{ schema: unknown; checks: Checks }> {
  const checks: Checks = {}
  const text = JSON.stringify(schema)
  const engine = text.includes('"pattern"') ? (await loadRe2()).RE2JS : null
  // Keys that a pattern may allow are not refused where that pattern cannot be checked.
  const isOpen = text.includes('"patternProperties"') && hasUnsafeKeys(schema)

  const named = (pattern: string): string | null => {
    const name = `${patternName}${pattern}`
    if (Object.hasOwn(checks, name)) return name
    try {
      const compiled = engine?.compile(engine.translateRegExp(pattern))
      if (compiled === undefined) return null
      checks[name] = (given) => compiled.matcher(given).find()
      return name
    } catch {
      return null
    }
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
    // The validator's own pattern for this one takes exponential time.
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
 * Whether the engine of the platform runs it in linear time for sure: nothing repeats in it, or one character from its
 * start.
 */
function isSafe(pattern: string): boolean {
  try {
    new RegExp(pattern, 'u').test('')
  } catch {
    return false
  }
  const bare = pattern.replace(/\\[^]/gu, 'x').replace(/\[[^\]]*\]/gu, 'x')
  const repeats = bare.match(/[*+?{]/g)?.length ?? 0
  if (/\\[1-9k]/.test(pattern)) return false
  return repeats === 0 || bare === '.*' || (repeats === 1 && /^\^[^|()]*$/.test(bare))
}

/** Of these it is told that nothing fits, not why each of their parts does not. */
const choices: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'not', 'contains', 'propertyNames'])

/** Of these, what is wrong inside is told, at its own place. */
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
      // What says no to everything has no location of its own.
      keyword === 'false'
        ? `${instanceLocation}/`.startsWith(`${choice.instanceLocation}/`)
        : keywordLocation.startsWith(`${choice.keywordLocation}/`),
    )
  const told = errors.filter((error) => !wrappings.has(error.keyword) && !isInChoice(error))
  return (told.length > 0 ? told : errors.slice(0, 1)).map(toIssue)
}

function toIssue({ keyword, instanceLocation, error }: OutputUnit): Issue {
  const path = parsePointer(instanceLocation)
  if (keyword === 'false') return { path, message: 'There must be no such field.' }
  if (keyword === 'format' && error.includes(`"${patternName}`))
    return { path, message: 'String does not match pattern.' }
  const missing = keyword === 'required' ? /"(.*)"/s.exec(error)?.[1] : undefined
  if (missing !== undefined) return { path: [...path, missing], message: 'Missing.' }
  return { path, message: error.replace(/^Instance type/, 'Type').replace(/^Instance\b/, 'This') }
}

/** `#/files/0/na~1me` */
function parsePointer(pointer: string): (string | number)[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((key) => (/^\d+$/.test(key) ? Number(key) : key))
}
