import { ConfigError } from '../base/errors.js'
import { readProperty } from '../base/json.js'
import { explainIssues } from './parse-arguments.js'
import { isStandardSchema, type StandardSchema } from './input-schema.js'
import type { Tool } from './tool.js'

/**
 * Tools that may change at run time, such as the tools of a server. Add the source to the `tools` of an agent.
 * `mcpTools` from `statewright/mcp` resolves with one.
 */
export interface ToolSource {
  /** The name for error messages. */
  readonly name: string
  /**
   * The current tools. Read for every request and call, so the getter must be cheap and return the same array until
   * something changes.
   */
  readonly tools: readonly Tool[]
  /** A sentence for each omitted tool. Each run emits it as the warning `tool_left_out`. */
  readonly leftOut?: readonly string[]
}

/** Lists the tools of a source. Returns undefined if the source is invalid. Never throws. */
export function listSourceTools(source: unknown): readonly unknown[] | undefined {
  const tools = readProperty(source, 'tools')
  return Array.isArray(tools) ? (tools as unknown[]) : undefined
}

/** Tools created from arguments, such as a root folder, a base URL or a tenant. See `defineToolGroup`. */
export interface ToolGroup<Input = unknown, Member extends Tool = Tool> {
  /** The name for error messages. */
  readonly name: string
  /** Creates the tools. Throws a ConfigError `invalid_tool_group` for invalid arguments. */
  readonly open: { method(args: Input): readonly Member[] }['method']
}

interface ToolGroupDefinition<Args extends StandardSchema, Member extends Tool = Tool> {
  name: string
  /** Schema of the arguments. The schema must validate synchronously. */
  args: Args
  /** Creates the tools. Their names must not change. */
  tools: (args: OutputOf<Args>) => readonly Member[]
}

type InputOf<Schema> = Schema extends StandardSchema<infer Input, infer _Output> ? Input : never
type OutputOf<Schema> = Schema extends StandardSchema<infer _Input, infer Output> ? Output : never

/**
 * Defines a group of tools with arguments.
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
 * Throws a ConfigError `invalid_tool_group` for an invalid definition.
 */
export function defineToolGroup<Args extends StandardSchema, Member extends Tool>(
  definition: ToolGroupDefinition<Args, Member>,
): ToolGroup<InputOf<Args>, Member> {
  const { name, args: schema, tools } = (definition ?? {}) as typeof definition
  if (typeof name !== 'string' || name === '') throw invalidGroupError('?', 'name is missing')
  if (!isStandardSchema(schema))
    throw invalidGroupError(name, 'args must be a schema, such as z.object({ … })')
  if (typeof tools !== 'function')
    throw invalidGroupError(name, 'tools must be a function that returns the tools')
  const open = (args: unknown): readonly Member[] => {
    const checked = schema['~standard'].validate(args)
    if ('then' in checked) throw invalidGroupError(name, 'args must be a schema that validates synchronously')
    if (checked.issues)
      throw invalidGroupError(name, `its args are invalid:\n${explainIssues(checked.issues)}\n`)
    const created: unknown = tools(checked.value as OutputOf<Args>)
    if (!Array.isArray(created)) throw invalidGroupError(name, 'tools must return an array of tools')
    return created as Member[]
  }
  return Object.freeze({ name, open })
}

function invalidGroupError(name: string, problem: string): ConfigError {
  return new ConfigError('invalid_tool_group', `Tool group '${name}': ${problem}.`, name)
}
