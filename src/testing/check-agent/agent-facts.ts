import type { JsonObject, Json } from '../../../machines/agent/json.js'
import { StatewrightError } from '../../core/base/errors.js'
import { asList, asObject } from '../../core/base/values.js'
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
    // A schema may check asynchronously.
    const sampled = await sampleTool(tool, inputs[name])
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
export function sampleValue(root: JsonObject, n = 0): Json {
  return sample(root, n, 0)

  function sample(schema: JsonObject, at: number, depth: number): Json {
    const { const: fixed, enum: choices, default: preset, $ref: reference } = schema
    if (fixed !== undefined) return fixed
    if (Array.isArray(choices) && choices.length > 0) return choices[at % choices.length] ?? null
    const found = typeof reference === 'string' && depth < 8 ? resolve(reference) : null
    if (found) return sample(found, at, depth + 1)
    const variants = ['anyOf', 'oneOf', 'allOf'].flatMap((key) => asList(schema[key]))
    const first = variants.map(asObject).find((variant) => variant !== null)
    if (first) return sample(first, at, depth + 1)
    const type = Array.isArray(schema['type']) ? schema['type'][0] : schema['type']
    if (type === 'object' || asObject(schema['properties'])) return sampleObject(schema, at, depth)
    if (type === 'array') return sampleList(schema, at, depth)
    if (type === 'string') return sampleText(schema, at)
    if (type === 'integer' || type === 'number') return sampleNumber(schema, at)
    return type === 'boolean' ? at % 2 === 0 : (preset ?? null)
  }

  function resolve(reference: string): JsonObject | null {
    const parts = reference.replace(/^#\/?/, '').split('/').filter(Boolean)
    return parts.reduce<JsonObject | null>((found, part) => asObject(found?.[part]), root)
  }

  function sampleObject({ properties, required }: JsonObject, at: number, depth: number): JsonObject {
    const all = Object.entries(asObject(properties) ?? {})
    const needed = all.filter(([key]) => asList(required).includes(key))
    // Optional properties are omitted unless they are the only way to vary the input.
    const included = needed.length > 0 ? needed : depth === 0 ? all.slice(0, 1) : []
    return Object.fromEntries(
      included.map(([key, value]) => {
        const inner = asObject(value)
        return [key, inner && sample(inner, at, depth + 1)]
      }),
    )
  }

  function sampleList({ items, minItems }: JsonObject, at: number, depth: number): Json[] {
    const inner = asObject(items)
    const length = Math.max(1, Number(minItems ?? 1))
    return inner ? Array.from({ length }, (_, i) => sample(inner, at + i, depth + 1)) : []
  }
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
