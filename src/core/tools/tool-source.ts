import { ConfigError } from '../base/errors.js'
import { readProperty } from '../base/json.js'
import { explainIssues } from './parse-arguments.js'
import { isStandardSchema, type StandardSchema } from './input-schema.js'
import type { Tool } from './tool.js'

/**
 * Tools that can change while agents use them: those of a server that adds and removes some. Put it among the `tools`
 * of an agent like a tool. What `mcpTools` of `statewright/mcp` resolves with is one.
 */
export interface ToolSource {
  /** For people, in error messages. */
  readonly name: string
  /**
   * The tools as they are now. Read again for every request and every call, so it has to be cheap, and the same array
   * until something changes: arrays are compared by identity.
   */
  readonly tools: readonly Tool[]
  /** A sentence for each tool that it leaves out. Each run emits it as a `warning`, `tool_left_out`. */
  readonly leftOut?: readonly string[]
}

/** A source's present list; undefined for what is none, or has none to give. Never throws. */
export function listSourceTools(source: unknown): readonly unknown[] | undefined {
  const tools = readProperty(source, 'tools')
  return Array.isArray(tools) ? (tools as unknown[]) : undefined
}

/**
 * Tools that are made from arguments: a root folder, a base URL, a tenant.
 *
 * @example
 * const files: ToolGroup<{ root: string }> = defineToolGroup({
 *   name: 'files',
 *   args: z.object({ root: z.string() }),
 *   tools: ({ root }) => [
 *     defineTool({ name: 'where', description: 'The folder.', input: z.object({}), execute: () => root }),
 *   ],
 * })
 * createAgent({ model, tools: [{ group: files, args: { root: '.' } }] })
 */
export interface ToolGroup<Input = unknown, Member extends Tool = Tool> {
  /** For people, in error messages. */
  readonly name: string
  /** The group's tools for these arguments. Throws a ConfigError `invalid_tool_group` when they do not fit. */
  readonly open: { method(args: Input): readonly Member[] }['method']
}

interface ToolGroupDefinition<Args extends StandardSchema, Member extends Tool = Tool> {
  name: string
  /** Schema of the arguments. Checked synchronously. */
  args: Args
  /** Makes the tools. They keep their own names. */
  tools: (args: OutputOf<Args>) => readonly Member[]
}

type InputOf<Schema> = Schema extends StandardSchema<infer Input, infer _Output> ? Input : never
type OutputOf<Schema> = Schema extends StandardSchema<infer _Input, infer Output> ? Output : never

/**
 * Defines a named group of tools with arguments.
 *
 * ```ts
 * const files = defineToolGroup({
 *   name: 'files',
 *   args: z.object({ root: z.string() }),
 *   tools: ({ root }) => [readIn(root), listIn(root)],
 * })
 * createAgent({ model, tools: [{ group: files, args: { root: '/srv' } }] })
 * ```
 *
 * Throws a ConfigError `invalid_tool_group` for a definition that cannot be used.
 */
export function defineToolGroup<Args extends StandardSchema, Member extends Tool>(
  definition: ToolGroupDefinition<Args, Member>,
): ToolGroup<InputOf<Args>, Member> {
  const {
    name,
    args: schema,
    tools,
  } = (definition as typeof definition | null | undefined) ?? ({} as typeof definition)
  if (typeof name !== 'string' || name === '') throw invalidGroupError('?', 'name is missing')
  if (!isStandardSchema(schema))
    throw invalidGroupError(name, 'args must be a schema, such as z.object({ … })')
  if (typeof tools !== 'function')
    throw invalidGroupError(name, 'tools must be a function that returns the tools')
  const open = (args: unknown): readonly Member[] => {
    const checked = schema['~standard'].validate(args)
    if ('then' in checked) throw invalidGroupError(name, 'args must be a schema that checks synchronously')
    if (checked.issues)
      throw invalidGroupError(name, `its args do not fit:\n${explainIssues(checked.issues)}\n`)
    const made: unknown = tools(checked.value as OutputOf<Args>)
    if (!Array.isArray(made)) throw invalidGroupError(name, 'tools must return an array of tools')
    return made as Member[]
  }
  return Object.freeze({ name, open })
}

function invalidGroupError(name: string, problem: string): ConfigError {
  return new ConfigError('invalid_tool_group', `Tool group '${name}': ${problem}.`, name)
}
