import type { JsonObject } from '../../../machines/agent/json.js'
import { StatewrightError, describeError } from '../../core/base/errors.js'
import type { Tool } from '../../core/tools/tool.js'
import { ToolError } from '../../core/tools/tool-error.js'
import { connectServer, type McpConnection, type McpCall } from './mcp-connection.js'
import { limitTime } from '../../core/base/abort.js'
import { answerServer } from './elicitation/asking-call.js'
import { OpenCalls } from './elicitation/open-calls.js'
import { SessionExpiredError } from './server-wire.js'
import { listTools, createOfferedTools, ToolNames } from './offered-tools.js'
import { type CheckedMcpOptions, checkMcpOptions, type McpOptions, type McpServer } from './mcp-options.js'
import { followTask, type TaskFollowing } from './follow-task.js'
import { findTask, readHandle, toHandle } from './task-wire.js'
import { createResourceTool, resourceToolName } from './resource-tool.js'
import { registerAsker } from './resources.js'
import { createSignIn, type SignIn } from './sign-in/sign-in.js'

/**
 * Starts an MCP server, or connects to one over HTTP, and offers its tools to agents. Close it after its last use,
 * because a child process keeps this process alive. After a lost connection, the next call restarts or reconnects to
 * the server.
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
 * @throws {StatewrightError} `mcp_unavailable` when it cannot be started or reached, `mcp_timeout` when it does not
 * answer within `startTimeoutMs`, `mcp_sign_in` when the user does not sign in, `missing_package`
 */
export async function mcpTools(options: McpOptions): Promise<McpServer> {
  const server = new ReconnectingServer(checkMcpOptions(options))
  registerAsker(server, (...asked) => server.ask(...asked))
  await server.open()
  return server
}

/** Consecutive reads of a list that keeps changing. */
const maxRounds = 2

/** Warnings about one list that each run repeats. */
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

  /**
   * @throws an Error, perhaps a ToolError, for the model
   */
  async ask(method: string, params: JsonObject, signal?: AbortSignal): Promise<JsonObject> {
    return this.#tryTwice(async () => (await this.#getConnection()).ask(method, params, { signal }))
  }

  async open(): Promise<McpConnection> {
    const { name, startTimeoutMs } = this.#options
    const onToolsChanged = (): void => {
      void this.#refresh()
    }
    const onElicitation = (params: unknown) => answerServer(this.#calls, params)
    const events = { onToolsChanged, onElicitation }
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
    // A server that is being restarted must also be closed.
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
    // A call may have changed the list, and the next request must show the new one.
    await this.#refreshing
    return result
  }

  /** Reconnects when the connection is lost. */
  async #getConnection(): Promise<McpConnection> {
    this.#refuseWhenClosed()
    if (this.#connection?.isLost === false) return this.#connection
    const opening = (this.#opening ??= this.open().finally(() => {
      this.#opening = undefined
    }))
    try {
      await opening
    } catch (error) {
      const message = `The MCP server '${this.#name}' is gone, and could not be started again. ${describeError(error)}`
      throw new ToolError('transient', message, { cause: error })
    }
    this.#refuseWhenClosed()
    return opening
  }

  #refuseWhenClosed(): void {
    if (this.#isClosed) throw new ToolError('failed', `The MCP server '${this.#name}' was closed.`)
  }

  /** Never rejects. If the new list cannot be read, the old one stays. */
  #refresh(): Promise<void> {
    this.#hasChanged = true
    const connection = this.#connection
    if (connection === undefined || connection.isLost) return Promise.resolve()
    this.#refreshing ??= this.#readChanges(connection).finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  async #readChanges(connection: McpConnection): Promise<void> {
    try {
      for (let round = 0; round < maxRounds && this.#hasChanged; round += 1) {
        this.#hasChanged = false
        // oxlint-disable-next-line no-await-in-loop -- a change while the list was read needs another look
        await limitTime({ ms: this.#options.startTimeoutMs }, this.#readList(connection))
      }
    } catch (error) {
      this.#warn(`Its new list of tools could not be read. ${describeError(error)}`)
    }
  }

  async #readList(connection: McpConnection): Promise<void> {
    const { maxMessageBytes } = this.#options
    const warnings: string[] = []
    const warn = (warning: string): void => {
      warnings.push(this.#warn(warning))
    }
    const listed = connection.hasTools ? await listTools(connection, maxMessageBytes, warn) : []
    const json = JSON.stringify(listed)
    // The array stays the same until its tools change, as ToolSource requires.
    if (json === this.#listed) return
    this.#listed = json
    const call = (asked: McpCall): Promise<JsonObject> => this.#call(asked)
    const { hasHeaders, tasks } = connection
    const options = this.#options
    const maker = { server: this.#name, options, call, calls: this.#calls, hasHeaders, tasks }
    const tools = createOfferedTools(listed, this.#names, maker, warn)
    const { resources } = options
    const name = resources && connection.hasResources ? this.#names.findName(resourceToolName) : undefined
    if (name !== undefined) tools.push(createResourceTool(name, maker, (...asked) => this.ask(...asked)))
    else if (resources) warn('It has no resources.')
    this.#tools = Object.freeze(tools)
    const more = warnings.length - maxWarnings
    this.#leftOut = [
      ...warnings.slice(0, maxWarnings),
      ...(more > 0 ? [`MCP server '${this.#name}': ${more} more warnings. Set onWarning to read them.`] : []),
    ]
  }

  #warn(warning: string): string {
    const sentence = `MCP server '${this.#name}': ${warning}`
    try {
      this.#options.onWarning?.(sentence)
    } catch {
      // An error of the listener is ignored.
    }
    return sentence
  }
}
