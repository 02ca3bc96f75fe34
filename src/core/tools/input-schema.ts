import type { JsonObject } from '../../../machines/agent/json.js'
import { loadOnce } from '../base/platform.js'
import { describeError } from '../base/errors.js'
import { normalizeSchema } from '../models/normalize-schema.js'
import { readProperty } from '../base/json.js'

/**
 * What a tool's input may be described with: a schema of a library that implements Standard JSON Schema (zod >= 4.2),
 * or a JSON Schema as it is.
 */
export type InputSchema = StandardJsonSchema | PlainJsonSchema

/** A JSON Schema whose top level is an object. Other keywords go to the model as they are. */
export interface PlainJsonSchema {
  readonly type: 'object'
  readonly '~standard'?: never
  readonly [keyword: string]: unknown
}

/** What `execute` receives for a schema: the validated output, or any JSON object for a plain JSON Schema. */
export type InputOf<Schema> =
  Schema extends StandardJsonSchema<infer _Input, infer Output> ? Output : JsonObject

/** What the model, or a person who edits its call, gives for a schema: before defaults and transforms. */
export type ArgumentsOf<Schema> =
  Schema extends StandardJsonSchema<infer Input, infer _Output> ? Input : JsonObject

/** The schema, or a sentence in its place: what the compiler then shows says what to do. */
export type Usable<Schema> = Schema extends InputSchema
  ? Schema
  : `This input ${(typeof toolFlaws)['schema']}`

export type Validate = (value: unknown) => Validation | Promise<Validation>

/** How a schema checks arguments. */
export function createValidator(schema: InputSchema): Validate {
  if (!isStandardSchema(schema)) return plainSchemaValidator(copyJsonObject(schema))
  const standard = schema['~standard']
  return (value) => standard.validate(value)
}

const loadPlainValidator = loadOnce(() => import('./plain-validator.js'))

/** Loaded with the first tool that has such a schema: in time for its first call, or the call waits. */
function plainSchemaValidator(schema: JsonObject): Validate {
  let validate: ((value: unknown) => Validation) | undefined
  const load = async () => (validate ??= await (await loadPlainValidator()).createPlainValidator(schema))
  // The next check reports a failure, and loads again.
  load().catch(() => undefined)
  return (value) => (validate ? validate(value) : load().then((check) => check(value)))
}

/**
 * The JSON Schema of a tool: draft 2020-12 (the draft that OpenAI and Anthropic check against), `$schema` left out, always
 * with `properties`. A copy, so that later changes to the schema object change nothing. The provider fits it to its own rules.
 *
 * Throws an Error whose message completes 'The input of tool … '.
 */
export function toParameters(schema: InputSchema): JsonObject {
  // Libraries' own objects are JSON of a kind, and nothing that a model could use.
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
  } catch (error) {
    throw new Error(
      `cannot be written as JSON Schema: ${describeError(error)}. Models send ` +
        'JSON only: take a string or a number (z.iso.datetime() for a date) and convert it in execute.',
      { cause: error },
    )
  }
}

function copyJsonObject(schema: unknown): JsonObject {
  let copy: unknown
  try {
    copy = JSON.parse(JSON.stringify(schema) ?? 'null')
  } catch (error) {
    throw new Error('is not plain JSON. Remove circular references, BigInts and the like.', { cause: error })
  }
  if (typeof copy !== 'object' || copy === null || Array.isArray(copy)) {
    throw new Error(
      "is not a schema. Pass z.object({ … }) or a JSON Schema { type: 'object', properties: { … } }.",
    )
  }
  return copy as JsonObject
}

function explainNotAnObject(parameters: JsonObject): string {
  const union = ['oneOf', 'anyOf', 'allOf'].find((keyword) => keyword in parameters)
  if (union !== undefined) {
    return `has '${union}' at its top level, which providers refuse. Put the union in a field: z.object({ action: … }).`
  }
  const found = typeof parameters.type === 'string' ? `of type '${parameters.type}'` : 'without a type'
  return `is a schema ${found}, but arguments are always an object. Wrap it: z.object({ value: … }).`
}

/**
 * The part of the Standard Schema interface (https://standardschema.dev) that tools need. Zod 4, Valibot, ArkType and
 * others implement it, so no schema library is imported here.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': StandardProps<Input, Output>
}

/** A Standard Schema that can also say what it accepts as JSON Schema (zod >= 4.2, for example). */
export interface StandardJsonSchema<Input = unknown, Output = Input> {
  readonly '~standard': StandardProps<Input, Output> & {
    readonly jsonSchema: {
      /** Throws when the schema has no JSON Schema. */
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

export type Validation<Output = unknown> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] }

export interface Issue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const { '~standard': standard } = value as { '~standard'?: { validate?: unknown } }
  return typeof standard?.validate === 'function'
}

/**
 * What is wrong with a tool's definition, in words that say what to do: the compiler shows them where it would speak of
 * types, and `defineTool` throws the same.
 */
export const toolFlaws = {
  schema:
    "cannot say its JSON Schema. Use zod 4.2 or later (zod 3 cannot), another library that implements Standard JSON Schema, or a plain { type: 'object', properties: … }",
  parameters: "call it input, not 'parameters': a zod schema, or a JSON Schema as it is",
  execute: 'add execute: (input) => …, or client: true when the caller of the run executes it',
} as const

export const toolFlags = [
  'client',
  'idempotent',
  'readOnly',
  'polling',
  'defer',
  'endsRun',
  'keepsHandle',
] as const
export const toolKeys = [
  'name',
  'description',
  'input',
  'execute',
  'timeoutMs',
  'needsApproval',
  'maxCalls',
  ...toolFlags,
] as const

/** What a definition with these keys may have under each of them: anything, or the words for what is wrong. */
export type Flawless<Key extends PropertyKey> = {
  [Each in Key]?: Each extends 'parameters'
    ? (typeof toolFlaws)['parameters']
    : Each extends 'description'
      ? Executable<Key>
      : Each extends (typeof toolKeys)[number]
        ? unknown
        : `there is no option '${Each & string}'`
}

/** Told at the description: a compiler points at something that is there. */
type Executable<Key> =
  Extract<Key, 'execute' | 'client'> extends never ? (typeof toolFlaws)['execute'] : unknown
