import { type OutputUnit, type Schema, type SchemaDraft, Validator } from '@cfworker/json-schema'
import type { JsonObject } from '../../../machines/agent/json.js'
import type { Issue, Validation } from './standard-schema.js'

/**
 * Checks values against a plain JSON Schema of any draft since 4, by its own: `$schema` says which; 2020-12 without one.
 * What cannot be checked passes: keywords that nobody knows, a pattern that is none here, a reference to elsewhere. The
 * schema was made for somebody who can, an MCP server for example, and that one will check. No code is generated, so
 * pages that forbid `eval` can use it.
 */
export function plainValidator(schema: JsonObject): (value: unknown) => Validation {
  let validator: Validator | null = null
  try {
    validator = new Validator(withoutBadPatterns(schema) as Schema, draftOf(schema), false)
  } catch {
    // A schema that contradicts itself: two parts with one `$id`, for example.
  }
  return (value) => {
    try {
      const { valid, errors } = validator?.validate(value) ?? { valid: true, errors: [] }
      return valid ? { value } : { issues: issuesOf(errors) }
    } catch {
      return { value }
    }
  }
}

const drafts: readonly [part: string, draft: SchemaDraft][] = [
  ['draft-04', '4'],
  ['draft-06', '7'],
  ['draft-07', '7'],
  ['2019-09', '2019-09'],
]

function draftOf({ $schema }: JsonObject): SchemaDraft {
  const named = typeof $schema === 'string' ? $schema : ''
  return drafts.find(([part]) => named.includes(part))?.[1] ?? '2020-12'
}

/** A copy without patterns that other languages can read and this one cannot: one of them would stop every check. */
function withoutBadPatterns(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return schema
  if (Array.isArray(schema)) return schema.map(withoutBadPatterns)
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key, value]) => key !== 'pattern' || typeof value !== 'string' || isPattern(value))
      .map(([key, value]: [string, unknown]) => [
        key,
        key === 'patternProperties' && typeof value === 'object' && value !== null
          ? withoutBadPatterns(Object.fromEntries(Object.entries(value).filter(([name]) => isPattern(name))))
          : withoutBadPatterns(value),
      ]),
  )
}

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, 'u') instanceof RegExp
  } catch {
    return false
  }
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

function issuesOf(errors: readonly OutputUnit[]): Issue[] {
  const chosen = errors.filter(({ keyword }) => choices.has(keyword))
  const isInChoice = ({ keyword, keywordLocation, instanceLocation }: OutputUnit): boolean =>
    chosen.some((choice) =>
      // What says no to everything has no location of its own.
      keyword === 'false'
        ? `${instanceLocation}/`.startsWith(`${choice.instanceLocation}/`)
        : keywordLocation.startsWith(`${choice.keywordLocation}/`),
    )
  const told = errors.filter((error) => !wrappings.has(error.keyword) && !isInChoice(error))
  return (told.length > 0 ? told : errors.slice(0, 1)).map(issueOf)
}

function issueOf({ keyword, instanceLocation, error }: OutputUnit): Issue {
  const path = keysIn(instanceLocation)
  if (keyword === 'false') return { path, message: 'There must be no such field.' }
  const missing = keyword === 'required' ? /"(.*)"/s.exec(error)?.[1] : undefined
  if (missing !== undefined) return { path: [...path, missing], message: 'Missing.' }
  return { path, message: error.replace(/^Instance type/, 'Type').replace(/^Instance\b/, 'This') }
}

/** `#/files/0/na~1me` */
function keysIn(pointer: string): (string | number)[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((key) => (/^\d+$/.test(key) ? Number(key) : key))
}
