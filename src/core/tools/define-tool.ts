import { ConfigError, describeError } from '../base/errors.js'
import { readDefinition } from '../config/definition.js'
import { findOtherName } from '../config/other-names.js'
import {
  type Flawless,
  toolFlaws,
  toolFlags,
  toolKeys,
  type ArgumentsOf,
  type InputOf,
  type InputSchema,
  toParameters,
  type Usable,
  createValidator,
} from './input-schema.js'
import type { ApprovalPredicate, Tool, ToolExecution } from './tool.js'

export type { Tool, ToolExecution } from './tool.js'

interface CommonDefinition<Schema, Name extends string> {
  /** Name for the model: 1 to 64 letters, digits, `_` and `-`. */
  name: Name
  /** Describes to the model when and how to use the tool. */
  description: string
  /** A zod schema (or any Standard JSON Schema), or `{ type: 'object', properties: … }`. */
  input: Usable<Schema>
  /** Whether two executions with the same idempotency key have the effect of one. Defaults to false. */
  idempotent?: boolean
  /** Whether the tool has no side effects. Defaults to false. */
  readOnly?: boolean
  /** Whether the tool is meant to be called repeatedly, for example to wait for something. Defaults to false. */
  polling?: boolean
  /**
   * Whether the model gets only one line about the tool until it searches for it or calls it. Requires `toolSearch`
   * among the agent's tools. Defaults to false.
   */
  defer?: boolean
  /** Whether a successful result ends the run in COMPLETED with the result as its output. Defaults to false. */
  endsRun?: boolean
  /**
   * Whether the tool stores a handle for external work (`keepHandle`) and continues from it (`handle`). A call with a
   * handle is executed again after a crash. Defaults to false.
   */
  keepsHandle?: boolean
  /** Maximum calls per run, at least 1. Further calls get a result that states the limit. Unlimited by default. */
  maxCalls?: number
}

/** A tool that the run executes. */
export interface ExecutedToolDefinition<Schema, Context, Name extends string>
  extends CommonDefinition<Schema, Name> {
  /**
   * Returns the result for the model. Strings are passed unchanged, other values as JSON. Throw a `ToolError` to
   * classify a failure. Other errors are classified by code, name, status and message. A typed context, `(input, {
   * context }: ToolExecution<{ db: Db }>) => …`, becomes required in `run`.
   */
  execute: (input: InputOf<Schema>, execution: ToolExecution<Context>) => unknown
  /** Timeout for a call in milliseconds. 0 = off. Defaults to `toolCalls.timeoutMs`. */
  timeoutMs?: number
  /** Whether a person must approve each call. A function decides per call. Defaults to false. */
  needsApproval?: boolean | ApprovalPredicate<InputOf<Schema>>
  client?: false
}

/** A tool that the caller of the run executes. The caller sends the result with `run.addToolOutput(callId, value)`. */
export interface ClientToolDefinition<Schema, Name extends string> extends CommonDefinition<Schema, Name> {
  client: true
  execute?: never
  timeoutMs?: never
  needsApproval?: never
}

/**
 * Defines a tool. Its JSON Schema is created here, so that an unusable schema is reported before a run starts.
 *
 * ```ts
 * const read = defineTool({
 *   name: 'read',
 *   description: 'Reads a text file.',
 *   input: z.object({ path: z.string() }),
 *   readOnly: true,
 *   execute: ({ path }, { signal }) => readFile(path, { encoding: 'utf8', signal }),
 * })
 * ```
 *
 * Throws a ConfigError `invalid_tool` for an invalid definition. The error names the tool and the remedy.
 */
export function defineTool<
  Schema extends InputSchema | object,
  Key extends PropertyKey,
  Context = unknown,
  const Name extends string = string,
>(
  definition: (ExecutedToolDefinition<Schema, Context, Name> | ClientToolDefinition<Schema, Name>) &
    Flawless<Key>,
): Tool<InputOf<Schema>, Context, Name, ArgumentsOf<Schema>> {
  checkDefinition(definition)
  const { name, description, execute, timeoutMs, maxCalls, endsRun, keepsHandle, defer } = definition
  const { needsApproval = false, client = false } = definition
  const { idempotent = false, readOnly = false, polling = false } = definition
  const input = definition.input as InputSchema
  return Object.freeze({
    name,
    description,
    parameters: createParameters(name, input),
    validate: createValidator(input),
    execute,
    timeoutMs,
    needsApproval,
    client,
    idempotent,
    readOnly,
    polling,
    ...(maxCalls !== undefined && { maxCalls }),
    ...(endsRun && { endsRun }),
    ...(keepsHandle && { keepsHandle }),
    ...(defer && { defer }),
  })
}

function createParameters(name: string, input: InputSchema): Tool['parameters'] {
  try {
    return toParameters(input)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : describeError(cause)
    throw new ConfigError('invalid_tool', `The input of tool '${name}' ${why}`, `${name}.input`, { cause })
  }
}

function checkDefinition(definition: unknown): void {
  const { fields, refuse } = readDefinition('tool', definition, 'name, description, input, execute')
  for (const key of Object.keys(fields)) {
    if (key === 'parameters') refuse(key, `${toolFlaws.parameters}.`)
    if ((toolKeys as readonly string[]).includes(key)) continue
    const other = findOtherName(key)
    const hint = other ? `Use ${other}.` : `The options are ${toolKeys.join(', ')}.`
    refuse(key, `there is no option '${key}'. ${hint}`)
  }
  const { description, execute, timeoutMs = 0, needsApproval, maxCalls = 1, client } = fields
  if (typeof description !== 'string' || description.trim() === '')
    refuse(
      'description',
      'description is missing. Describe for the model what the tool does and when to use it.',
    )
  if (!(Number.isFinite(timeoutMs) && Number(timeoutMs) >= 0))
    refuse('timeoutMs', 'timeoutMs must be a number of milliseconds, 0 for no limit.')
  if (!(Number.isSafeInteger(maxCalls) && Number(maxCalls) >= 1))
    refuse('maxCalls', 'maxCalls must be a positive integer. Omit it for no cap.')
  if (!['undefined', 'boolean', 'function'].includes(typeof needsApproval))
    refuse('needsApproval', 'needsApproval must be true, false or a function.')
  for (const flag of toolFlags)
    if (!['undefined', 'boolean'].includes(typeof fields[flag]))
      refuse(flag, `${flag} must be true or false.`)
  const extra = ['execute', 'timeoutMs', 'needsApproval'].find((key) => fields[key] !== undefined)
  if (client === true && extra !== undefined)
    refuse(
      extra,
      `a client tool is executed by the run's caller, so it cannot have ${extra}. Remove one of the two.`,
    )
  if (client !== true && typeof execute !== 'function')
    refuse('execute', execute === undefined ? `${toolFlaws.execute}.` : 'execute must be a function.')
}
