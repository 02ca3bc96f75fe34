import { isObject } from '../base/values.js'
import { acceptsType } from '../models/normalize-schema.js'
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
  return 'anyOf' in schema || 'oneOf' in schema ? null : toStrict(schema, 0)
}

function toStrict(schema: Json | undefined, depth: number): JsonObject | null {
  if (!isObject(schema) || depth > deepest || !isTyped(schema)) return null
  if (typeof schema['$ref'] === 'string') return toStrictReference(schema, schema['$ref'])
  if (acceptsType(schema, 'object') && !isClosable(schema)) return null
  if (acceptsType(schema, 'array') && !('items' in schema)) return null
  const result: JsonObject = {}
  const text: string[] = []
  for (const [keyword, value] of Object.entries(schema)) {
    const inner = toStrictKeyword(keyword, value, depth)
    if (inner === null) return null
    if (inner !== undefined) Object.assign(result, inner)
    else if (isTaken(keyword, value)) result[keyword] = value
    else if (sayable.has(keyword)) text.push(`${keyword}: ${JSON.stringify(value)}`)
    else return null
  }
  if (acceptsType(schema, 'object')) result['additionalProperties'] = false
  return text.length === 0 ? result : { ...result, description: appendToDescription(schema, text) }
}

/** Undefined for keywords without subschemas. Null if a subschema cannot be strict. */
function toStrictKeyword(keyword: string, value: Json, depth: number): JsonObject | null | undefined {
  switch (keyword) {
    case 'properties':
    case '$defs':
      return wrapKeyword(keyword, isObject(value) ? toStrictMap(value, depth + 1) : null)
    case 'items':
      return wrapKeyword(keyword, toStrict(value, depth))
    case 'anyOf':
    case 'oneOf':
      return wrapKeyword('anyOf', Array.isArray(value) ? toStrictList(value, depth) : null)
    case 'additionalProperties':
      return {}
    default:
      return undefined
  }
}

function wrapKeyword(keyword: string, value: Json): JsonObject | null {
  return value === null ? null : { [keyword]: value }
}

function toStrictMap(schemas: JsonObject, depth: number): JsonObject | null {
  const entries = Object.entries(schemas).map(([name, schema]) => [name, toStrict(schema, depth)] as const)
  return entries.every(([, schema]) => schema !== null) ? Object.fromEntries(entries) : null
}

function toStrictList(schemas: readonly Json[], depth: number): Json[] | null {
  const list = schemas.map((schema) => toStrict(schema, depth))
  return list.every((schema) => schema !== null) ? list : null
}

function toStrictReference(schema: JsonObject, to: string): JsonObject | null {
  if (!to.startsWith('#')) return null
  const { $ref: _ref, $defs, ...beside } = schema
  if ($defs !== undefined) return null
  if (Object.keys(beside).length === 0) return { $ref: to }
  const { description, ...others } = beside
  return Object.keys(others).length === 0 && typeof description === 'string'
    ? { description, anyOf: [{ $ref: to }] }
    : null
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
