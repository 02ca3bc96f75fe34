import type { JsonObject } from '../../../machines/agent/json.js'
import { ConfigError } from '../base/errors.js'
import { describeError } from '../base/describe-error.js'
import type { Validate } from '../tools/input-schema.js'
import type { StandardSchema } from '../tools/standard-schema.js'

/**
 * A plain JSON Schema as something that checks. Zod reads it; that part of zod is loaded only here, because it weighs
 * more than all that the core uses of it.
 *
 * `ready` rejects with a ConfigError when zod cannot check a keyword of the schema (`if`, `dependentRequired`, a
 * reference to elsewhere, …); `validate` may be called once it has resolved.
 */
export function createPlainSchema(schema: JsonObject): { validate: Validate; ready: () => Promise<void> } {
  let compiling: Promise<StandardSchema> | undefined
  const compiled = () => (compiling ??= compileSchema(schema))
  return {
    validate: async (value) => (await compiled())['~standard'].validate(value),
    ready: async () => {
      await compiled()
    },
  }
}

async function compileSchema(schema: JsonObject): Promise<StandardSchema> {
  const { fromJSONSchema } = await import('zod')
  try {
    return fromJSONSchema(schema as Parameters<typeof fromJSONSchema>[0])
  } catch (error) {
    throw new ConfigError(
      'invalid_config',
      `output: answers cannot be validated against this JSON Schema (${describeError(error)}). Use plainer keywords, or a zod schema.`,
      'output',
      { cause: error },
    )
  }
}
