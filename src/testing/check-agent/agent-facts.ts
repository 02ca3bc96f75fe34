import type { JsonObject, Json } from '../../../machines/agent/json.js'
import { StatewrightError } from '../../core/base/errors.js'
import type { AgentParts } from '../../core/live/agent-parts.js'
import { needsPerson } from '../../core/tools/prepare-calls.js'
import type { Tool } from '../../core/tools/tool.js'

export interface SampledTool {
  readonly name: string
  /** Whether the call may run twice, because its tool is `readOnly` or `idempotent`. */
  readonly mayRepeat: boolean
  readonly input: (n: number) => JsonObject
  readonly varies: boolean
}

export interface AgentFacts {
  /** A tool that runs without approval, preferably one that must not run twice. */
  readonly tool: SampledTool | null
  readonly askingTool: SampledTool | null
  /** The required output format or output tool, with its schema. Null for plain text. */
  readonly output: { readonly name: string; readonly schema: JsonObject } | null
  readonly unsampled: readonly string[]
}

export async function readAgentFacts(
  { tools, output }: AgentParts,
  inputs: Readonly<Record<string, JsonObject>>,
  context: unknown,
): Promise<AgentFacts> {
  for (const name of Object.keys(inputs)) {
    if (!tools.get(name)) throw inputError(name, `the agent has no tool '${name}'`)
  }
  const plain: SampledTool[] = []
  const asking: SampledTool[] = []
  const unsampled: string[] = []
  for (const name of tools.names) {
    const tool = tools.get(name)
    if (!tool || !isPlain(tool)) continue
    // oxlint-disable-next-line no-await-in-loop -- a schema may check asynchronously
    const sampled = await sampleTool(tool, inputs[name])
    // oxlint-disable-next-line no-await-in-loop -- as above
    if (sampled) ((await needsPerson(tool, sampled.input(0), context)) ? asking : plain).push(sampled)
    else unsampled.push(name)
  }
  return {
    tool: plain.toSorted((a, b) => rank(a) - rank(b))[0] ?? null,
    askingTool: asking.toSorted((a, b) => rank(a) - rank(b))[0] ?? null,
    output: output ? { name: output.name, schema: output.schema } : null,
    unsampled,
  }
}

const rank = ({ mayRepeat, varies }: SampledTool): number => (mayRepeat ? 2 : 0) + (varies ? 0 : 1)

function isPlain({ client, search, skill, defer, endsRun, maxCalls }: Tool): boolean {
  return !client && !search && !skill && !defer && !endsRun && maxCalls === undefined
}

async function sampleTool(tool: Tool, fixedInput: JsonObject | undefined): Promise<SampledTool | null> {
  const { name, parameters, readOnly, idempotent } = tool
  const input = (n: number): JsonObject => fixedInput ?? (sampleValue(parameters, n) as JsonObject)
  if (!(await accepts(tool, input(0)))) {
    if (fixedInput) throw inputError(name, `tool '${name}' does not accept it`)
    return null
  }
  const varies = JSON.stringify(input(0)) !== JSON.stringify(input(1)) && (await accepts(tool, input(1)))
  return { name, mayRepeat: readOnly || idempotent, input: (n) => input(varies ? n : 0), varies }
}

async function accepts({ validate }: Tool, input: JsonObject): Promise<boolean> {
  try {
    return (await validate(input)).issues === undefined
  } catch {
    return false
  }
}

function inputError(name: string, why: string): StatewrightError {
  return new StatewrightError('bad_option', `checkAgent: inputs.${name}: ${why}.`, `inputs.${name}`)
}

/** A value for a JSON Schema, different for each `n` if the schema allows. It may be invalid. */
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
  // Optional properties are omitted unless they are the only way to vary the input.
  const included = entries.length > 0 ? entries : depth === 0 ? Object.entries(properties).slice(0, 1) : []
  return Object.fromEntries(
    included.map(([key, value]) => [key, isSchema(value) ? sampleValue(value, n, root, depth + 1) : null]),
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
