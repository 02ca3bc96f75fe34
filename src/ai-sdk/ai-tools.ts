import { ConfigError } from '../core/base/errors.js'
import { expectArgument, objectRule } from '../core/base/expect-argument.js'
import { defineTool } from '../core/tools/define-tool.js'
import type { ApprovalPredicate, Tool, ToolExecution } from '../core/tools/tool.js'
import { readAiSchema } from './ai-schema.js'
import { toToolOutput } from './ai-tool-output.js'

/** A tool of the AI SDK: what `tool({ … })` of `ai` 6 or 7 returns. */
export interface AiSdkTool {
  readonly inputSchema: unknown
  readonly description?: unknown
  // oxlint-disable-next-line no-explicit-any -- tools with any input fit
  execute?: ((input: any, options: any) => unknown) | undefined
  // oxlint-disable-next-line no-explicit-any -- as above
  needsApproval?: boolean | ((input: any, options: any) => unknown) | undefined
  // oxlint-disable-next-line no-explicit-any -- as above
  toModelOutput?: ((options: any) => unknown) | undefined
  readonly type?: unknown
}

/** The tools of `aiTools`, with their names, inputs and the `context` that they want. */
export type AiTools<Tools> = {
  [Name in keyof Tools & string]: Tool<InputOfTool<Tools[Name]>, ContextOfTool<Tools[Name]>, Name>
}[keyof Tools & string][]

type InputOfTool<Given> = Given extends { inputSchema: infer Schema } ? InputOfSchema<Schema> : unknown

/** Of any of the schemas that `inputSchema` may be: `jsonSchema()` and `zodSchema()` say it as `_type`, others as Standard Schema. */
type InputOfSchema<Schema> = Schema extends { readonly _type: infer Input }
  ? Input
  : Schema extends {
        readonly '~standard': { readonly types?: { readonly output: infer Output } | undefined }
      }
    ? Output
    : never

/** `ai` 7 has a type for it; the `experimental_context` of `ai` 6 is unknown. */
type ContextOfTool<Given> = Given extends { execute?: infer Execute }
  ? Extract<Execute, (...given: never[]) => unknown> extends (input: never, options: infer Options) => unknown
    ? Options extends { context: infer Context }
      ? Record<string, never> extends Context
        ? unknown
        : Context
      : unknown
    : unknown
  : unknown

/**
 * Tools of the AI SDK as tools of an agent: `tool({ … })` of `ai` 6 or 7 by its name, as `generateText` takes them. A tool without
 * `execute` is one that the page executes.
 *
 * `execute` gets `toolCallId`, `abortSignal`, and the `context` of the run as `context` and `experimental_context`; `messages` is
 * empty. What a generator yields is told as `tool_progress`, and the last of it is the result. `toModelOutput` makes what the model
 * reads. `onInputStart` and the like are not called: see the events of a run.
 *
 * @example
 * const weather = {
 *   description: 'The weather of a city.',
 *   inputSchema: z.object({ city: z.string() }),
 *   execute: ({ city }: { city: string }) => `Sunny in ${city}.`,
 * } // as tool({ … }) of ai returns it
 * const agent = createAgent({ model, tools: aiTools({ weather }) })
 * @throws {ConfigError} `invalid_tool`, naming the tool: one that the provider runs, or whose schema cannot be said as JSON Schema
 * @throws {UsageError} `invalid_argument`
 */
export function aiTools<const Tools extends Readonly<Record<string, AiSdkTool>>>(tools: Tools): AiTools<Tools>
export function aiTools(tools: Readonly<Record<string, AiSdkTool>>): Tool[] {
  expectArgument(
    'aiTools(tools)',
    tools,
    objectRule([], 'tools of the AI SDK by their names: aiTools({ weather })'),
  )
  return Object.entries(tools).map(([name, given]) => toTool(name, given))
}

function toTool(name: string, given: AiSdkTool): Tool {
  const refuse = (key: string, problem: string): never => {
    throw new ConfigError('invalid_tool', `Tool '${name}' of the AI SDK ${problem}`, `${name}.${key}`)
  }
  if (typeof given !== 'object' || given === null || !('inputSchema' in given))
    return refuse('inputSchema', 'has no inputSchema. Pass what tool({ … }) returned.')
  const { type, description, needsApproval, execute } = given
  if (typeof type === 'string' && type.startsWith('provider'))
    return refuse('type', 'is run by its provider. Give it to languageModel as a tool of the provider.')
  if (typeof description === 'function')
    return refuse('description', 'has a function as description. Write a text.')
  const common = {
    name,
    description: description as string,
    input: readAiSchema(name, given.inputSchema),
  }
  if (execute === undefined) {
    if (needsApproval !== undefined && needsApproval !== false)
      return refuse('needsApproval', 'needs approval, and has no execute: the page that executes it can ask.')
    return defineTool({ ...common, client: true })
  }
  return defineTool({
    ...common,
    needsApproval: typeof needsApproval === 'function' ? toPredicate(given) : (needsApproval ?? false),
    execute: (input: unknown, execution: ToolExecution) => carryOut(given, input, execution),
  })
}

function toPredicate(given: AiSdkTool): ApprovalPredicate<unknown> {
  return async (input, { context }) => {
    const { needsApproval } = given
    if (typeof needsApproval !== 'function') return needsApproval ?? false
    return Boolean(
      await needsApproval(input, { toolCallId: '', messages: [], context, experimental_context: context }),
    )
  }
}

async function carryOut(given: AiSdkTool, input: unknown, execution: ToolExecution): Promise<unknown> {
  const { callId: toolCallId, signal: abortSignal, context, progress } = execution
  const options = { toolCallId, messages: [], abortSignal, context, experimental_context: context }
  const returned: unknown = given.execute?.(input, options)
  const output = isAsyncIterable(returned) ? await readLast(returned, progress) : await returned
  if (!given.toModelOutput) return output
  return toToolOutput(await given.toModelOutput({ toolCallId, input, output }))
}

async function readLast(
  values: AsyncIterable<unknown>,
  progress: (value: unknown) => void,
): Promise<unknown> {
  let last: unknown
  for await (const value of values) {
    progress(value)
    last = value
  }
  return last
}

const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value
