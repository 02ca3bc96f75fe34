import { isObject } from '../base/values.js'
import type { Json, JsonObject } from '../../../machines/agent/json.js'

/** Levels of objects in objects that OpenAI takes. */
const deepest = 10

/** Keywords that a strict schema may have as they are. */
const taken = toWordSet(
  'type enum const title description required',
  'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems',
)

/** Keywords that are refused, and can be said in words: the answer is validated against the whole schema anyway. */
const sayable = toWordSet(
  'minLength maxLength uniqueItems minProperties maxProperties',
  'pattern format default examples contentEncoding contentMediaType',
)

const formats = toWordSet('date-time time date duration email hostname ipv4 ipv6 uuid')

function toWordSet(...lines: string[]): ReadonlySet<Json> {
  return new Set(lines.flatMap((line) => line.split(' ')))
}

/**
 * A JSON Schema as providers enforce it with `strict: true`: every object closed, `oneOf` as `anyOf`, and what they
 * refuse said in the description. Null when the schema accepts more than such a schema can say: optional properties,
 * records, tuples, `allOf`, values of any type, more than ten levels of objects.
 *
 * The rules are those of OpenAI's structured outputs, which others have taken over:
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
  const said: string[] = []
  for (const [keyword, value] of Object.entries(schema)) {
    const inner = toStrictKeyword(keyword, value, depth)
    if (inner === null) return null
    if (inner !== undefined) Object.assign(result, inner)
    else if (isTaken(keyword, value)) result[keyword] = value
    else if (sayable.has(keyword)) said.push(`${keyword}: ${JSON.stringify(value)}`)
    else return null
  }
  if (acceptsType(schema, 'object')) result['additionalProperties'] = false
  return said.length === 0 ? result : { ...result, description: appendToDescription(schema, said) }
}

/** A keyword that holds other schemas; undefined for any other keyword, null when one of them cannot be strict. */
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

/** Nothing may stand beside a reference. */
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

function acceptsType({ type }: JsonObject, name: string): boolean {
  return Array.isArray(type) ? type.includes(name) : type === name
}

/** An object that says nothing of other properties may be closed, unless it says nothing at all. */
function isClosable({ properties, required, additionalProperties = null }: JsonObject): boolean {
  const names = isObject(properties) ? Object.keys(properties) : []
  if (additionalProperties !== null && additionalProperties !== false) return false
  if (names.length === 0) return additionalProperties === false
  return Array.isArray(required) && names.every((name) => required.includes(name))
}

function isTaken(keyword: string, value: Json): boolean {
  if (keyword === 'format') return formats.has(value)
  if (keyword === 'pattern') return typeof value === 'string' && !/\(\?<?[=!]/.test(value)
  return taken.has(keyword)
}

function appendToDescription({ description }: JsonObject, said: readonly string[]): string {
  const rest = `(${said.join(', ')})`
  return typeof description === 'string' ? `${description} ${rest}` : rest
}
