import type { JsonObject } from '../../../machines/agent/json.js'
import { checkInput } from '../config/check-input.js'
import { anything, refine } from '../config/kind.js'
import { anyText, choice, record, section } from '../config/value-kinds.js'
import { ConfigError, describeError } from '../base/errors.js'
import {
  type InputOf,
  type InputSchema,
  toParameters,
  type Validate,
  createValidator,
} from '../tools/input-schema.js'
import { isStandardSchema, type StandardSchema } from '../tools/standard-schema.js'

/** How the model is asked for an object. */
export type OutputMode = 'auto' | 'response_format' | 'tool'

/** An output schema with what there is to say about it. */
export interface OutputOptions<Schema extends InputSchema = InputSchema> {
  /** A zod object, any other Standard JSON Schema, or a JSON Schema of an object. */
  schema: Schema
  /** What the format, and the final tool, are called. Default: `final_answer`. */
  name?: string
  /**
   * `response_format`: the provider is asked for JSON that follows the schema · `tool`: a tool that the model calls with
   * its answer · `auto` (default): the response format where the provider is known to take it, else the tool.
   */
  mode?: OutputMode
}

/** What `result.object` is for a schema. Without a schema there is none. */
export type OutputOf<Schema extends InputSchema> = [Schema] extends [never] ? never : InputOf<Schema>

/** What an agent's answers have to be. */
export interface StructuredOutput {
  readonly name: string
  readonly mode: OutputMode
  /** JSON Schema of the answer. */
  readonly schema: JsonObject
  readonly validate: Validate
  /** Awaited before the first request; rejects with a ConfigError for a schema that cannot be checked. */
  readonly ready: (() => Promise<void>) | undefined
}

/** @throws ConfigError for what is no schema, has no JSON Schema, or is none of an object. */
export function createStructuredOutput(option: InputSchema | OutputOptions): StructuredOutput {
  const {
    schema: given,
    name = 'final_answer',
    mode = 'auto',
  } = isOptions(option) ? checkOptions(option) : { schema: option }
  const schema = toJsonSchema(given)
  const { validate, ready } = isStandardSchema(given)
    ? { validate: createValidator(given), ready: undefined }
    : createPlainSchema(schema)
  return { name, mode, schema, validate, ready }
}

function isOptions(option: InputSchema | OutputOptions): option is OutputOptions {
  const isObject = typeof option === 'object' && option !== null
  return isObject && !isStandardSchema(option) && !('type' in option)
}

function checkOptions(options: OutputOptions): OutputOptions {
  checkInput(record({ output: settings }), { output: options }, 'output')
  return options
}

const phrase = 'up to 64 letters, digits, - and _'
const settings = section({
  schema: anything,
  name: refine(anyText(phrase), (name) => /^[\w-]{1,64}$/.test(name), phrase),
  mode: choice('auto', 'response_format', 'tool'),
})

function toJsonSchema(schema: InputSchema): JsonObject {
  try {
    return toParameters(schema)
  } catch (error) {
    throw new ConfigError('invalid_config', `output: what was given ${(error as Error).message}`, 'output', {
      cause: error,
    })
  }
}

/**
 * A plain JSON Schema as something that checks. Zod reads it; that part of zod is loaded only here, because it weighs
 * more than all that the core uses of it.
 *
 * `ready` rejects with a ConfigError when zod cannot check a keyword of the schema (`if`, `dependentRequired`, a
 * reference to elsewhere, …); `validate` may be called once it has resolved.
 */
function createPlainSchema(schema: JsonObject): { validate: Validate; ready: () => Promise<void> } {
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
