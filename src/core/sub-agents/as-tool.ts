import { omitUndefined } from '../../../guards/lib/json.js'
import { overrideLimits } from '../config/resolve-config.js'
import { ConfigError } from '../base/errors.js'
import { loadOnce } from '../base/platform.js'
import { defineTool } from '../tools/define-tool.js'
import type { ArgumentsOf, InputOf, InputSchema, StandardJsonSchema } from '../tools/input-schema.js'
import type { ApprovalPredicate, Delegate, Tool } from '../tools/tool.js'
import type { ChildHost } from './open-child.js'

/** Options for offering an agent as a tool of another agent. */
export interface AsToolOptions<
  Schema extends InputSchema = StandardJsonSchema<SubAgentTask>,
  Name extends string = string,
> {
  /** The tool's name for the model: 1 to 64 letters, digits, `_` and `-`. */
  name: Name
  /** The purpose of the tool and when to use it. Read by the model. */
  description: string
  /** The input schema. Defaults to `{ task: string }`. */
  input?: Schema
  /** Returns the user message of the sub-agent. Defaults to the input's `task`, or to the whole input as JSON. */
  prompt?: (input: InputOf<Schema>) => string
  /**
   * Maximum number of steps per run of the sub-agent, or null for no limit. Defaults to the sub-agent's
   * `limits.maxSteps`.
   */
  maxSteps?: number | null
  /** Time limit per run in milliseconds, or 0 for no limit. Defaults to the sub-agent's `limits.timeoutMs`. */
  timeoutMs?: number
  /** Maximum nesting depth of sub-agents, counted from the run that a person started. At least 1. Defaults to 3. */
  maxDepth?: number
  /**
   * Maximum number of calls since the last user message, at least 1. Further calls get a result that states the limit.
   * Unlimited by default.
   */
  maxCalls?: number
  /** Whether the output of a completed sub-agent is the answer of the calling run. Defaults to false. */
  endsRun?: boolean
  /** Whether a person must approve each call. A function decides per call. Defaults to false. */
  needsApproval?: boolean | ApprovalPredicate<InputOf<Schema>>
}

const keys = 'name description input prompt maxSteps timeoutMs maxDepth maxCalls endsRun needsApproval'.split(
  ' ',
)

/** The parts of each sub-agent by its delegate, used to compare definitions. */
export const subAgentByDelegate = new WeakMap<Delegate, Pick<ChildHost, 'parts' | 'config'>>()

const loadOpenChild = loadOnce(() => import('./open-child.js'))

/** Offers an agent as a tool of another agent. Throws a ConfigError if the agent or an option does not allow this. */
export function asTool<Schema extends InputSchema, Name extends string>(
  agent: ChildHost,
  options: AsToolOptions<Schema, Name>,
): Tool<InputOf<Schema>, unknown, Name, ArgumentsOf<Schema>> {
  const { name, description, input, prompt, maxSteps, timeoutMs, maxDepth = 3 } = readOptions(options)
  const { maxCalls, endsRun, needsApproval } = options
  const tool = defineTool({
    name,
    description,
    input: (input ?? taskSchema) as InputSchema,
    ...omitUndefined({ maxCalls, endsRun, needsApproval }),
    execute: () => undefined,
  })
  const config = overrideLimits(agent.config, omitUndefined({ maxSteps, timeoutMs }))
  const delegate: Delegate = {
    maxDepth,
    tools: agent.parts.tools,
    messageFor: (input: unknown) => (prompt ? prompt(input as InputOf<Schema>) : formatTaskMessage(input)),
    open: async (errand) => {
      const { openChild } = await loadOpenChild()
      return openChild({ ...agent, config }, errand)
    },
  }
  subAgentByDelegate.set(delegate, { parts: agent.parts, config })
  return Object.freeze({
    ...(tool as Tool<InputOf<Schema>, unknown, Name, ArgumentsOf<Schema>>),
    execute: undefined,
    // The sub-agent's run has its own time limit.
    timeoutMs: 0,
    delegate,
  } satisfies Tool<InputOf<Schema>, unknown, Name, ArgumentsOf<Schema>>)
}

function formatTaskMessage(input: unknown): string {
  const fields = Object.entries(input ?? {})
  const [only] = fields
  if (fields.length === 1 && only?.[0] === 'task' && typeof only[1] === 'string') return only[1]
  return JSON.stringify(input)
}

/** Without `checkOptions`, which would make the first load of every page larger. */
function readOptions<Schema extends InputSchema, Name extends string>(options: AsToolOptions<Schema, Name>) {
  if (typeof options !== 'object' || (options as unknown) === null)
    throw new ConfigError('invalid_tool', 'asTool takes an object: { name, description, maxSteps, … }.')
  const refuse = (key: string, problem: string): never => {
    throw new ConfigError('invalid_tool', `asTool: ${problem}`, key)
  }
  for (const key of Object.keys(options))
    if (!keys.includes(key)) refuse(key, `there is no option '${key}'. The options are ${keys.join(', ')}.`)
  const { maxDepth = 1, prompt } = options
  if (!(Number.isSafeInteger(maxDepth) && maxDepth >= 1))
    refuse('maxDepth', 'maxDepth, how deep sub-agents may be nested, must be a positive integer.')
  if (prompt !== undefined && typeof prompt !== 'function')
    refuse('prompt', 'prompt must be a function that turns the input into a string.')
  return options
}

/** The input of a sub-agent's tool if `asTool` has no `input`. */
export interface SubAgentTask {
  /** A description of the task. */
  task: string
}

/** The schema of a task. Written by hand, because the core's schema library does not create JSON Schema. */
const taskSchema: StandardJsonSchema<SubAgentTask> = {
  '~standard': {
    version: 1,
    vendor: 'statewright',
    validate: (value) => {
      const { task } = value as Partial<SubAgentTask>
      if (typeof task === 'string' && task.trim() !== '') return { value: { task } }
      return { issues: [{ message: 'Expected a non-empty string', path: ['task'] }] }
    },
    jsonSchema: {
      input: () => ({
        type: 'object',
        properties: {
          task: {
            type: 'string',
            description: 'The task. The sub-agent sees nothing else from this conversation.',
          },
        },
        required: ['task'],
        additionalProperties: false,
      }),
    },
  },
}
