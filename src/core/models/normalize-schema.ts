import { valueOr } from '../base/maybe-promise.js'
import type { Json, JsonObject } from '../../../machines/agent/json.js'
import { omitUndefined } from '../../../guards/lib/json.js'
import { isObject } from '../base/values.js'

/**
 * Converts a schema to draft 2020-12. OpenAI and Anthropic validate tools against this draft and reject the whole
 * request for one malformed keyword.
 * - `True is not of type 'number'` (Dokploy/mcp#74). Boolean limits from draft 4 become numeric limits.
 * - `'int' is not valid under any of the given schemas` (Kuadrant/mcp-gateway#662). Type names from other languages
 *   become JSON types.
 * - `array schema missing items` (typesense/typesense#3059). An array without `items` gets `items: {}`.
 * - `'…' is not a 'regex'`. A pattern that the providers' regular expressions do not support is omitted.
 * - `null` for unset keywords (Go, Java, C#) and `[]` for `{}` (PHP) are omitted.
 * - `nullable` from OpenAPI 3.0 becomes the type `null`.
 *
 * The result accepts every object that the schema accepts. A valid schema is left unchanged.
 */
export function normalizeSchema({ nullable: _nullable, ...schema }: JsonObject): JsonObject {
  const draft = typeof schema.$schema === 'string' ? schema.$schema : ''
  const { type } = schema
  return { ...normalize(schema, /draft-0[3-7]/.test(draft)), ...(type === 'object' && { type }) }
}

/** `\p{…}`, named groups and other syntax that Python regular expressions do not support. */
const foreignPattern = /\\[pPckuU]|\(\?<[^=!]/

const typeNames = new Map([
  ...'string number integer boolean array object null'.split(' ').map((name) => [name, name] as const),
  ['str', 'string'],
  ['float', 'number'],
  ['double', 'number'],
  ['decimal', 'number'],
  ['int', 'integer'],
  ['long', 'integer'],
  ['bool', 'boolean'],
  ['list', 'array'],
  ['dict', 'object'],
  ['map', 'object'],
])

type Reader = (value: Json, isOld: boolean) => Json | undefined

const when =
  (fits: (value: Json) => boolean): Reader =>
  (value) =>
    fits(value) ? value : undefined

const isFilled = (value: Json): boolean => Array.isArray(value) && value.length > 0

const readSchema: Reader = (value, isOld) => {
  if (typeof value === 'boolean') return value
  if (Array.isArray(value) && value.length === 0) return {}
  return isObject(value) ? normalize(value, isOld) : undefined
}

const readSchemas: Reader = (value, isOld) =>
  isFilled(value) ? (value as Json[]).map((inner) => readSchema(inner, isOld) ?? {}) : undefined

/** Reads a map of schemas. Boolean schemas are expanded, because not every provider accepts them in a map. */
const readMap: Reader = (value, isOld) => {
  if (!isObject(value)) return Array.isArray(value) && value.length === 0 ? {} : undefined
  return mapObject(value, (inner) => {
    const schema = readSchema(inner, isOld) ?? {}
    return schema === true ? {} : schema === false ? { not: {} } : schema
  })
}

const readNames: Reader = (value) =>
  Array.isArray(value) && value.every((name) => typeof name === 'string') ? [...new Set(value)] : undefined

/** Readers by keyword. A keyword with an invalid value is dropped; unknown keywords are kept. */
const readers: Readonly<Record<string, Reader>> = Object.assign(
  Object.create(null) as Record<string, Reader>,
  toReaders(when(Number.isFinite), 'minimum maximum exclusiveMinimum exclusiveMaximum'),
  toReaders(
    when((value) => Number.isSafeInteger(value) && Number(value) >= 0),
    'minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains',
  ),
  toReaders(
    when((value) => typeof value === 'string'),
    'title description $comment $id $anchor $ref $dynamicRef $dynamicAnchor format',
  ),
  toReaders(
    when((value) => typeof value === 'boolean'),
    'uniqueItems readOnly writeOnly deprecated',
  ),
  toReaders(when(Array.isArray), 'examples'),
  toReaders(
    readSchema,
    'items additionalProperties unevaluatedProperties unevaluatedItems contains not if then else ' +
      'propertyNames contentSchema',
  ),
  toReaders(readSchemas, 'anyOf oneOf allOf prefixItems'),
  toReaders(readMap, 'properties patternProperties dependentSchemas $defs definitions'),
  toReaders(readNames, 'required'),
  toReaders(when(isFilled), 'enum'),
  {
    multipleOf: when((value) => Number.isFinite(value) && Number(value) > 0),
    pattern: when((value) => typeof value === 'string' && isPattern(value)),
    dependentRequired: when(
      (value) => isObject(value) && Object.values(value).every((names) => readNames(names, false)),
    ),
    type: readType,
  } satisfies Record<string, Reader>,
)

function toReaders(reader: Reader, names: string): Record<string, Reader> {
  return Object.fromEntries(names.split(' ').map((name) => [name, reader]))
}

/** Normalizes a schema. `isOld` marks drafts up to 7, which ignore the siblings of `$ref`. */
function normalize(input: JsonObject, isOld: boolean): JsonObject {
  const schema = isOld && typeof input.$ref === 'string' ? pickAnnotations(input) : toNewKeywords(input)
  const result: JsonObject = {}
  for (const [key, value] of Object.entries(schema)) {
    const read = readers[key]
    const fitting = read ? read(value, isOld) : value
    if (fitting !== undefined) setOwn(result, key, fitting)
  }
  if (acceptsType(result, 'array') && !('items' in result) && !('prefixItems' in result)) result['items'] = {}
  return input.nullable === true ? allowNull(result) : result
}

function toNewKeywords(input: JsonObject): JsonObject {
  const { nullable: _nullable, $recursiveRef, items, additionalItems, dependencies, ...schema } = input
  if (items !== undefined) {
    const isTuple = Array.isArray(items) && items.length > 0
    if (isTuple) schema.prefixItems ??= items
    const rest = isTuple ? additionalItems : items
    if (rest !== undefined) schema.items = rest
  }
  if (typeof $recursiveRef === 'string') schema.$ref ??= $recursiveRef
  for (const [limit, exclusive] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    if (schema[exclusive] !== true) continue
    const bound = schema[limit]
    delete schema[exclusive]
    if (typeof bound !== 'number') continue
    schema[exclusive] = bound
    delete schema[limit]
  }
  if (isObject(dependencies)) {
    const [lists, schemas] = [{}, {}] as [JsonObject, JsonObject]
    for (const [name, needs] of Object.entries(dependencies))
      setOwn(Array.isArray(needs) ? lists : schemas, name, needs)
    if (Object.keys(lists).length > 0) schema.dependentRequired ??= lists
    if (Object.keys(schemas).length > 0) schema.dependentSchemas ??= schemas
  }
  return schema
}

function pickAnnotations({ $ref, title, description, $defs, definitions }: JsonObject): JsonObject {
  return omitUndefined({ $ref, title, description, $defs, definitions }) as JsonObject
}

/** Reads the types of a schema. An unknown type name means any type. */
function readType(value: Json): Json | undefined {
  const isList = Array.isArray(value)
  const names = (isList ? value : [value]).map((name) => {
    if (name === null) return isList ? 'null' : undefined
    return typeof name === 'string' ? typeNames.get(name.toLowerCase()) : undefined
  })
  if (names.length === 0 || names.includes(undefined)) return undefined
  const unique = [...new Set(names as string[])]
  return unique.length === 1 && !(isList && value.length === 1) ? unique[0] : unique
}

function allowNull(schema: JsonObject): JsonObject {
  const { type, enum: values } = schema
  const isOther = ['$ref', 'const', 'anyOf', 'oneOf', 'allOf', 'not', 'if'].some((key) => key in schema)
  if (isOther) return { anyOf: [schema, { type: 'null' }] }
  return {
    ...schema,
    ...(type !== undefined && { type: [...new Set([...(Array.isArray(type) ? type : [type]), 'null'])] }),
    ...(Array.isArray(values) && !values.includes(null) && { enum: [...values, null] }),
  }
}

function isPattern(pattern: string): boolean {
  if (foreignPattern.test(pattern)) return false
  return valueOr(() => new RegExp(pattern, 'u') instanceof RegExp, false)
}

export function acceptsType({ type }: JsonObject, name: string): boolean {
  return Array.isArray(type) ? type.includes(name) : type === name
}

/** Sets an own property. Also works for a key named `__proto__`. */
function setOwn(target: JsonObject, key: string, value: Json): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
}

/** Returns the same object if no value changes. */
export function mapObject(source: JsonObject, change: (value: Json, key: string) => Json): JsonObject {
  const entries = Object.entries(source).map(([key, value]) => [key, change(value, key)] as const)
  return entries.every(([key, value]) => value === source[key]) ? source : Object.fromEntries(entries)
}
