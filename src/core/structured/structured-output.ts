import { loadOnce } from '../base/platform.js'
import { getOrCreate, memoize } from '../base/values.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import { checkInput } from '../config/check-input.js'
import { anything, refine, anyText, choice, record, section } from '../config/kind.js'
import { ConfigError, describeError } from '../base/errors.js'
import {
  type InputOf,
  type InputSchema,
  toParameters,
  type Validate,
  createValidator,
  isStandardSchema,
  type StandardSchema,
} from '../tools/input-schema.js'
import type { ModelProvider, ModelRequest, ResponseFormat, ToolSpec } from '../models/provider.js'
import { toStrictSchema } from './strict-schema.js'

/** How the model is made to return an object. */
export type OutputMode = 'auto' | 'response_format' | 'tool'

/** An output schema with its options. */
export interface OutputOptions<Schema extends InputSchema = InputSchema> {
  /** A zod object, another Standard JSON Schema, or a JSON Schema of an object. */
  schema: Schema
  /** Name of the format and of the final tool. Defaults to `final_answer`. */
  name?: string
  /**
   * With `response_format`, the provider enforces the schema. With `tool`, the model calls a tool with its answer.
   * `auto` (default) uses the response format if the provider is known to support it, otherwise the tool.
   */
  mode?: OutputMode
}

/** The type of `result.object` for a schema. */
export type OutputOf<Schema extends InputSchema> = [Schema] extends [never] ? never : InputOf<Schema>

export interface StructuredOutput {
  readonly name: string
  readonly mode: OutputMode
  readonly schema: JsonObject
  readonly validate: Validate
  /** Called and awaited before the first request. Rejects with a ConfigError for an unsupported schema. */
  readonly ready: (() => Promise<void>) | undefined
}

/** @throws ConfigError for an invalid schema, or one without a JSON Schema of an object */
export function createStructuredOutput(option: InputSchema | OutputOptions): StructuredOutput {
  const options: OutputOptions = isOptions(option) ? option : { schema: option }
  if (options === option) checkInput(record({ output: settings }), { output: options }, 'output')
  const { schema: source, name = 'final_answer', mode = 'auto' } = options
  const schema = toJsonSchema(source)
  const { validate, ready } = isStandardSchema(source)
    ? { validate: createValidator(source), ready: undefined }
    : createPlainSchema(schema)
  return { name, mode, schema, validate, ready }
}

function isOptions(option: InputSchema | OutputOptions): option is OutputOptions {
  return typeof option === 'object' && option !== null && !isStandardSchema(option) && !('type' in option)
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
    throw new ConfigError('invalid_config', `output: the value ${(error as Error).message}`, 'output', {
      cause: error,
    })
  }
}

/**
 * Uses zod, whose required part is large and loaded on demand. `ready` rejects with a ConfigError if zod does not
 * support a keyword (`if`, `dependentRequired`, an external reference, …), and must come before `validate`.
 */
function createPlainSchema(schema: JsonObject): { validate: Validate; ready: () => Promise<void> } {
  const compiled = loadOnce(() => compileSchema(schema))
  return {
    validate: async (value) => (await compiled())['~standard'].validate(value),
    ready: async () => void (await compiled()),
  }
}

async function compileSchema(schema: JsonObject): Promise<StandardSchema> {
  const { fromJSONSchema } = await import('zod')
  try {
    return fromJSONSchema(schema as Parameters<typeof fromJSONSchema>[0])
  } catch (error) {
    throw new ConfigError(
      'invalid_config',
      `output: answers cannot be validated against this JSON Schema (${describeError(error)}). Use simpler keywords, or a zod schema.`,
      'output',
      { cause: error },
    )
  }
}

/** `deferred` are tools that may be loaded later, and whose names the final tool must not have. */
export function demandOutput(
  output: StructuredOutput,
  request: ModelRequest,
  model: ModelProvider,
  conclude: boolean,
  deferred: readonly { name: string }[] = [],
): ModelRequest {
  if (canTakeFormat(output, request, model)) return { ...request, responseFormat: getFormat(output) }
  const tool = getFinalToolSpec(output, [...request.tools, ...deferred])
  return {
    ...request,
    tools: [...request.tools, tool],
    ...(conclude && { nudges: [...request.nudges, `Give the answer by calling ${tool.name}.`] }),
  }
}

export function findFinalTool({ schema }: StructuredOutput, { tools }: ModelRequest): string | undefined {
  // One of the app's tools may have the same name, but it is a different object.
  return tools.find(({ parameters }) => parameters === schema)?.name
}

export function canTakeFormat(
  { mode }: StructuredOutput,
  { tools }: Pick<ModelRequest, 'tools'>,
  model: ModelProvider,
): boolean {
  if (mode !== 'auto') return mode === 'response_format'
  return (
    model.structuredOutput === 'beside_tools' || (model.structuredOutput === 'alone' && tools.length === 0)
  )
}

/** Strict if that does not change the set of accepted values. Created with the first request. */
export const getFormat = memoize(({ name, schema }: StructuredOutput): ResponseFormat => {
  const strict = toStrictSchema(schema)
  return { name, schema: strict ?? schema, strict: strict !== null }
})

const getSpecs = memoize((_schema: JsonObject) => new Map<string, ToolSpec>())

/** The spec of the final tool. Cached by name, because providers and token counters cache tools by identity. */
function getFinalToolSpec({ name: wanted, schema }: StructuredOutput, tools: readonly { name: string }[]) {
  const name = findFreeName(wanted, tools)
  return getOrCreate(getSpecs(schema), name, () => ({ name, description, parameters: schema }))
}

const description =
  'Gives the final answer and ends the task. Call it once, without other tools, when everything else is done, instead of answering in text.'

function findFreeName(wanted: string, tools: readonly { name: string }[]): string {
  const used = new Set(tools.map(({ name }) => name))
  let name = wanted
  for (let number = 2; used.has(name); number++) name = `${wanted.slice(0, 60)}_${number}`
  return name
}
