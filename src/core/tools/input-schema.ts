import type { JsonObject } from '../../../machines/agent/json.js'
import { loadOnce } from '../base/platform.js'
import { describeError } from '../base/errors.js'
import { normalizeSchema } from '../models/normalize-schema.js'
import { readPath, readProperty } from '../base/json.js'
import { isObject } from '../base/values.js'
import type { Validation } from './plain-validator.js'
export type { Issue, Validation } from './plain-validator.js'

/** The input schema of a tool: a Standard JSON Schema (zod >= 4.2), or a plain JSON Schema. */
export type InputSchema = StandardJsonSchema | PlainJsonSchema

/** A JSON Schema for an object. Unknown keywords are passed to the model. */
export interface PlainJsonSchema {
  readonly type: 'object'
  readonly '~standard'?: never
  readonly [keyword: string]: unknown
}

/** The input of `execute`: the validated output of the schema, or any JSON object for a plain JSON Schema. */
export type InputOf<Schema> =
  Schema extends StandardJsonSchema<infer _Input, infer Output> ? Output : JsonObject

/** The input before defaults and transforms, from the model or from a person who edits a call. */
export type ArgumentsOf<Schema> =
  Schema extends StandardJsonSchema<infer Input, infer _Output> ? Input : JsonObject

/** The schema, or a sentence that the compiler shows as advice. */
export type Usable<Schema> = Schema extends InputSchema
  ? Schema
  : `This input ${(typeof toolFlaws)['schema']}`

export type Validate = (value: unknown) => Validation | Promise<Validation>

export function createValidator(schema: InputSchema): Validate {
  if (!isStandardSchema(schema)) return plainSchemaValidator(copyJsonObject(schema))
  const standard = schema['~standard']
  return (value) => standard.validate(value)
}

const loadPlainValidator = loadOnce(() => import('./plain-validator.js'))

/**
 * Loads the validator when the first tool with a plain JSON Schema is defined. If necessary, a call waits for the
 * validator.
 */
function plainSchemaValidator(schema: JsonObject): Validate {
  let validate: ((value: unknown) => Validation) | undefined
  const load = async () => (validate ??= await (await loadPlainValidator()).createPlainValidator(schema))
  // The next check loads it again and reports the error.
  load().catch(() => undefined)
  return (value) => (validate ? validate(value) : load().then((check) => check(value)))
}

/**
 * Returns the JSON Schema of a tool in draft 2020-12, the draft that OpenAI and Anthropic validate against. The
 * schema has no `$schema` and always has `properties`. The result is a copy, so later changes to the schema have no
 * effect. Throws an Error whose message continues 'The input of tool … '.
 */
export function toParameters(schema: InputSchema): JsonObject {
  // A schema object from a library may be valid JSON, but it is useless to a model.
  if (!isStandardSchema(schema) && typeof readProperty(schema, 'parse') === 'function') {
    throw new Error(`${toolFlaws.schema}.`)
  }
  const { $schema: _, ...parameters } = normalizeSchema(
    copyJsonObject(isStandardSchema(schema) ? convertToJsonSchema(schema) : schema),
  )
  if (parameters.type !== 'object') throw new Error(explainNotAnObject(parameters))
  return { ...parameters, properties: parameters.properties ?? {} }
}

function convertToJsonSchema(schema: StandardJsonSchema): unknown {
  const { jsonSchema } = schema['~standard']
  if (typeof jsonSchema?.input !== 'function') throw new Error(`${toolFlaws.schema}.`)
  try {
    return jsonSchema.input({ target: 'draft-2020-12' })
  } catch (cause) {
    const advice = 'accept a string or a number (z.iso.datetime() for a date) and convert it in execute'
    const text = `cannot be written as JSON Schema: ${describeError(cause)}. Models send JSON only, so ${advice}.`
    throw new Error(text, { cause })
  }
}

function copyJsonObject(schema: unknown): JsonObject {
  let copy: unknown
  try {
    copy = JSON.parse(JSON.stringify(schema) ?? 'null')
  } catch (cause) {
    throw new Error('is not plain JSON. Remove circular references, BigInts and similar values.', { cause })
  }
  if (isObject(copy)) return copy as JsonObject
  throw new Error(
    "is not a schema. Pass z.object({ … }) or a JSON Schema { type: 'object', properties: { … } }.",
  )
}

function explainNotAnObject(parameters: JsonObject): string {
  const union = ['oneOf', 'anyOf', 'allOf'].find((keyword) => keyword in parameters)
  if (union !== undefined)
    return `has '${union}' at its top level, which providers refuse. Put the union in a field: z.object({ action: … }).`
  const found = typeof parameters.type === 'string' ? `of type '${parameters.type}'` : 'without a type'
  return `is a schema ${found}, but arguments are always an object. Wrap it: z.object({ value: … }).`
}

/**
 * The part of Standard Schema (https://standardschema.dev) that tools need. Zod 4, Valibot, ArkType and others
 * implement it, so no schema library is imported here.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': StandardProps<Input, Output>
}

/** A Standard Schema that can be converted to JSON Schema (zod >= 4.2, for example). */
export interface StandardJsonSchema<Input = unknown, Output = Input> {
  readonly '~standard': StandardProps<Input, Output> & {
    readonly jsonSchema: {
      /** Throws if the schema cannot be converted. */
      readonly input: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown>
    }
  }
}

interface StandardProps<Input, Output> {
  readonly version: 1
  readonly vendor: string
  readonly types?: { readonly input: Input; readonly output: Output } | undefined
  readonly validate: (value: unknown) => Validation<Output> | Promise<Validation<Output>>
}

export function isStandardSchema(value: unknown): value is StandardSchema {
  return typeof readPath(value, ['~standard', 'validate']) === 'function'
}

/** Advice for invalid tool definitions, used in compiler errors and by `defineTool`. */
export const toolFlaws = {
  schema:
    "has no JSON Schema. Use zod 4.2 or later (zod 3 cannot), another library that implements Standard JSON Schema, or a plain { type: 'object', properties: … }",
  parameters: "use input instead of 'parameters': a zod schema, or a plain JSON Schema",
  execute: "add execute: (input) => …, or client: true when the run's caller executes it",
} as const

const values = ['name', 'description', 'input', 'execute', 'timeoutMs', 'needsApproval', 'maxCalls'] as const
export const toolFlags = [
  'client',
  'idempotent',
  'readOnly',
  'polling',
  'defer',
  'endsRun',
  'keepsHandle',
] as const
export const toolKeys = [...values, ...toolFlags] as const

/** The allowed type of each key in a definition, or advice. */
export type Flawless<Key extends PropertyKey> = {
  [Each in Key]?: Each extends 'parameters'
    ? (typeof toolFlaws)['parameters']
    : Each extends 'description'
      ? Executable<Key>
      : Each extends (typeof toolKeys)[number]
        ? unknown
        : `there is no option '${Each & string}'`
}

/** Reported at `description`, because a compiler error needs an existing key. */
type Executable<Key> =
  Extract<Key, 'execute' | 'client'> extends never ? (typeof toolFlaws)['execute'] : unknown
