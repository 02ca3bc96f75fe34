import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { JsonObject } from '../../machines/agent/json.js'
import { type McpOptions, type McpServer, mcpTools } from '../../src/mcp/index.js'
import { ResultWithData } from '../../src/core/tools/tool-content.js'
import type { Tool, ToolExecution } from '../../src/core/tools/tool.js'

const opened: McpServer[] = []

afterEach(async () => {
  await Promise.all(opened.splice(0).map((server) => server.close()))
})

/** A server that ends with the test. */
export async function open(options: McpOptions): Promise<McpServer> {
  const server = await mcpTools(options)
  opened.push(server)
  return server
}

type More = Omit<McpOptions, 'command' | 'url' | 'headers'> & { env?: Record<string, string>; cwd?: string }

/** One of the misbehaving servers of this folder, over stdio. Collects warnings. */
export async function odd(file: string, more: More = {}): Promise<McpServer & { warnings: string[] }> {
  const warnings: string[] = []
  const server = await open({ ...oddCommand(file), onWarning: (warning) => warnings.push(warning), ...more })
  return Object.assign(server, { warnings })
}

export function oddCommand(file: string): { command: string; args: string[] } {
  const path = fileURLToPath(new URL(`servers/${file}.mjs`, import.meta.url))
  return { command: process.execPath, args: [path] }
}

/** One of the published reference servers. */
export function reference(
  name: 'everything' | 'filesystem',
  ...args: string[]
): { command: string; args: string[] } {
  const manifest = createRequire(import.meta.url).resolve(`@modelcontextprotocol/server-${name}/package.json`)
  return { command: process.execPath, args: [join(dirname(manifest), 'dist/index.js'), ...args] }
}

export function toolNamed(server: McpServer, name: string): Tool {
  const found = server.tools.find((tool) => tool.name === name)
  if (found === undefined)
    throw new Error(`There is no ${name} among ${server.tools.map((tool) => tool.name).join()}.`)
  return found
}

/** Calls a tool as a run would. */
export async function use(
  server: McpServer,
  name: string,
  args: JsonObject = {},
  {
    signal = new AbortController().signal,
    progress = ignore,
    ...more
  }: Partial<Pick<ToolExecution, 'signal' | 'progress' | 'handle' | 'keepHandle'>> = {},
): Promise<unknown> {
  const value: unknown = await toolNamed(server, name).execute?.(args, {
    signal,
    progress,
    callId: 'call',
    runId: 'run',
    sessionId: 'session',
    idempotencyKey: 'key',
    context: undefined,
    ...more,
  })
  return value instanceof ResultWithData ? value.value : value
}

function ignore(): void {}

/** The error of work that has to fail. */
export async function failureOf(
  work: Promise<unknown>,
): Promise<{ code?: unknown; kind?: unknown; message: string }> {
  try {
    await work
  } catch (error) {
    return error as Error
  }
  throw new Error('It succeeded.')
}
