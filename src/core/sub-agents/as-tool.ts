import { overrideLimits } from '../config/resolve-config.js'
import { ConfigError } from '../base/errors.js'
import { loadOnce } from '../base/platform.js'
import { defineTool } from '../tools/define-tool.js'
import type { ArgumentsOf, InputOf, InputSchema, StandardJsonSchema } from '../tools/input-schema.js'
import type { ApprovalPredicate, Delegate, Tool } from '../tools/tool.js'
import type { ChildHost } from './open-child.js'

/** How an agent is offered to another one. */
export interface AsToolOptions<
  Schema extends InputSchema = StandardJsonSchema<SubAgentTask>,
  Name extends string = string,
> {
  /** What the model calls it by: 1 to 64 letters, digits, `_` and `-`. */
  name: Name
  /** What it does and when to use it, for the model. */
  description: string
  /** What the model gives it. Default: `{ task: string }`. */
  input?: Schema
  /** The sub-agent's user message. Default: its `task`, or all of its input as JSON. */
  prompt?: (input: InputOf<Schema>) => string
  /** Steps of one run of the sub-agent; null is no cap. Default: its own `limits.maxSteps`. */
  maxSteps?: number | null
  /** Milliseconds that one run may take; 0 is no limit. Default: its own `limits.timeoutMs`. */
  timeoutMs?: number
  /** How deep sub-agents may be nested, counted from the run that people started. At least 1. Default 3. */
  maxDepth?: number
  /** Calls of it since the last user message, from 1; calls beyond it get a result that says so. Default: no cap. */
  maxCalls?: number
  /** The output of a sub-agent that completes is the answer of the run that calls it. Default false. */
  endsRun?: boolean
  /** Whether a person has to approve each call; a function decides call by call. Default false. */
  needsApproval?: boolean | ApprovalPredicate<InputOf<Schema>>
}

const keys = [
  'name',
  'description',
  'input',
  'prompt',
  'maxSteps',
  'timeoutMs',
  'maxDepth',
  'maxCalls',
  'endsRun',
  'needsApproval',
]

/** The parts of each sub-agent, by its delegate: definitions are compared with it. */
export const subAgentByDelegate = new WeakMap<Delegate, Pick<ChildHost, 'parts' | 'config'>>()

const loadOpenChild = loadOnce(() => import('./open-child.js'))

/** An agent as a tool of another. Throws a ConfigError for what cannot be one. */
export function asTool<Schema extends InputSchema, Name extends string>(
  agent: ChildHost,
  options: AsToolOptions<Schema, Name>,
): Tool<InputOf<Schema>, unknown, Name, ArgumentsOf<Schema>> {
  const {
    name,
    description,
    input,
    prompt,
    maxSteps,
    timeoutMs,
    maxDepth = 3,
    maxCalls,
    endsRun,
    needsApproval,
  } = checkOptions(options)
  const tool = defineTool({
    name,
    description,
    input: (input ?? taskSchema) as InputSchema,
    ...(maxCalls !== undefined && { maxCalls }),
    ...(endsRun !== undefined && { endsRun }),
    ...(needsApproval !== undefined && { needsApproval }),
    execute: () => undefined,
  })
  const config = overrideLimits(agent.config, {
    ...(maxSteps !== undefined && { maxSteps }),
    ...(timeoutMs !== undefined && { timeoutMs }),
  })
  const delegate: Delegate = {
    maxDepth,
    tools: agent.tools,
    messageFor: (given: unknown) => (prompt ? prompt(given as InputOf<Schema>) : formatTaskMessage(given)),
    open: async (errand) => {
      const { openChild } = await loadOpenChild()
      return openChild({ ...agent, config }, errand)
    },
  }
  subAgentByDelegate.set(delegate, { parts: agent.parts, config })
  return Object.freeze({
    ...(tool as Tool<InputOf<Schema>, unknown, Name, ArgumentsOf<Schema>>),
    execute: undefined,
    // The run of the sub-agent has its own time limit.
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

function checkOptions<Schema extends InputSchema, Name extends string>(
  options: AsToolOptions<Schema, Name>,
): AsToolOptions<Schema, Name> {
  if (typeof options !== 'object' || (options as unknown) === null) {
    throw new ConfigError('invalid_tool', 'asTool takes an object: { name, description, maxSteps, … }.')
  }
  const refuse = (key: string, problem: string): never => {
    throw new ConfigError('invalid_tool', `asTool: ${problem}`, key)
  }
  for (const key of Object.keys(options)) {
    if (!keys.includes(key)) refuse(key, `there is no option '${key}'. The options are ${keys.join(', ')}.`)
  }
  const { maxDepth, prompt } = options
  if (maxDepth !== undefined && !(Number.isSafeInteger(maxDepth) && maxDepth >= 1)) {
    refuse('maxDepth', 'maxDepth must be a whole number from 1: how deep sub-agents may be nested.')
  }
  if (prompt !== undefined && typeof prompt !== 'function') {
    refuse('prompt', 'prompt must be a function that makes a text of the input.')
  }
  return options
}

/** The input of a sub-agent's tool, where `asTool` has no `input` of its own. */
export interface SubAgentTask {
  /** What is to be done, in words. */
  task: string
}

/** The schema of a task; written by hand, because the core's schema library makes no JSON Schema. */
export const taskSchema: StandardJsonSchema<SubAgentTask> = {
  '~standard': {
    version: 1,
    vendor: 'statewright',
    validate: (value) => {
      const { task } = value as Partial<SubAgentTask>
      if (typeof task === 'string' && task.trim() !== '') return { value: { task } }
      return { issues: [{ message: 'Expected a text that is not empty', path: ['task'] }] }
    },
    jsonSchema: {
      input: () => ({
        type: 'object',
        properties: {
          task: {
            type: 'string',
            description: 'What is to be done. The sub-agent sees nothing else of this conversation.',
          },
        },
        required: ['task'],
        additionalProperties: false,
      }),
    },
  },
}
