import { valueOr } from '../../core/base/maybe-promise.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import { checkInput } from '../../core/config/check-input.js'
import * as is from '../../core/config/kind.js'
import type { Kind } from '../../core/config/kind.js'
import { configError } from '../../core/base/errors.js'
import { authKind, type McpAuth } from './sign-in/auth-options.js'
import { isHttpUrl } from '../../core/models/openai/openai-options.js'
import type { Tool } from '../../core/tools/tool.js'
import type { ToolSource } from '../../core/tools/tool-set.js'

/** A server that runs as a child process and communicates over stdin and stdout. */
export interface McpCommand {
  /** The program, as a path or a name in PATH. It runs without a shell. */
  command: string
  /** Defaults to none. */
  args?: readonly string[]
  /**
   * Variables for the child, in addition to HOME, LOGNAME, PATH, SHELL, TERM and USER. No other variable of this
   * process is passed on.
   */
  env?: Readonly<Record<string, string>>
  /** The working directory. Defaults to the working directory of this process. */
  cwd?: string
}

/** A server that is reached over streamable HTTP. */
export interface McpAddress {
  /** An http or https URL. */
  url: string | URL
  /** Headers for every request, such as `{ Authorization: 'Bearer …' }`. */
  headers?: Readonly<Record<string, string>>
  /** The user's sign-in. Without it, a server that answers 401 cannot be used. */
  auth?: McpAuth
}

/** Which tools to use, and how far to trust the server. */
export interface McpCommonOptions {
  /** The prefix of the tool names. Defaults to the server's name. */
  name?: string
  /** The tools to use, by their names on the server. Defaults to all. */
  only?: readonly string[]
  /** Tools to omit. */
  except?: readonly string[]
  /**
   * Whether a person must approve each call. A function decides by the tool's name on the server. `annotations` requires
   * approval for tools that are not annotated as read-only (`readOnlyHint`) or additive (`destructiveHint: false`).
   * Defaults to false.
   */
  needsApproval?: boolean | 'annotations' | McpApproval
  /**
   * Whether the model gets only one line about each tool until it searches for the tool or calls it. A function decides
   * by the tool's name on the server. Requires `toolSearch()` among the agent's tools. Defaults to false.
   */
  defer?: boolean | ((toolName: string) => boolean)
  /**
   * Whether to trust the server's annotations `readOnlyHint` (unless `destructiveHint` contradicts it) and
   * `idempotentHint`. Guards are more patient with such tools, and interrupted calls are repeated. Defaults to false.
   */
  trustAnnotations?: boolean
  /** Whether to offer a tool that lists and reads resources (`resources/read` for `needsApproval`). Defaults to false. */
  resources?: boolean
  /** Maximum milliseconds without progress. 0 = off. Defaults to 60 000, or to the `ttl` of a task that has one. */
  timeoutMs?: number
  /** Maximum milliseconds for the server to start and list its tools. Defaults to 30 000. */
  startTimeoutMs?: number
  /** Maximum bytes of one message. A longer message ends the connection. Defaults to 10 485 760 (10 MiB). */
  maxMessageBytes?: number
  /** Receives a sentence about each omitted tool, and about unreadable lists. */
  onWarning?: (warning: string) => void
}

/** Decides whether a person must approve this call. An error counts as yes. */
export type McpApproval = (toolName: string, args: JsonObject) => boolean | Promise<boolean>

/**
 * A server, and options for its tools.
 *
 * @example
 * await mcpTools({ url: 'https://mcp.example.com', headers: { Authorization: `Bearer ${token}` }, only: ['search'] })
 */
export type McpOptions = (McpCommand | McpAddress) & McpCommonOptions

export const defaultTimeoutMs = 60_000

const defaults = {
  needsApproval: false,
  defer: false,
  trustAnnotations: false,
  resources: false,
  timeoutMs: defaultTimeoutMs,
  startTimeoutMs: 30_000,
  maxMessageBytes: 10 * 1024 * 1024,
}

export type CheckedMcpOptions = McpOptions & Required<Pick<McpCommonOptions, keyof typeof defaults>>

const textList = () => is.list(is.anyText(), 'a list of strings')
const textMap = () => is.map(is.anyText(), 'an object with string values')

const commonFields = {
  name: is.optional(is.nonEmptyText()),
  only: is.optional(textList()),
  except: is.optional(textList()),
  needsApproval: is.optional(
    is.union(
      [is.flag(), is.choice('annotations'), is.callable<McpApproval>()],
      "true, false, 'annotations' or a function",
    ),
  ),
  defer: is.optional(
    is.union([is.flag(), is.callable<(toolName: string) => boolean>()], 'true, false or a function'),
  ),
  trustAnnotations: is.optional(is.flag()),
  resources: is.optional(is.flag()),
  timeoutMs: is.optional(is.amount('milliseconds')),
  startTimeoutMs: is.optional(is.count(1)),
  maxMessageBytes: is.optional(is.count(1)),
  onWarning: is.optional(is.callable<(warning: string) => void>()),
}

const commandKind = is.record({
  ...commonFields,
  command: is.nonEmptyText(),
  args: is.optional(textList()),
  env: is.optional(textMap()),
  cwd: is.optional(is.nonEmptyText()),
})

export function serverAddress(): Kind<string | URL> {
  return is.predicate(isServerAddress, 'an http(s) URL without user name and password (use headers)')
}

const addressKind = is.record({
  ...commonFields,
  url: serverAddress(),
  headers: is.optional(is.refine(textMap(), isHeaders, 'an object with valid HTTP header names and values')),
  auth: is.optional(authKind),
})

function isServerAddress(url: unknown): boolean {
  if ((typeof url !== 'string' && !(url instanceof URL)) || !isHttpUrl(String(url))) return false
  const { username, password } = new URL(url)
  return username === '' && password === ''
}

/** Validated here, because the platform's error would reveal a secret. */
function isHeaders(headers: unknown): boolean {
  return valueOr(() => [...new Headers(headers as Record<string, string>)].every(Boolean), false)
}

/** Adds the defaults. Throws a ConfigError (`invalid_config`) that lists every problem. */
export function checkMcpOptions(input: unknown): CheckedMcpOptions {
  const has = (key: string): boolean => typeof input === 'object' && input !== null && key in input
  if (has('command') === has('url'))
    throw configError(
      'mcpTools takes either { command, args } to start a server, or { url, headers } to connect to one.',
      'command',
    )
  const isSecret = (path: string): boolean => /^(?:env|headers)\b|^url$|^auth\.clientSecret$/.test(path)
  const kind: Kind = has('command') ? commandKind : addressKind
  checkInput(kind, input, 'options of mcpTools', { isSecret })
  const defined = Object.entries(input as McpOptions).filter(([, value]) => value !== undefined)
  return { ...defaults, ...Object.fromEntries(defined) } as CheckedMcpOptions
}

/** An MCP server for agents. Add it to an agent's `tools`. Its list of tools may change while the agent runs. */
export interface McpServer extends ToolSource {
  /** `options.name`, or the server's name. */
  readonly name: string
  /** The current tools. */
  readonly tools: readonly Tool[]
  /**
   * Closes the connection, and ends a server that was started here. Can be called more than once.
   *
   * @example
   * const server = await mcpTools({ command: 'npx', args: ['-y', 'some-server'] })
   * await server.close()
   */
  close(): Promise<void>
}
