import { isObject } from '../base/values.js'
import { acceptsType, mapObject } from '../models/normalize-schema.js'
import type { Json, JsonObject } from '../../../machines/agent/json.js'

const deepest = 10

const used = toWordSet(
  'type enum const title description required',
  'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems',
)

/** Unsupported keywords that can move to the description. Answers are validated against the full schema. */
const sayable = toWordSet(
  'minLength maxLength uniqueItems minProperties maxProperties',
  'pattern format default examples contentEncoding contentMediaType',
)

const formats = toWordSet('date-time time date duration email hostname ipv4 ipv6 uuid')

function toWordSet(...lines: string[]): ReadonlySet<Json> {
  return new Set(lines.flatMap((line) => line.split(' ')))
}

/**
 * Converts a JSON Schema for `strict: true`, or returns null if it would then accept fewer values: for optional
 * properties, records, tuples, `allOf`, values of any type, and more than ten levels of objects. The rules:
 * https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
 */
export function toStrictSchema(schema: JsonObject): JsonObject | null {
  if ('anyOf' in schema || 'oneOf' in schema) return null
  try {
    return toStrict(schema, 0)
  } catch (error) {
    if (error instanceof NotStrictError) return null
    throw error
  }
}

class NotStrictError extends Error {}

function refuse(): never {
  throw new NotStrictError()
}

function toStrict(schema: Json | undefined, depth: number): JsonObject {
  if (!isObject(schema) || depth > deepest || !isTyped(schema)) return refuse()
  if (typeof schema['$ref'] === 'string') return toStrictReference(schema, schema['$ref'])
  if (acceptsType(schema, 'object') && !isClosable(schema)) refuse()
  if (acceptsType(schema, 'array') && !('items' in schema)) refuse()
  const result: JsonObject = {}
  const text: string[] = []
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === 'properties' || keyword === '$defs')
      result[keyword] = isObject(value) ? mapObject(value, (inner) => toStrict(inner, depth + 1)) : refuse()
    else if (keyword === 'items') result[keyword] = toStrict(value, depth)
    else if (keyword === 'anyOf' || keyword === 'oneOf')
      result['anyOf'] = Array.isArray(value) ? value.map((inner) => toStrict(inner, depth)) : refuse()
    else if (isTaken(keyword, value)) result[keyword] = value
    else if (sayable.has(keyword)) text.push(`${keyword}: ${JSON.stringify(value)}`)
    else if (keyword !== 'additionalProperties') refuse()
  }
  if (acceptsType(schema, 'object')) result['additionalProperties'] = false
  return text.length === 0 ? result : { ...result, description: appendToDescription(schema, text) }
}

function toStrictReference(schema: JsonObject, to: string): JsonObject {
  const { $ref: _ref, $defs, ...beside } = schema
  if (!to.startsWith('#') || $defs !== undefined) refuse()
  if (Object.keys(beside).length === 0) return { $ref: to }
  const { description, ...others } = beside
  if (Object.keys(others).length > 0 || typeof description !== 'string') return refuse()
  return { description, anyOf: [{ $ref: to }] }
}

function isTyped(schema: JsonObject): boolean {
  return ['type', 'enum', 'const', 'anyOf', 'oneOf', '$ref'].some((keyword) => keyword in schema)
}

/** A schema may be closed if it does not mention additional properties, unless it is completely open. */
function isClosable({ properties, required, additionalProperties = null }: JsonObject): boolean {
  const names = isObject(properties) ? Object.keys(properties) : []
  if (additionalProperties !== null && additionalProperties !== false) return false
  if (names.length === 0) return additionalProperties === false
  return Array.isArray(required) && names.every((name) => required.includes(name))
}

function isTaken(keyword: string, value: Json): boolean {
  if (keyword === 'format') return formats.has(value)
  if (keyword === 'pattern') return typeof value === 'string' && !/\(\?<?[=!]/.test(value)
  return used.has(keyword)
}

function appendToDescription({ description }: JsonObject, text: readonly string[]): string {
  const rest = `(${text.join(', ')})`
  return typeof description === 'string' ? `${description} ${rest}` : rest
}
