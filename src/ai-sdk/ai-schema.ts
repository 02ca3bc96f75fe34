import { ConfigError } from '../core/base/errors.js'
import type { InputSchema } from '../core/tools/input-schema.js'
import {
  isStandardSchema,
  type Issue,
  type StandardJsonSchema,
  type Validation,
} from '../core/tools/standard-schema.js'

/** What marks a schema of `jsonSchema()`, `zodSchema()` and others, in `ai` 5 to 7. */
const schemaSymbol = Symbol.for('vercel.ai.schema')

interface AiSchema {
  readonly jsonSchema: unknown
  readonly validate?: ((value: unknown) => unknown) | undefined
}

/**
 * An `inputSchema` of the AI SDK as the input of a tool. A schema without `validate` is checked as the JSON Schema that it is.
 *
 * @throws {ConfigError} `invalid_tool` for one that is not at hand yet; others are refused by `defineTool`
 */
export function readAiSchema(name: string, given: unknown): InputSchema {
  if (isStandardSchema(given)) return given as InputSchema
  const schema: unknown = typeof given === 'function' ? (given as () => unknown)() : given
  if (!isAiSchema(schema)) return schema as InputSchema
  const { jsonSchema, validate } = schema
  if (isPromiseLike(jsonSchema))
    throw new ConfigError(
      'invalid_tool',
      `Tool '${name}' of the AI SDK has a JSON Schema that is a promise. Await it first: jsonSchema(await schema).`,
      `${name}.inputSchema`,
    )
  if (!validate) return jsonSchema as InputSchema
  const standard: StandardJsonSchema = {
    '~standard': {
      version: 1,
      vendor: 'ai',
      validate: async (value) => toValidation(await validate(value)),
      jsonSchema: { input: () => jsonSchema as Record<string, unknown> },
    },
  }
  return standard
}

function isAiSchema(value: unknown): value is AiSchema {
  return typeof value === 'object' && value !== null && schemaSymbol in value && 'jsonSchema' in value
}

function toValidation(result: unknown): Validation {
  const { success, value, error } = result as { success: boolean; value?: unknown; error?: unknown }
  if (success) return { value }
  const { issues, message } = (error ?? {}) as { issues?: unknown; message?: unknown }
  if (Array.isArray(issues) && issues.length > 0) return { issues: issues as Issue[] }
  return { issues: [{ message: typeof message === 'string' ? message : 'does not fit the schema' }] }
}

const isPromiseLike = (value: unknown): boolean =>
  typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
