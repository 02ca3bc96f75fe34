import type { Json, JsonObject } from '../../../machines/agent/json.js'
import { decodePercent } from '../base/text.js'
import { asList, asText, getOrCreate, isObject, asObject, mapKept } from '../base/values.js'
import { mapObject } from './normalize-schema.js'
import type { ModelRequest, ModelRequestOptions, ToolSpec } from './provider.js'

/**
 * Providers validate tool schemas according to different rules, and reject a whole request for a single invalid tool.
 * - All require an object at the top level. OpenAI and Anthropic reject other keywords there: "schema must have type
 *   'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level" (langchain-ai/langchainjs#9804),
 *   "input_schema does not support oneOf, allOf, or anyOf at the top level" (dearlordylord/huly-mcp#66).
 * - Anthropic: "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'" (ComposioHQ/composio#3500).
 * - Gemini accepts a subset of OpenAPI 3.0 (https://ai.google.dev/api/caching#Schema) with one type per schema, string
 *   enums (microsoft/azure-devops-mcp#139) and few formats (google-gemini/gemini-cli#5450). Gemini rejects references
 *   and keywords next to `anyOf`. Names must start with a letter or `_` (google-gemini/gemini-cli#2966).
 *
 * Rejected keywords are moved into the description, so that the model still reads them. The tool checks arguments
 * against the original schema.
 */
export type SchemaFamily = 'openai' | 'anthropic' | 'gemini'

/** The model name takes precedence over the provider, because many providers serve the same models. */
export function findSchemaFamily(provider: string, model: string): SchemaFamily {
  const name = `${model} ${provider}`
  return /claude|anthropic/i.test(name) ? 'anthropic' : /gemini|google/i.test(name) ? 'gemini' : 'openai'
}

/** Keyed by spec, because providers cache tools by identity. A string says why a tool is omitted. */
const fittedSpecs: Record<SchemaFamily, WeakMap<ToolSpec, ToolSpec | string>> = {
  openai: new WeakMap(),
  anthropic: new WeakMap(),
  gemini: new WeakMap(),
}

/** Adapts the tools of a request to the family. Warns of omitted tools (`tool_left_out`). */
export function fitTools(
  request: ModelRequest,
  family: SchemaFamily,
  onWarning: ModelRequestOptions['onWarning'],
): ModelRequest {
  const fit = (spec: ToolSpec) => getOrCreate(fittedSpecs[family], spec, () => fitSpec(spec, family))
  if (request.tools.every((spec) => fit(spec) === spec)) return request
  const tools = request.tools.flatMap((spec) => {
    const fitted = fit(spec)
    if (typeof fitted !== 'string') return [fitted]
    onWarning?.('tool_left_out', `The tool '${spec.name}' is omitted: ${fitted}.`)
    return []
  })
  return { ...request, tools }
}

function fitSpec(spec: ToolSpec, family: SchemaFamily): ToolSpec | string {
  if (family === 'gemini' && !/^[a-z_]/i.test(spec.name))
    return 'Gemini only accepts names that start with a letter or an underscore. Rename it'
  try {
    const parameters = fitSchema(spec.parameters, family)
    return parameters === spec.parameters ? spec : { ...spec, parameters }
  } catch (error) {
    if (error instanceof UnfitSchemaError) return error.message
    throw error
  }
}

class UnfitSchemaError extends Error {}

const maxParts = 5_000

interface Scope {
  readonly root: JsonObject
  /** References on the path to this schema. */
  readonly refs: readonly string[]
  readonly parts: { count: number }
}

/** Counts expanded subschemas, because each reference may double their number. */
function countPart({ parts }: Scope): void {
  parts.count += 1
  if (parts.count > maxParts)
    throw new UnfitSchemaError(
      `its input schema has more than ${maxParts} parts after its references are expanded`,
    )
}

/** Returns the same object if the schema already fits. @throws an Error whose message ends a sentence */
export function fitSchema(schema: JsonObject, family: SchemaFamily): JsonObject {
  const scope: Scope = { root: schema, refs: [], parts: { count: 0 } }
  const open = openTop(schema, scope)
  if (family === 'gemini') {
    const { description, properties = {}, required } = toGemini(open, scope)
    return { type: 'object', ...(description && { description }), properties, ...(required && { required }) }
  }
  const fitted = family === 'anthropic' ? describeOddKeys(open) : open
  const fault = fitted === schema ? undefined : findRefFault(fitted)
  if (fault !== undefined)
    throw new UnfitSchemaError(`its input schema ${fault} in the form that providers accept`)
  return fitted
}

/** Maximum length of a keyword in a description. Longer objects are listed by key. */
const maxNote = 2_000

function addNote(schema: JsonObject, notes: readonly (readonly [string, Json | undefined])[]): JsonObject {
  const words = notes.flatMap(([key, value]) => {
    if (value === undefined) return []
    const short = [value, ...(isObject(value) ? [Object.keys(value)] : [])]
      .map((shown) => JSON.stringify(shown))
      .find((text) => text.length <= maxNote)
    return short === undefined ? [] : [`${key}: ${short}`]
  })
  if (words.length === 0) return schema
  const note = `(${words.join(', ')})`
  const { description } = schema
  return { ...schema, description: typeof description === 'string' ? `${description} ${note}` : note }
}

const topKeywords = ['anyOf', 'oneOf', 'allOf', 'not', 'enum', 'const', '$ref']

function openTop(schema: JsonObject, scope: Scope): JsonObject {
  const odd = topKeywords.filter((key) => key in schema)
  if (odd.length === 0) return schema
  const { properties, required } = gather(schema, scope)
  const rest = omitKeys(schema, ['required', ...odd])
  const notes = odd.filter((key) => key !== '$ref').map((key) => [key, schema[key]] as const)
  return addNote({ ...rest, properties, ...(required.size > 0 && { required: [...required] }) }, notes)
}

const omitKeys = (schema: JsonObject, keys: readonly string[]): JsonObject =>
  Object.fromEntries(Object.entries(schema).filter(([key]) => !keys.includes(key))) as JsonObject

interface Members {
  properties: JsonObject
  required: ReadonlySet<string>
}

const readMembers = ({ properties, required }: JsonObject): Members => ({
  properties: isObject(properties) ? properties : {},
  required: new Set(asList(required).filter((name) => typeof name === 'string')),
})

function gather(schema: Json, scope: Scope): Members {
  countPart(scope)
  if (!isObject(schema)) return readMembers({})
  const all = [readMembers(schema), ...asList(schema.allOf).map((part) => gather(part, scope))]
  const { $ref } = schema
  if (typeof $ref === 'string' && !scope.refs.includes($ref))
    all.push(gather(findRef(scope.root, $ref) ?? {}, { ...scope, refs: [...scope.refs, $ref] }))
  for (const key of ['anyOf', 'oneOf']) {
    const ways = asList(schema[key]).map((part) => gather(part, scope))
    const [first, ...others] = ways
    if (first === undefined) continue
    all.push({
      properties: mergeProperties(ways, 'anyOf'),
      required: new Set(
        [...first.required].filter((name) => others.every(({ required }) => required.has(name))),
      ),
    })
  }
  return mergeMembers(all)
}

function mergeMembers(members: readonly Members[]): Members {
  return {
    properties: mergeProperties(members, 'allOf'),
    required: new Set(members.flatMap(({ required }) => [...required])),
  }
}

function mergeProperties(members: readonly Members[], joint: 'anyOf' | 'allOf'): JsonObject {
  const found = new Map<string, Set<Json>>()
  for (const { properties } of members)
    for (const [name, schema] of Object.entries(properties))
      found.set(name, (found.get(name) ?? new Set()).add(schema))
  return Object.fromEntries(
    [...found].map(([name, schemas]): [string, Json] => {
      const distinct = schemas.size === 1 ? [...schemas] : dropRepeated([...schemas])
      return [name, distinct.length === 1 ? (distinct[0] as Json) : { [joint]: distinct }]
    }),
  )
}

function dropRepeated<Part extends Json>(parts: readonly Part[]): Part[] {
  return [...new Map(parts.map((part) => [JSON.stringify(part), part])).values()]
}

/** Returns why a `$ref` cannot be resolved within the schema, or undefined. Anchors (`#name`) are not checked. */
export function findRefFault(schema: JsonObject): string | undefined {
  const queue: unknown[] = [schema]
  for (const value of queue) {
    if (typeof value !== 'object' || value === null) continue
    for (const key of ['$ref', '$dynamicRef']) {
      const ref = (value as JsonObject)[key]
      if (typeof ref !== 'string') continue
      if (!ref.startsWith('#')) return `contains an external reference ('${ref.slice(0, 100)}')`
      if (ref.startsWith('#/') && findRef(schema, ref) === undefined)
        return `refers to '${ref.slice(0, 100)}', which does not exist`
    }
    queue.push(...(Object.values(value) as unknown[]))
  }
  return undefined
}

function findRef(root: JsonObject, ref: string): Json | undefined {
  if (ref === '#') return root
  if (!ref.startsWith('#/')) return undefined
  let value: Json | undefined = root
  for (const part of ref.slice(2).split('/')) {
    const key = decodePercent(part).replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as JsonObject)[key]
  }
  return value
}

const isAnthropicKey = (key: string): boolean => /^[a-zA-Z0-9_.-]{1,64}$/.test(key)

const mapKeywords = new Set(['$defs', 'definitions', 'patternProperties', 'dependentSchemas', 'properties'])
const valueKeywords = 'const enum default examples required dependentRequired type'.split(' ')

/** Moves properties whose names Anthropic rejects into the description. Returns the same object if there are none. */
function describeOddKeys(schema: JsonObject): JsonObject {
  const changed = new Set<string>()
  const inner = mapObject(schema, (value, key) => {
    const next = fitKeyword(key, value)
    if (next !== value) changed.add(key)
    return next
  })
  const fitted = changed.size === 0 ? schema : widen(inner, changed)
  const { properties } = fitted
  if (!isObject(properties) || Object.keys(properties).every(isAnthropicKey)) return fitted
  const { required: _required, additionalProperties, ...rest } = fitted
  const entries = Object.entries(properties)
  const required = [...readMembers(fitted).required]
  const needed = required.filter((name) => !isAnthropicKey(name))
  const others = required.filter(isAnthropicKey)
  return addNote(
    {
      ...rest,
      properties: Object.fromEntries(entries.filter(([key]) => isAnthropicKey(key))),
      ...(others.length > 0 && { required: others }),
      ...(additionalProperties === true && { additionalProperties }),
    },
    [
      ['further properties', Object.fromEntries(entries.filter(([key]) => !isAnthropicKey(key)))],
      ['required among these', needed.length > 0 ? needed : undefined],
    ],
  )
}

/** A wider subschema would make `not`, `if` and `oneOf` narrower, so they are dropped or become `anyOf`. */
function widen(schema: JsonObject, changed: ReadonlySet<string>): JsonObject {
  const dropped = ['not', 'if', 'oneOf'].filter((key) => changed.has(key))
  // `then` and `else` have no effect without `if`.
  const rest = omitKeys(schema, dropped)
  return dropped.includes('oneOf') ? { anyOf: schema.oneOf as Json, ...rest } : rest
}

const fitValue = (value: Json): Json => (isObject(value) ? describeOddKeys(value) : value)

function fitKeyword(key: string, value: Json): Json {
  if (valueKeywords.includes(key)) return value
  if (mapKeywords.has(key) && isObject(value)) return mapObject(value, fitValue)
  return Array.isArray(value) ? (mapKept(value, fitValue) as Json[]) : fitValue(value)
}

const geminiKeywords: Readonly<Record<string, readonly string[]>> = {
  string: ['minLength', 'maxLength', 'pattern'],
  number: ['minimum', 'maximum'],
  integer: ['minimum', 'maximum'],
  array: ['minItems', 'maxItems'],
  object: ['minProperties', 'maxProperties'],
}

const geminiFormats: Readonly<Record<string, readonly string[]>> = {
  string: ['date-time', 'enum'],
  number: ['float', 'double'],
  integer: ['int32', 'int64'],
}

const describedKeywords = (
  'exclusiveMinimum exclusiveMaximum multipleOf uniqueItems not if then else patternProperties propertyNames contains minContains ' +
  'maxContains dependentRequired dependentSchemas prefixItems additionalProperties'
).split(' ')

const geminiTypes = ['string', 'number', 'boolean', 'object', 'array']

/** Converts to Gemini's subset of OpenAPI. References are expanded. A recursive reference becomes a plain object. */
function toGemini(source: Json | undefined, scope: Scope): JsonObject {
  countPart(scope)
  const { $ref, allOf, ...schema } = isObject(source) ? source : {}
  if (typeof $ref === 'string') {
    const target = findRef(scope.root, $ref)
    if (!isObject(target) || scope.refs.includes($ref))
      return addNote({ type: 'object', ...pickText(schema) }, [['$ref', $ref]])
    const parts = [{ ...schema, ...(allOf && { allOf }) }]
    return toGemini(mergeAll(target, parts), { ...scope, refs: [...scope.refs, $ref] })
  }
  if (Array.isArray(allOf) && allOf.length > 0) {
    const refs = allOf
      .map((part) => asText(isObject(part) && part.$ref))
      .filter((ref) => !scope.refs.includes(ref))
    const open = allOf.map((part) => {
      if (!isObject(part) || !refs.includes(asText(part.$ref))) return part
      const { $ref: ref, ...others } = part
      return mergeAll(findRef(scope.root, asText(ref)) ?? {}, [others])
    })
    return toGemini(mergeAll(schema, open), { ...scope, refs: [...scope.refs, ...refs] })
  }
  const key = ['anyOf', 'oneOf'].find((name) => asList(schema[name]).length > 0)
  if (key === undefined) return toAnyOf(listTypes(schema).map((type) => toTyped(schema, type, scope)))
  const { [key]: ways, ...rest } = schema
  return toAnyOf(asList(ways).map((way) => toGemini(mergeAll(rest, [way]), scope)))
}

function toAnyOf(ways: readonly JsonObject[]): JsonObject {
  const distinct = dropRepeated(
    ways.flatMap((way) => (Array.isArray(way.anyOf) ? way.anyOf.filter(isObject) : [way])),
  )
  return distinct.length === 1 ? (distinct[0] as JsonObject) : { anyOf: distinct }
}

function listTypes(schema: JsonObject): readonly string[] {
  const { type, enum: values, const: only } = schema
  if (type !== undefined) return (Array.isArray(type) ? type : [type]).map(asText)
  const known = only !== undefined ? [only] : asList(values)
  if (known.length > 0) return [...new Set(known.map(typeOf))]
  if ('properties' in schema) return ['object']
  if ('items' in schema || 'prefixItems' in schema) return ['array']
  return geminiTypes
}

function typeOf(value: Json): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

function toTyped(schema: JsonObject, type: string, scope: Scope): JsonObject {
  if (type === 'null') return { type }
  const result: JsonObject = { type, ...pickText(schema) }
  for (const key of geminiKeywords[type] ?? []) if (schema[key] !== undefined) result[key] = schema[key]
  const notes: [string, Json | undefined][] = describedKeywords
    .filter((key) => schema[key] !== undefined && typeof schema[key] !== 'boolean')
    .map((key) => [key, schema[key]])
  const { format } = schema
  if (geminiFormats[type]?.includes(asText(format))) result['format'] = asText(format)
  else notes.push(['format', format])
  const values = schema.const !== undefined ? [schema.const] : asList(schema.enum)
  const fitting = values.filter((value) => value !== null)
  const isPlain = type === 'string' && fitting.every((value) => typeof value === 'string' && value !== '')
  if (isPlain && fitting.length > 0) result['enum'] = fitting
  else if (values.length > 0) notes.push(['one of', [...values]])
  if (type === 'array') result['items'] = toItems(schema, scope)
  if (type === 'object' && isObject(schema.properties) && Object.keys(schema.properties).length > 0) {
    const properties = mapObject(schema.properties, (value) => toGemini(value, scope))
    const required = asList(schema.required).filter((name) => Object.hasOwn(properties, asText(name)))
    Object.assign(result, { properties }, required.length > 0 && { required })
  }
  return addNote(result, notes)
}

/** Converts the items of an array. Gemini requires an item type, so items without a type become strings. */
function toItems({ items, prefixItems }: JsonObject, scope: Scope): JsonObject {
  const ways = [...asList(prefixItems), ...(isObject(items) && Object.keys(items).length > 0 ? [items] : [])]
  return ways.length === 0 ? { type: 'string' } : toAnyOf(ways.map((way) => toGemini(way, scope)))
}

function pickText({ title, description, default: value }: JsonObject): JsonObject {
  return {
    ...(typeof title === 'string' && { title }),
    ...(typeof description === 'string' && { description }),
    ...(value !== undefined && value !== null && { default: value }),
  }
}

/** Merges schemas that all apply. For duplicate keywords, the last one wins. */
function mergeAll(first: Json, parts: readonly Json[]): JsonObject {
  const schemas = [first, ...parts].map(asObject).filter((part) => part !== null)
  const { properties, required } = mergeMembers(schemas.map(readMembers))
  return {
    ...(Object.assign({}, ...schemas) as JsonObject),
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.size > 0 && { required: [...required] }),
  }
}
