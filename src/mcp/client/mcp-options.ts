import type { JsonObject } from '../../../machines/agent/json.js'
import { checkInput } from '../../core/config/check-input.js'
import {
  amount,
  anyText,
  callable,
  choice,
  count,
  flag,
  type Kind,
  list,
  map,
  nonEmptyText,
  optional,
  predicate,
  record,
  refine,
  union,
} from '../../core/config/kind.js'
import { ConfigError } from '../../core/base/errors.js'
import { authKind, type McpAuth } from './sign-in/auth-options.js'
import { isHttpUrl } from '../../core/models/openai/openai-options.js'
import type { Tool } from '../../core/tools/tool.js'
import type { ToolSource } from '../../core/tools/tool-source.js'

/** A server that is started as a child process and spoken to over its stdin and stdout. */
export interface McpCommand {
  /** The program: a path, or a name that is looked up in PATH. No shell is involved. */
  command: string
  /** What it is started with. Default: nothing. */
  args?: readonly string[]
  /**
   * Variables for the child, beside the few that it always gets (HOME, LOGNAME, PATH, SHELL, TERM, USER). Nothing else
   * of this process's environment is handed on.
   */
  env?: Readonly<Record<string, string>>
  /** Its working directory. Default: that of this process. */
  cwd?: string
}

/** A server that is reached over streamable HTTP. */
export interface McpAddress {
  /** Where it is: http or https. */
  url: string | URL
  /** Sent with every request: `{ Authorization: 'Bearer …' }`. */
  headers?: Readonly<Record<string, string>>
  /** How the user signs in where the server asks for it. Default: a server that answers 401 cannot be used. */
  auth?: McpAuth
}

/** Which tools are taken, and how far the server is trusted. */
export interface McpCommonOptions {
  /** What the names of its tools begin with. Default: the name that the server gives itself. */
  name?: string
  /** The tools to take, by the server's names for them; default all. */
  only?: readonly string[]
  /** Tools to leave out. */
  except?: readonly string[]
  /**
   * Whether a person has to approve each call; a function decides by the server's name of the tool. `annotations`: those of tools
   * that do not say of themselves that they change nothing (`readOnlyHint`), or only add (`destructiveHint: false`). Default false.
   */
  needsApproval?: boolean | 'annotations' | McpApproval
  /**
   * Whether the model reads only a line about each tool until it looks the tool up, or calls it; a function decides by the
   * server's name of the tool. Needs `toolSearch()` among the agent's tools. Default false.
   */
  defer?: boolean | ((toolName: string) => boolean)
  /**
   * Believe what the server says of its tools: `readOnlyHint` (unless `destructiveHint` contradicts it) and
   * `idempotentHint`. Guards are more patient with such tools, and interrupted calls are repeated. Default false.
   */
  trustAnnotations?: boolean
  /**
   * Offer a tool that lists and reads the server's resources. For `needsApproval`, its name is `resources/read`. Default false.
   */
  resources?: boolean
  /**
   * Milliseconds that a call may take without a sign of progress; 0 is no limit. Default 60 000; a task that has a `ttl` may
   * take as long as that by default.
   */
  timeoutMs?: number
  /** Milliseconds that the server has to start, introduce itself and list its tools. Default 30 000. */
  startTimeoutMs?: number
  /** Bytes of one message of the server; a longer one ends the connection. Default 10 485 760 (10 MiB). */
  maxMessageBytes?: number
  /** Told in a sentence about each tool that is left out, and about lists that could not be read. */
  onWarning?: (warning: string) => void
}

/** Whether a person has to approve this call of this tool. Whatever it throws counts as yes. */
export type McpApproval = (toolName: string, args: JsonObject) => boolean | Promise<boolean>

/**
 * A server, and how its tools are taken.
 *
 * @example
 * await mcpTools({ url: 'https://mcp.example.com', headers: { Authorization: `Bearer ${token}` }, only: ['search'] })
 */
export type McpOptions = (McpCommand | McpAddress) & McpCommonOptions

type DefaultedKey =
  | 'defer'
  | 'timeoutMs'
  | 'startTimeoutMs'
  | 'maxMessageBytes'
  | 'trustAnnotations'
  | 'resources'
  | 'needsApproval'

export const defaultTimeoutMs = 60_000

export type CheckedMcpOptions = McpOptions & Required<Pick<McpCommonOptions, DefaultedKey>>

const textList = () => list(anyText(), 'a list of texts')
const textMap = () => map(anyText(), 'an object of texts')

const commonFields = {
  name: optional(nonEmptyText()),
  only: optional(textList()),
  except: optional(textList()),
  needsApproval: optional(
    union(
      [flag(), choice('annotations'), callable<McpApproval>()],
      "true, false, 'annotations' or a function",
    ),
  ),
  defer: optional(union([flag(), callable<(toolName: string) => boolean>()], 'true, false or a function')),
  trustAnnotations: optional(flag()),
  resources: optional(flag()),
  timeoutMs: optional(amount('milliseconds')),
  startTimeoutMs: optional(count(1)),
  maxMessageBytes: optional(count(1)),
  onWarning: optional(callable<(warning: string) => void>()),
}

const commandKind = record({
  ...commonFields,
  command: nonEmptyText(),
  args: optional(textList()),
  env: optional(textMap()),
  cwd: optional(nonEmptyText()),
})

export function serverAddress(): Kind<string | URL> {
  return predicate(isServerAddress, 'an http(s) URL without user name and password (use headers)')
}

const addressKind = record({
  ...commonFields,
  url: serverAddress(),
  headers: optional(refine(textMap(), isHeaders, 'an object of names and values that HTTP can carry')),
  auth: optional(authKind),
})

function isServerAddress(url: unknown): boolean {
  if ((typeof url !== 'string' && !(url instanceof URL)) || !isHttpUrl(String(url))) return false
  const { username, password } = new URL(url)
  return username === '' && password === ''
}

/** Looked at here, because the platform's own complaint would show a secret. */
function isHeaders(headers: unknown): boolean {
  try {
    return [...new Headers(headers as Record<string, string>)].every(Boolean)
  } catch {
    return false
  }
}

/** The options with their defaults. Throws a ConfigError (`invalid_config`) that lists every problem. */
export function checkMcpOptions(input: unknown): CheckedMcpOptions {
  const has = (key: string): boolean => typeof input === 'object' && input !== null && key in input
  if (has('command') === has('url')) {
    throw new ConfigError(
      'invalid_config',
      'mcpTools takes either { command, args } for a server to start, or { url, headers } for one to reach.',
      'command',
    )
  }
  const isSecret = (path: string): boolean => /^(?:env|headers)\b|^url$|^auth\.clientSecret$/.test(path)
  const kind: Kind = has('command') ? commandKind : addressKind
  checkInput(kind, input, 'options of mcpTools', { isSecret })
  const defaults = {
    needsApproval: false,
    defer: false,
    trustAnnotations: false,
    resources: false,
    timeoutMs: defaultTimeoutMs,
    startTimeoutMs: 30_000,
    maxMessageBytes: 10 * 1024 * 1024,
  }
  const given = Object.entries(input as McpOptions).filter(([, value]) => value !== undefined)
  return { ...defaults, ...Object.fromEntries(given) } as CheckedMcpOptions
}

/** A server whose tools agents use. Put it among an agent's `tools`; its list may change while the agent runs. */
export interface McpServer extends ToolSource {
  /** `options.name`, or the name that the server gives itself. */
  readonly name: string
  /** The tools that it offers now. */
  readonly tools: readonly Tool[]
  /**
   * Ends the connection, and the child process of a server that was started. May be called more than once.
   *
   * @example
   * const server = await mcpTools({ command: 'npx', args: ['-y', 'some-server'] })
   * await server.close()
   */
  close(): Promise<void>
}
