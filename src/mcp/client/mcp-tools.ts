import { valueOr } from '../../core/base/maybe-promise.js'
import type { JsonObject, Json } from '../../../machines/agent/json.js'
import { StatewrightError, describeError } from '../../core/base/errors.js'
import type { Tool } from '../../core/tools/tool.js'
import { ToolError } from '../../core/tools/tool-error.js'
import { connectServer, type McpConnection, type McpCall } from './mcp-connection.js'
import { limitTime } from '../../core/base/abort.js'
import { answerServer, createOpenCalls } from './asking-call.js'
import { doubtHint, SessionExpiredError } from './server-wire.js'
import { type CheckedMcpOptions, checkMcpOptions, type McpOptions, type McpServer } from './mcp-options.js'
import { followTask, type TaskFollowing } from './follow-task.js'
import { findTask } from './task-wire.js'
import { createResourceTool, resourceToolName, registerAsker } from './resources.js'
import { createSignIn } from './sign-in/sign-in.js'
import { readText } from '../../core/base/json.js'
import { quoteText } from './plain-text.js'
import { countJson } from './read-result.js'
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
  const { server, open, ask } = createReconnectingServer(checkMcpOptions(options))
  registerAsker(server, ask)
  await open()
  return server
}

/** Maximum consecutive reads of a list that keeps changing. */
const maxRounds = 2

/** Maximum characters of a task's id, because it is written to the log and sent in a header. */
const maxTaskId = 1_000

/** Maximum warnings about one list that each run repeats. */
const maxWarnings = 20

function createReconnectingServer(options: CheckedMcpOptions) {
  const { maxMessageBytes, startTimeoutMs, timeoutMs, resources, onWarning } = options
  const signIn = 'url' in options && options.auth ? createSignIn(options.url, options.auth) : undefined
  const calls = createOpenCalls()
  /** Work that outlives its call, such as cancelling tasks. */
  const ending = new Set<Promise<unknown>>()
  let connection: McpConnection | undefined
  let opening: Promise<McpConnection> | undefined
  let closing: Promise<void> | undefined
  let refreshing: Promise<void> | undefined
  let hasChanged = false
  let name = ''
  let findName = createToolNames('')
  let tools: readonly Tool[] = []
  let leftOut: readonly string[] = []
  let lastListed = ''

  /** @throws an Error (possibly a ToolError) for the model */
  const ask = (method: string, params: JsonObject, signal?: AbortSignal): Promise<JsonObject> =>
    tryTwice(async () => (await getConnection()).ask(method, params, { signal }))

  async function open(): Promise<McpConnection> {
    const events = {
      onToolsChanged: () => void refresh(),
      onElicitation: (params: unknown) => answerServer(calls, params),
    }
    const opened = await connectServer(options, events, signIn)
    if (name === '') {
      name = options.name ?? (opened.serverName || 'mcp')
      findName = createToolNames(name)
    }
    try {
      await limitTime({ ms: startTimeoutMs }, readList(opened))
    } catch (error) {
      await opened.close()
      const message = `The MCP server '${name}' did not list its tools. ${describeError(error)}`
      throw new StatewrightError('mcp_unavailable', message, name, { cause: error })
    }
    connection = opened
    if (hasChanged) void refresh()
    return opened
  }

  async function close(): Promise<void> {
    // A server that is being restarted must be closed too.
    await opening?.catch(() => undefined)
    await Promise.all(ending)
    await connection?.close()
  }

  async function callTool(call: McpCall): Promise<JsonObject> {
    const following: TaskFollowing = { server: name, call, timeoutMs, connect: getConnection, keep }
    const taskId = readText(call.handle, 'task')
    if (taskId !== '') {
      call.stopTimer()
      return followTask(taskId, following)
    }
    const result = await tryTwice(async () => {
      const called = await (await getConnection()).callTool(call)
      // A call may have changed the list, and the next request must contain the new list.
      await refreshing
      return called
    })
    const task = findTask(result)
    if (task === undefined) return result
    if (task.id.length > maxTaskId) {
      const message = `The MCP server '${name}' created a task with an id of more than ${maxTaskId} characters.`
      throw new ToolError('failed', `${message} ${doubtHint}`)
    }
    call.stopTimer()
    await call.keepHandle?.({ task: task.id })
    return followTask(task.id, following, task)
  }

  /** Repeats the work in a new session, because a server that has lost its session has executed nothing. */
  async function tryTwice(work: () => Promise<JsonObject>): Promise<JsonObject> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof SessionExpiredError)) throw error
      return await work()
    }
  }

  function keep(work: Promise<unknown>): void {
    const settled = work.catch(() => undefined).finally(() => ending.delete(settled))
    ending.add(settled)
  }

  async function getConnection(): Promise<McpConnection> {
    refuseWhenClosed()
    if (connection?.isLost === false) return connection
    opening ??= open().finally(() => (opening = undefined))
    const opened = await opening.catch((error: unknown) => {
      const message = `The MCP server '${name}' exited and could not be restarted. ${describeError(error)}`
      throw new ToolError('transient', message, { cause: error })
    })
    refuseWhenClosed()
    return opened
  }

  function refuseWhenClosed(): void {
    if (closing !== undefined) throw new ToolError('failed', `The MCP server '${name}' was closed.`)
  }

  /** Refreshes the list. Never rejects. If the new list cannot be read, the old one is kept. */
  async function refresh(): Promise<void> {
    hasChanged = true
    const current = connection
    if (current === undefined || current.isLost) return
    await (refreshing ??= readChanges(current).finally(() => (refreshing = undefined)))
  }

  async function readChanges(current: McpConnection): Promise<void> {
    try {
      for (let round = 0; round < maxRounds && hasChanged; round += 1) {
        hasChanged = false
        // A list that changed while it was read is read again.
        await limitTime({ ms: startTimeoutMs }, readList(current))
      }
    } catch (error) {
      warn(`Its new list of tools could not be read. ${describeError(error)}`)
    }
  }

  async function readList(current: McpConnection): Promise<void> {
    const warnings: string[] = []
    const note = (warning: string): void => void warnings.push(warn(warning))
    const listed = current.hasTools ? await listTools(current, maxMessageBytes, note) : []
    const json = JSON.stringify(listed)
    // The array must be the same until its tools change, as ToolSource requires.
    if (json === lastListed) return
    lastListed = json
    const { hasHeaders, tasks } = current
    const maker = { server: name, options, call: callTool, calls, hasHeaders, tasks }
    const offered = createOfferedTools(listed, findName, maker, note)
    const resourceName = resources && current.hasResources ? findName(resourceToolName) : undefined
    if (resourceName !== undefined) offered.push(createResourceTool(resourceName, maker, ask))
    else if (resources) note('It has no resources.')
    tools = Object.freeze(offered)
    leftOut = warnings.slice(0, maxWarnings)
    const more = warnings.length - maxWarnings
    if (more > 0) {
      const [noun, them] = more === 1 ? ['warning', 'it'] : ['warnings', 'them']
      const rest = `${more} more ${noun}. Set onWarning to read ${them}.`
      leftOut = [...leftOut, `MCP server '${name}': ${rest}`]
    }
  }

  function warn(warning: string): string {
    const sentence = `MCP server '${name}': ${warning}`
    // Errors from the listener are ignored.
    valueOr(() => onWarning?.(sentence), undefined)
    return sentence
  }

  const server: McpServer = {
    get name() {
      return name
    },
    get tools() {
      return tools
    },
    get leftOut() {
      return leftOut
    },
    close: () => (closing ??= close()),
  }
  return { server, open, ask }
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
    // Each page has the cursor of the next.
    const result = await connection.listTools(cursor)
    const listed = Array.isArray(result.tools)
      ? result.tools.filter((tool) => countJson(tool) < Infinity)
      : []
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

function createOfferedTools(
  listed: readonly Json[],
  findName: ReturnType<typeof createToolNames>,
  maker: McpToolParts,
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
      const name = fault === undefined ? findName(toolName) : undefined
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

/** Finds the name of a tool: letters, digits, `_` and `-`. A name is never reassigned to a different tool. */
export function createToolNames(server: string): (tool: string) => string | undefined {
  const prefix = fitName(server, maxPrefix).replaceAll(/^_+|_+$/g, '') || 'mcp'
  const names = new Map<string, string>()
  const usedNames = new Set<string>()
  return (tool) => {
    const known = names.get(tool)
    if (known !== undefined || names.size === maxNames) return known
    for (let number = 1; ; number += 1) {
      const ending = number === 1 ? '' : `_${number}`
      const name = fitName(`${prefix}_${tool}`, maxLength - ending.length) + ending
      if (usedNames.has(name)) continue
      names.set(tool, name)
      usedNames.add(name)
      return name
    }
  }
}

function fitName(text: string, limit: number): string {
  const name = text.replaceAll(/[^a-zA-Z0-9_-]+/g, '_')
  return name.length <= limit ? name : `${name.slice(0, limit - 9)}_${sha256(text).slice(0, 8)}`
}
