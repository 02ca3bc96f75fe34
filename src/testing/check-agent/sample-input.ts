import type { Json, JsonObject } from '../../../machines/agent/json.js'

/**
 * A value that a JSON Schema takes, as far as that can be made up: another for another `n` where the schema leaves room. Whether it
 * fits, the tool's own check says.
 */
export function sampleValue(schema: JsonObject, n = 0, root: JsonObject = schema, depth = 0): Json {
  const read = (key: string): Json | undefined => schema[key]
  const { const: fixed, enum: choices, default: preset } = schema
  if (fixed !== undefined) return fixed
  if (Array.isArray(choices) && choices.length > 0) return choices[n % choices.length] ?? null
  const reference = read('$ref')
  if (typeof reference === 'string' && depth < 8) {
    const found = resolveReference(reference, root)
    if (found) return sampleValue(found, n, root, depth + 1)
  }
  const [first] = ['anyOf', 'oneOf', 'allOf'].flatMap((key) => {
    const list = read(key)
    return Array.isArray(list) ? list.filter(isSchema) : []
  })
  if (first) return sampleValue(first, n, root, depth + 1)
  const type = Array.isArray(schema['type']) ? schema['type'][0] : schema['type']
  if (type === 'object' || isSchema(read('properties'))) return sampleObject(schema, n, root, depth)
  if (type === 'array') return sampleList(schema, n, root, depth)
  if (type === 'string') return sampleText(schema, n)
  if (type === 'integer' || type === 'number') return sampleNumber(schema, n)
  if (type === 'boolean') return n % 2 === 0
  return preset ?? null
}

function isSchema(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function resolveReference(reference: string, root: JsonObject): JsonObject | undefined {
  let found: Json | undefined = root
  for (const part of reference.replace(/^#\/?/, '').split('/')) {
    if (part === '') continue
    found = isSchema(found) ? found[part] : undefined
  }
  return isSchema(found) ? found : undefined
}

function sampleObject(schema: JsonObject, n: number, root: JsonObject, depth: number): JsonObject {
  const properties = isSchema(schema['properties']) ? schema['properties'] : {}
  const required = Array.isArray(schema['required']) ? schema['required'] : []
  const entries = Object.entries(properties).filter(([key]) => required.includes(key))
  // What is optional is left out, unless there is nothing else to tell two inputs apart by.
  const told = entries.length > 0 ? entries : depth === 0 ? Object.entries(properties).slice(0, 1) : []
  return Object.fromEntries(
    told.map(([key, value]) => [key, isSchema(value) ? sampleValue(value, n, root, depth + 1) : null]),
  )
}

function sampleList(schema: JsonObject, n: number, root: JsonObject, depth: number): Json[] {
  const items = schema['items']
  const least = Math.max(1, Number(schema['minItems'] ?? 1))
  return isSchema(items)
    ? Array.from({ length: least }, (_, at) => sampleValue(items, n + at, root, depth + 1))
    : []
}

const formats: Record<string, (n: number) => string> = {
  date: (n) => `2026-01-${String(1 + (n % 28)).padStart(2, '0')}`,
  'date-time': (n) => `2026-01-${String(1 + (n % 28)).padStart(2, '0')}T09:00:00Z`,
  email: (n) => `ann${n}@example.com`,
  time: () => '09:00:00Z',
  uri: (n) => `https://example.com/${n}`,
  uuid: (n) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
}

function sampleText(schema: JsonObject, n: number): string {
  const { format } = schema
  const write = typeof format === 'string' ? formats[format] : undefined
  if (write) return write(n)
  const text = `sample-${n}`
  const [least, most] = [Number(schema['minLength'] ?? 0), Number(schema['maxLength'] ?? Infinity)]
  return (text.length > most ? String(n) : text).padEnd(least, '-').slice(0, most)
}

function sampleNumber(schema: JsonObject, n: number): number {
  const step = Number(schema['multipleOf'] ?? 1)
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum } = schema
  const above = typeof exclusiveMinimum === 'number' ? exclusiveMinimum + step : undefined
  const least = typeof minimum === 'number' ? minimum : (above ?? 1)
  const below = typeof exclusiveMaximum === 'number' ? exclusiveMaximum - step : undefined
  const most = typeof maximum === 'number' ? maximum : (below ?? Infinity)
  if (least > most) return most
  const from = Math.ceil(least / step) * step
  const room = Math.floor((most - from) / step) + 1
  return from + (Number.isFinite(room) && room > 0 ? n % room : n) * step
}
