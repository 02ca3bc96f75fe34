import { ConfigError } from '../core/base/errors.js'
import { readProperty } from '../core/base/json.js'
import { expectArgument, objectRule } from '../core/base/values.js'
import { defineTool } from '../core/tools/define-tool.js'
import type { Tool, ToolExecution } from '../core/tools/tool.js'
import type { InputPart } from '../core/models/media.js'
import { toolContent } from '../core/tools/tool-content.js'
import { ToolError } from '../core/tools/tool-error.js'
import {
  type InputSchema,
  isStandardSchema,
  type Issue,
  type StandardJsonSchema,
  type Validation,
} from '../core/tools/input-schema.js'

/** The return value of `tool({ … })` in `ai` 6 or 7. */
export interface AiSdkTool {
  readonly inputSchema: unknown
  readonly description?: unknown
  // oxlint-disable-next-line no-explicit-any -- accepts tools with any input
  execute?: ((input: any, options: any) => unknown) | undefined
  // oxlint-disable-next-line no-explicit-any -- as above
  needsApproval?: boolean | ((input: any, options: any) => unknown) | undefined
  // oxlint-disable-next-line no-explicit-any -- as above
  toModelOutput?: ((options: any) => unknown) | undefined
  readonly type?: unknown
}

/** The tools that `aiTools` returns, with their names, inputs and `context`. */
export type AiTools<Tools> = {
  [Name in keyof Tools & string]: Tool<InputOfTool<Tools[Name]>, ContextOfTool<Tools[Name]>, Name>
}[keyof Tools & string][]

type InputOfTool<Given> = Given extends { inputSchema: infer Schema } ? InputOfSchema<Schema> : unknown

/** `jsonSchema()` and `zodSchema()` declare their type as `_type`, other schemas as Standard Schema. */
type InputOfSchema<Schema> = Schema extends { readonly _type: infer Input }
  ? Input
  : Schema extends {
        readonly '~standard': { readonly types?: { readonly output: infer Output } | undefined }
      }
    ? Output
    : never

/** Typed in `ai` 7; the `experimental_context` of `ai` 6 is unknown. */
type ContextOfTool<Given> = Given extends { execute?: infer Execute }
  ? Extract<Execute, (...args: never[]) => unknown> extends (input: never, options: infer Options) => unknown
    ? Options extends { context: infer Context }
      ? Record<string, never> extends Context
        ? unknown
        : Context
      : unknown
    : unknown
  : unknown

/**
 * Converts AI SDK tools to tools for an agent: `tool({ … })` from `ai` 6 or 7, keyed by name as for `generateText`. A
 * tool without `execute` is executed by the page.
 *
 * `execute` receives `toolCallId`, `abortSignal`, and the `context` of the run as `context` and `experimental_context`;
 * `messages` is empty. The values of a generator are emitted as `tool_progress`, and the last one is the result.
 * `toModelOutput` returns the output for the model. Callbacks such as `onInputStart` are not called; use the events of
 * the run.
 *
 * @example
 * const weather = {
 *   description: 'Returns the weather in a city.',
 *   inputSchema: z.object({ city: z.string() }),
 *   execute: ({ city }: { city: string }) => `Sunny in ${city}.`,
 * } // as tool({ … }) of ai returns it
 * const agent = createAgent({ model, tools: aiTools({ weather }) })
 * @throws {ConfigError} `invalid_tool` for a tool that the provider executes, or without a JSON Schema
 * @throws {UsageError} `invalid_argument`
 */
export function aiTools<const Tools extends Readonly<Record<string, AiSdkTool>>>(tools: Tools): AiTools<Tools>
export function aiTools(tools: Readonly<Record<string, AiSdkTool>>): Tool[] {
  expectArgument('aiTools(tools)', tools, objectRule([], 'AI SDK tools by name: aiTools({ weather })'))
  return Object.entries(tools).map(([name, aiTool]) => toTool(name, aiTool))
}

function toTool(name: string, source: AiSdkTool): Tool {
  const refuse = (key: string, problem: string): ConfigError =>
    new ConfigError('invalid_tool', `AI SDK tool '${name}' ${problem}`, `${name}.${key}`)
  if (typeof source !== 'object' || source === null || !('inputSchema' in source))
    throw refuse('inputSchema', 'has no inputSchema. Pass the return value of tool({ … }).')
  const { type, description, needsApproval, execute } = source
  if (typeof type === 'string' && type.startsWith('provider'))
    throw refuse('type', 'is executed by its provider. Pass it to languageModel as one of its providerTools.')
  if (typeof description === 'function')
    throw refuse('description', 'has a function as its description. Use a string.')
  const common = { name, description: description as string, input: readAiSchema(name, source.inputSchema) }
  if (execute === undefined) {
    if (!needsApproval) return defineTool({ ...common, client: true })
    const problem = 'needs approval but has no execute. The page that executes it can ask the user.'
    throw refuse('needsApproval', problem)
  }
  return defineTool({
    ...common,
    needsApproval:
      typeof needsApproval === 'function'
        ? async (input: unknown, { context }) => {
            const options = { toolCallId: '', messages: [], context, experimental_context: context }
            return Boolean(await needsApproval(input, options))
          }
        : (needsApproval ?? false),
    execute: (input: unknown, execution: ToolExecution) => executeTool(source, input, execution),
  })
}

async function executeTool(source: AiSdkTool, input: unknown, execution: ToolExecution): Promise<unknown> {
  const { callId: toolCallId, signal: abortSignal, context, progress } = execution
  const options = { toolCallId, messages: [], abortSignal, context, experimental_context: context }
  const returned: unknown = source.execute?.(input, options)
  let output = isAsyncIterable(returned) ? undefined : await returned
  if (isAsyncIterable(returned))
    for await (const value of returned) {
      progress(value)
      output = value
    }
  if (!source.toModelOutput) return output
  return toToolOutput(await source.toModelOutput({ toolCallId, input, output }))
}

const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value

type Fields = Record<string, unknown>

/** Converts the return value of `toModelOutput` to a tool result. @throws {ToolError} for an error or a denial */
function toToolOutput(output: unknown): unknown {
  const { type, value, reason } = (output ?? {}) as Fields
  switch (type) {
    case 'text':
    case 'json':
      return value
    case 'error-text':
    case 'error-json':
      throw new ToolError('failed', typeof value === 'string' ? value : JSON.stringify(value))
    case 'execution-denied':
      throw new ToolError('policy_denied', typeof reason === 'string' ? reason : 'The call was denied.')
    case 'content':
      return toolContent((value as Fields[]).map(toPart))
    default: {
      const problem = `toModelOutput returned the type ${JSON.stringify(type)}, which is not supported.`
      throw new ToolError('failed', problem)
    }
  }
}

function toPart(part: Fields): InputPart {
  const { type, text, data, url, mediaType, filename } = part
  if (type === 'text') return { type, text: text as string }
  const isFile = type === 'file' && typeof data === 'object' && data !== null
  const payload = isFile ? ((data as Fields)['data'] ?? (data as Fields)['url']) : (data ?? url)
  const known = /^(media|file|(file|image)-(data|url))$/.test(String(type))
  if (!known || payload === undefined) {
    const problem = `toModelOutput returned a part ${JSON.stringify(type)}, which is not supported.`
    throw new ToolError('failed', problem)
  }
  const source = payload as string
  if (String(type).startsWith('image-') || /^image(\/|$)/.test(String(mediaType))) {
    const typed = typeof mediaType === 'string' && mediaType.includes('/') && { mediaType }
    return { type: 'image', image: source, ...typed }
  }
  const named = typeof filename === 'string' && { filename }
  return { type: 'file', data: source, mediaType: mediaType as string, ...named }
}

/** A schema without `validate` is validated as JSON Schema. @throws {ConfigError} `invalid_tool` for a promise of a schema */
function readAiSchema(name: string, option: unknown): InputSchema {
  if (isStandardSchema(option)) return option as InputSchema
  const schema: unknown = typeof option === 'function' ? (option as () => unknown)() : option
  // Marks the schemas of `jsonSchema()`, `zodSchema()` and others in `ai` 5 to 7.
  const isMarked = typeof schema === 'object' && schema !== null && Symbol.for('vercel.ai.schema') in schema
  if (!isMarked || !('jsonSchema' in schema)) return schema as InputSchema
  const { jsonSchema, validate } = schema as { jsonSchema: unknown; validate?: (value: unknown) => unknown }
  if (typeof readProperty(jsonSchema, 'then') === 'function')
    throw new ConfigError(
      'invalid_tool',
      `The JSON Schema of AI SDK tool '${name}' is a promise. Await it first: jsonSchema(await schema).`,
      `${name}.inputSchema`,
    )
  if (!validate) return jsonSchema as InputSchema
  const standard: StandardJsonSchema['~standard'] = {
    version: 1,
    vendor: 'ai',
    validate: async (value) => toValidation(await validate(value)),
    jsonSchema: { input: () => jsonSchema as Record<string, unknown> },
  }
  return { '~standard': standard }
}

function toValidation(result: unknown): Validation {
  const { success, value, error } = result as { success: boolean; value?: unknown; error?: unknown }
  if (success) return { value }
  const { issues, message } = (error ?? {}) as { issues?: unknown; message?: unknown }
  if (Array.isArray(issues) && issues.length > 0) return { issues: issues as Issue[] }
  return { issues: [{ message: typeof message === 'string' ? message : 'does not match the schema' }] }
}
