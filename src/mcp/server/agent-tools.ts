import type { JsonObject } from '../../../machines/agent/json.js'
import { configError, describeError, inputError } from '../../core/base/errors.js'
import type { Agents } from '../../core/drive/define-agents.js'
import { checkOptions, flagRule, type OptionRules } from '../../core/config/check-options.js'
import { type ArgumentRule, functionRule, isObject } from '../../core/base/values.js'
import { createValidator, type InputSchema, toParameters } from '../../core/tools/input-schema.js'
import { explainIssues } from '../../core/tools/parse-arguments.js'
import { fingerprintCall } from '../../../guards/lib/fingerprint.js'
import { sha256 } from '../../../guards/lib/sha256.js'
import type { FoldedSession } from '../../core/sessions/fold-session.js'
import { findClientId } from '../../core/sessions/find-turn.js'

/**
 * How to present an agent as a tool.
 *
 * @example
 * const weather: McpAgentTool = {
 *   description: 'Answers questions about the weather of a city.',
 *   input: z.object({ city: z.string() }),
 *   toMessage: ({ city }) => `How is the weather in ${city}?`,
 * }
 */
export interface McpAgentTool {
  /** The title of the tool, for people. */
  title?: string
  /** Describes the agent to the client's model. */
  description?: string
  /** The input of the tool. Defaults to `{ message, session? }`. `session` is added to any object. */
  input?: InputSchema
  /** Creates the user message from the input. Defaults to the input's JSON. */
  toMessage?: (input: never) => string
  /**
   * Whether calls become tasks. If false, even clients with task support wait for the answer, which is useful for fast
   * agents. Defaults to true.
   */
  task?: boolean
}

export type AgentTool = ReturnType<typeof createAgentTool>

export interface ToolRequest {
  message: string
  session: string | undefined
  /** Digest of the arguments as received, without `session`, because `toMessage` and shields may change the message. */
  digest: string
}

const sessionSchema = {
  type: 'string',
  description:
    'A conversation id. Choose one, or use the id from an earlier result. The same id and message return the same answer.',
}
const plainSchema: JsonObject = {
  type: 'object',
  properties: {
    message: { type: 'string', description: 'Your message to the agent.', minLength: 1 },
    session: sessionSchema,
  },
  required: ['message'],
  additionalProperties: false,
}
const stringRule: ArgumentRule = { is: (value) => typeof value === 'string', phrase: 'a string' }
const toolRules: OptionRules<McpAgentTool> = {
  title: stringRule,
  description: stringRule,
  input: null,
  toMessage: functionRule('a function of its input'),
  task: flagRule,
}

/** @throws {ConfigError} `invalid_config`, naming the tool */
export function createAgentTools(
  agents: Agents,
  options: Readonly<Record<string, McpAgentTool>> = {},
): Map<string, AgentTool> {
  const strange = Object.keys(options).find((name) => !agents.names.includes(name))
  if (strange !== undefined)
    throw configError(
      `There is no agent '${strange}'. The agents are: ${agents.names.join(', ')}.`,
      `tools.${strange}`,
    )
  return new Map(agents.names.map((name) => [name, createAgentTool(name, options[name] ?? {})]))
}

function createAgentTool(name: string, options: McpAgentTool) {
  const { title, description, input, toMessage, task = true } = options
  checkOptions(`mcpServer, tools.${name}`, options, toolRules, (message, key) =>
    configError(message, `tools.${name}.${key}`),
  )
  const about = description ?? `Asks the agent '${name}'.`
  const base = { name, title, description: about, mayBeTask: task }
  if (input === undefined)
    return {
      ...base,
      inputSchema: plainSchema,
      read: (value: unknown) => Promise.resolve(readRequest(name, value)),
    }
  let inputSchema: JsonObject
  try {
    const { $schema: draft } = input as { $schema?: unknown }
    inputSchema = { ...(typeof draft === 'string' && { $schema: draft }), ...toParameters(input) }
  } catch (error) {
    throw configError(`The input for tool '${name}' ${describeError(error)}`, `tools.${name}.input`)
  }
  const properties = inputSchema['properties'] as JsonObject
  const hasOwn = Object.hasOwn(properties, 'session')
  const shown: JsonObject = hasOwn
    ? inputSchema
    : { ...inputSchema, properties: { ...properties, session: sessionSchema } }
  const validate = createValidator(input)
  const read = async (value: unknown): Promise<ToolRequest> => {
    const { session, ...rest } = expectObject(name, value)
    const checked = await validate(hasOwn ? value : rest)
    if (checked.issues) {
      const problems = explainIssues(checked.issues, inputSchema)
      throw inputError(`The arguments of '${name}' do not match its schema:\n${problems}`, name)
    }
    const message = toMessage ? toMessage(checked.value as never) : JSON.stringify(checked.value)
    return { message, session: readSession(name, session), digest: digestArguments(name, rest) }
  }
  return { ...base, inputSchema: shown, read }
}

function readRequest(name: string, value: unknown): ToolRequest {
  const { message, session, ...rest } = expectObject(name, value)
  const [strange] = Object.keys(rest)
  if (strange !== undefined)
    throw inputError(`'${name}' takes message and session, not '${strange}'.`, strange)
  if (typeof message !== 'string' || message.trim() === '')
    throw inputError(`'${name}' needs a message: a non-blank string.`, 'message')
  return { message, session: readSession(name, session), digest: digestArguments(name, { message }) }
}

function expectObject(name: string, value: unknown): Record<string, unknown> {
  const object = value ?? {}
  if (isObject(object)) return object
  throw inputError(`The arguments of '${name}' must be a JSON object.`, name)
}

function readSession(name: string, session: unknown): string | undefined {
  if (session === undefined || session === null) return undefined
  if (typeof session === 'string') return session
  throw inputError(`The session of '${name}' must be a string, which identifies a conversation.`, 'session')
}

/**
 * Identifies a call in the log of its session, as the `clientId` of the message that starts the turn. Shields may
 * change the message, so a repeated call is recognized by a digest of its arguments as received.
 */
export interface CallName {
  /** A digest of the idempotency key. Empty without a key. */
  key: string
  /** A digest of the tool and its arguments. */
  words: string
}

/** Creates a name from digests of 128 bits. It includes the session, so that a fork does not answer calls to the original session. */
export function createCallName(
  session: string,
  { agent, key, digest }: { agent: string; key: string | undefined; digest: string },
): CallName {
  return {
    key: key === undefined ? '' : sha256(JSON.stringify([session, key])).slice(0, 32),
    words: sha256(JSON.stringify([session, agent, digest])).slice(0, 32),
  }
}

/** Digests arguments, independently of key order. */
const digestArguments = (tool: string, args: object): string => fingerprintCall(tool, JSON.stringify(args))

export function formatClientId({ key, words }: CallName, turn: number): string {
  return `mcp-${key}-${words}-${turn}`
}

/** The calls that started a session's turns, most recent last. */
export function listCalls({ keys, run }: FoldedSession): (CallName & { turn: number })[] {
  // The session stores its latest keys, and the transcript stores the keys of its messages.
  const messages = run?.context.messages ?? []
  const ids = [...messages.flatMap((message) => findClientId(message) ?? []), ...keys]
  return ids.flatMap((id) => {
    const [, key = '', words = '', turn] = /^mcp-([\da-f]*)-([\da-f]+)-(\d+)$/.exec(id) ?? []
    return turn === undefined ? [] : [{ key, words, turn: Number(turn) }]
  })
}
