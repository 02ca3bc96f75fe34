import type { JsonObject, Json } from '../../../machines/agent/json.js'
import { StatewrightError, describeError } from '../../core/base/errors.js'
import type { Tool } from '../../core/tools/tool.js'
import { ToolError } from '../../core/tools/tool-error.js'
import { connectServer, type McpConnection, type McpCall } from './mcp-connection.js'
import { limitTime } from '../../core/base/abort.js'
import { answerServer } from './elicitation/asking-call.js'
import { OpenCalls } from './elicitation/open-calls.js'
import { SessionExpiredError } from './server-wire.js'
import {
  type CheckedMcpOptions,
  checkMcpOptions,
  type McpCommonOptions,
  type McpOptions,
  type McpServer,
} from './mcp-options.js'
import { followTask, type TaskFollowing } from './follow-task.js'
import { findTask, readHandle, toHandle } from './task-wire.js'
import { createResourceTool, resourceToolName, registerAsker } from './resources.js'
import { createSignIn, type SignIn } from './sign-in/sign-in.js'
import { readText } from '../../core/base/json.js'
import { quoteText } from './plain-text.js'
import { findToolFault, type McpToolParts, toTool } from './to-tool.js'
import { sha256 } from '../../../guards/lib/sha256.js'

/**
 * Starts an MCP server, or connects to one over HTTP, and offers its tools to agents. Close the server after its last
 * use, because a child process keeps this process alive. If the connection is lost, the next call restarts or
 * reconnects to the server.
 *
 * ```ts
 * const files = await mcpTools({ command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '/srv'] })
 * const agent = createAgent({ model, tools: [files] })
 * const result = await agent.run('What is in notes.txt?').result
 * await files.close()
 * ```
 *
 * Needs the optional package `@modelcontextprotocol/client`.
 *
 * @throws {ConfigError} `invalid_config`
 * @throws {StatewrightError} `mcp_unavailable` if the server cannot be started or reached, `mcp_timeout` if it does not
 * answer within `startTimeoutMs`, `mcp_sign_in` if the user does not sign in, `missing_package`
 */
export async function mcpTools(options: McpOptions): Promise<McpServer> {
  const server = new ReconnectingServer(checkMcpOptions(options))
  registerAsker(server, (...request) => server.ask(...request))
  await server.open()
  return server
}

/** Maximum consecutive reads of a list that keeps changing. */
const maxRounds = 2

/** Maximum warnings about one list that each run repeats. */
const maxWarnings = 20

class ReconnectingServer implements McpServer {
  readonly #options: CheckedMcpOptions
  readonly #signIn: SignIn | undefined
  #connection: McpConnection | undefined
  #opening: Promise<McpConnection> | undefined
  #isClosed = false
  readonly #calls = new OpenCalls()
  #closing: Promise<void> | undefined
  #name = ''
  #names = new ToolNames('')
  #tools: readonly Tool[] = []
  #leftOut: readonly string[] = []
  #listed = ''
  #refreshing: Promise<void> | undefined
  #hasChanged = false
  /** Work that outlives its call, such as cancelling tasks. */
  readonly #ending = new Set<Promise<unknown>>()

  constructor(options: CheckedMcpOptions) {
    this.#options = options
    if ('url' in options && options.auth) this.#signIn = createSignIn(options.url, options.auth)
  }

  get name(): string {
    return this.#name
  }

  get tools(): readonly Tool[] {
    return this.#tools
  }

  get leftOut(): readonly string[] {
    return this.#leftOut
  }

  /** @throws an Error (possibly a ToolError) for the model */
  async ask(method: string, params: JsonObject, signal?: AbortSignal): Promise<JsonObject> {
    return this.#tryTwice(async () => (await this.#getConnection()).ask(method, params, { signal }))
  }

  async open(): Promise<McpConnection> {
    const { name, startTimeoutMs } = this.#options
    const events = {
      onToolsChanged: () => void this.#refresh(),
      onElicitation: (params: unknown) => answerServer(this.#calls, params),
    }
    const connection = await connectServer(this.#options, events, this.#signIn)
    if (this.#name === '') {
      this.#name = name ?? (connection.serverName || 'mcp')
      this.#names = new ToolNames(this.#name)
    }
    try {
      await limitTime({ ms: startTimeoutMs }, this.#readList(connection))
    } catch (error) {
      await connection.close()
      const message = `The MCP server '${this.#name}' did not list its tools. ${describeError(error)}`
      throw new StatewrightError('mcp_unavailable', message, this.#name, { cause: error })
    }
    this.#connection = connection
    if (this.#hasChanged) void this.#refresh()
    return connection
  }

  close(): Promise<void> {
    this.#isClosed = true
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    // A server that is being restarted must be closed too.
    await this.#opening?.catch(() => undefined)
    await Promise.all(this.#ending)
    await this.#connection?.close()
  }

  async #call(call: McpCall): Promise<JsonObject> {
    const following: TaskFollowing = {
      server: this.#name,
      call,
      timeoutMs: this.#options.timeoutMs,
      connect: () => this.#getConnection(),
      keep: (work) => this.#keep(work),
    }
    const taskId = readHandle(call.handle)
    if (taskId !== undefined) {
      call.stopTimer()
      return followTask(taskId, following)
    }
    const result = await this.#tryTwice(() => this.#callOnce(call))
    const task = findTask(result)
    if (task === undefined) return result
    call.stopTimer()
    await call.keepHandle?.(toHandle(task))
    return followTask(task.id, following, task)
  }

  /** Repeats the work in a new session, because a server that has lost its session has executed nothing. */
  async #tryTwice(work: () => Promise<JsonObject>): Promise<JsonObject> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof SessionExpiredError)) throw error
      return await work()
    }
  }

  #keep(work: Promise<unknown>): void {
    const settled = work.catch(() => undefined).finally(() => this.#ending.delete(settled))
    this.#ending.add(settled)
  }

  async #callOnce(call: McpCall): Promise<JsonObject> {
    const connection = await this.#getConnection()
    const result = await connection.callTool(call)
    // A call may have changed the list, and the next request must contain the new list.
    await this.#refreshing
    return result
  }

  async #getConnection(): Promise<McpConnection> {
    this.#refuseWhenClosed()
    if (this.#connection?.isLost === false) return this.#connection
    this.#opening ??= this.open().finally(() => (this.#opening = undefined))
    const connection = await this.#opening.catch((error: unknown) => {
      const message = `The MCP server '${this.#name}' exited and could not be restarted. ${describeError(error)}`
      throw new ToolError('transient', message, { cause: error })
    })
    this.#refuseWhenClosed()
    return connection
  }

  #refuseWhenClosed(): void {
    if (this.#isClosed) throw new ToolError('failed', `The MCP server '${this.#name}' was closed.`)
  }

  /** Refreshes the list. Never rejects. If the new list cannot be read, the old one is kept. */
  async #refresh(): Promise<void> {
    this.#hasChanged = true
    const connection = this.#connection
    if (connection === undefined || connection.isLost) return
    await (this.#refreshing ??= this.#readChanges(connection).finally(() => (this.#refreshing = undefined)))
  }

  async #readChanges(connection: McpConnection): Promise<void> {
    try {
      for (let round = 0; round < maxRounds && this.#hasChanged; round += 1) {
        this.#hasChanged = false
        // oxlint-disable-next-line no-await-in-loop -- a list that changed while it was read is read again
        await limitTime({ ms: this.#options.startTimeoutMs }, this.#readList(connection))
      }
    } catch (error) {
      this.#warn(`Its new list of tools could not be read. ${describeError(error)}`)
    }
  }

  async #readList(connection: McpConnection): Promise<void> {
    const options = this.#options
    const warnings: string[] = []
    const warn = (warning: string): void => void warnings.push(this.#warn(warning))
    const listed = connection.hasTools ? await listTools(connection, options.maxMessageBytes, warn) : []
    const json = JSON.stringify(listed)
    // The array must be the same until its tools change, as ToolSource requires.
    if (json === this.#listed) return
    this.#listed = json
    const call = (request: McpCall): Promise<JsonObject> => this.#call(request)
    const { hasHeaders, tasks } = connection
    const maker = { server: this.#name, options, call, calls: this.#calls, hasHeaders, tasks }
    const tools = createOfferedTools(listed, this.#names, maker, warn)
    const { resources } = options
    const name = resources && connection.hasResources ? this.#names.findName(resourceToolName) : undefined
    if (name !== undefined) tools.push(createResourceTool(name, maker, (...request) => this.ask(...request)))
    else if (resources) warn('It has no resources.')
    this.#tools = Object.freeze(tools)
    this.#leftOut = warnings.slice(0, maxWarnings)
    const more = warnings.length - maxWarnings
    if (more > 0) {
      const [noun, them] = more === 1 ? ['warning', 'it'] : ['warnings', 'them']
      const rest = `${more} more ${noun}. Set onWarning to read ${them}.`
      this.#leftOut = [...this.#leftOut, `MCP server '${this.#name}': ${rest}`]
    }
  }

  #warn(warning: string): string {
    const sentence = `MCP server '${this.#name}': ${warning}`
    try {
      this.#options.onWarning?.(sentence)
    } catch {
      // Errors from the listener are ignored.
    }
    return sentence
  }
}

/** The maximum number of tools, because no model can use more. */
const maxTools = 1_000

/** The maximum number of pages, which limits lists with empty pages. */
const maxPages = 100

/** Reads all pages of a server's tool list. A list with more than `maxChars` characters of JSON is cut with a warning. */
async function listTools(
  connection: McpConnection,
  maxChars: number,
  warn: (warning: string) => void,
): Promise<Json[]> {
  const tools: Json[] = []
  let size = 0
  let cursor: string | undefined
  for (let page = 0; page < maxPages; page += 1) {
    // oxlint-disable-next-line no-await-in-loop -- each page has the cursor of the next
    const result = await connection.listTools(cursor)
    const listed = Array.isArray(result.tools) ? result.tools.filter(isSerializable) : []
    size += JSON.stringify(listed).length
    if (size > maxChars) break
    tools.push(...listed)
    if (tools.length > maxTools) break
    if (typeof result.nextCursor !== 'string' || result.nextCursor === '') return tools
    cursor = result.nextCursor
  }
  warn(`Its list of tools is too long; the first ${Math.min(tools.length, maxTools)} are offered.`)
  return tools.slice(0, maxTools)
}

/** Whether a tool can be converted to JSON. `JSON.stringify` fails for very deep nesting. */
function isSerializable(tool: Json): boolean {
  try {
    JSON.stringify(tool)
    return true
  } catch {
    return false
  }
}

/** Creates the usable tools, and warns about each unusable one. */
function createOfferedTools(
  listed: readonly Json[],
  names: ToolNames,
  maker: McpToolParts & { options: Pick<McpCommonOptions, 'only' | 'except'> },
  warn: (warning: string) => void,
): Tool[] {
  const { only, except = [] } = maker.options
  const seen = new Set<string>()
  const tools: Tool[] = []
  for (const entry of listed) {
    const toolName = readText(entry, 'name')
    if (toolName === '') warn('A tool without a name is omitted.')
    else if (seen.has(toolName)) warn(`A second tool named ${quoteText(toolName)} is omitted.`)
    else {
      seen.add(toolName)
      if (except.includes(toolName) || only?.includes(toolName) === false) continue
      const fault = findToolFault(entry, maker)
      const name = fault === undefined ? names.findName(toolName) : undefined
      if (name !== undefined) tools.push(toTool(entry, toolName, name, maker))
      else {
        const why = fault ?? 'exceeds the maximum number of tools'
        warn(`Its tool ${quoteText(toolName)} is omitted: it ${why}.`)
      }
    }
  }
  for (const missing of [...(only ?? []), ...except].filter((name) => !seen.has(name)))
    warn(`It has no tool ${quoteText(missing)}.`)
  return tools
}

/** The maximum length that providers accept. */
const maxLength = 64

/** Maximum characters of the server's name in the names of its tools. */
const maxPrefix = 32

/** The maximum number of names, which limits memory if a server keeps changing its list. */
const maxNames = 10_000

/** Names of letters, digits, `_` and `-`. A name is never reassigned to a different tool. */
export class ToolNames {
  readonly #prefix: string
  readonly #names = new Map<string, string>()
  readonly #usedNames = new Set<string>()

  constructor(server: string) {
    this.#prefix = fitName(server, maxPrefix).replaceAll(/^_+|_+$/g, '') || 'mcp'
  }

  findName(tool: string): string | undefined {
    const known = this.#names.get(tool)
    if (known !== undefined || this.#names.size === maxNames) return known
    const name = this.#createFreeName(`${this.#prefix}_${tool}`)
    this.#names.set(tool, name)
    this.#usedNames.add(name)
    return name
  }

  #createFreeName(wanted: string): string {
    for (let number = 1; ; number += 1) {
      const ending = number === 1 ? '' : `_${number}`
      const name = fitName(wanted, maxLength - ending.length) + ending
      if (!this.#usedNames.has(name)) return name
    }
  }
}

/** Shortens a long name and appends a hash. */
function fitName(text: string, limit: number): string {
  const name = text.replaceAll(/[^a-zA-Z0-9_-]+/g, '_')
  return name.length <= limit ? name : `${name.slice(0, limit - 9)}_${sha256(text).slice(0, 8)}`
}
