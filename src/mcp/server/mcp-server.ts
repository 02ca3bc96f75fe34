import type { Readable, Writable } from 'node:stream'
import { StatewrightError } from '../../core/base/errors.js'
import { expectArgument, objectRule } from '../../core/base/values.js'
import { loadOnce } from '../../core/base/platform.js'
import { type AccessGrant, authorizeRequest, openGrant } from '../../web/authorize.js'
import { toErrorResponse } from '../../web/error-response.js'
import { expectRequest } from '../../web/request-handler.js'
import { checkServerOptions, type McpServerOptions } from './options.js'
import { createProtocolServer } from './protocol-server.js'
import { reserveStdout, loadServerSdk, loadStdioSdk } from './sdk.js'
import { createTaskHost } from './task-desk.js'

/** Handles requests from MCP clients. */
export interface McpHandler {
  (request: Request): Promise<Response>
  /**
   * Stops starting runs. Active runs continue for `drainMs`, then stop at a point where another process can continue.
   * Resolves when all runs have settled.
   */
  drain: () => Promise<void>
}

/**
 * Serves agents to MCP clients over HTTP. Each agent is a tool, and each call is a task. All state of a task is in its
 * session, so any process with the same agents and store can answer any request. Needs the package
 * `@modelcontextprotocol/server`.
 * - Clients that declare the Tasks extension get a task, which they can poll (`tasks/get`), answer and cancel. The task
 *   id is the session id
 * - Other clients get the answer, a question (`input_required`), or a text that names the open request and where a
 *   person answers it
 * - `_meta['statewright/key']`, or otherwise the `session` of the call, makes calls idempotent, so a repeated call
 *   starts only one run
 *
 * @example
 * const support = createAgent({ model, store: memoryStore() })
 * const handler = mcpServer({ agents: defineAgents({ support }), authorize: (request) => request.headers.get('x-user') })
 * const response = await handler(new Request('http://localhost/mcp', { method: 'POST', body: '{}' }))
 * @throws {ConfigError} `invalid_config`, naming the unknown or invalid key
 */
export function mcpServer<Context = unknown>(options: McpServerOptions<Context>): McpHandler {
  const checked = checkServerOptions('mcpServer', options as McpServerOptions)
  const { authorize, hosts, maxBodyBytes, expose, onError } = checked
  const host = createTaskHost(checked)
  const load = loadOnce(async () => {
    const sdk = await loadServerSdk()
    const serving = sdk.createMcpHandler(
      ({ era, authInfo }) => createProtocolServer(sdk, host, authInfo?.extra?.['grant'] as AccessGrant, era),
      { onerror: onError, ...(maxBodyBytes !== undefined && { maxRequestBodySize: maxBodyBytes }) },
    )
    return { sdk, serving }
  })
  const handler = async (request: Request): Promise<Response> => {
    expectRequest(request)
    try {
      const { sdk, serving } = await load()
      if (hosts) checkHosts(request, [...hosts], sdk)
      else checkOrigin(request)
      const grant = await authorizeRequest(authorize, request)
      // The SDK passes this object to the server that it creates for the request.
      const authInfo = { token: '', clientId: grant.prefix, scopes: [], extra: { grant } }
      return await serving.fetch(request, { authInfo })
    } catch (error) {
      return toErrorResponse(error, { prefix: '', session: null, expose, onError })
    }
  }
  return Object.assign(handler, { drain: () => host.runner.drain() })
}

/** @throws {StatewrightError} `forbidden` */
function checkHosts(request: Request, hosts: string[], sdk: Awaited<ReturnType<typeof loadServerSdk>>): void {
  const host = request.headers.get('host') ?? new URL(request.url).host
  const isAddressed =
    sdk.validateHostHeader(host, hosts).ok &&
    sdk.validateOriginHeader(request.headers.get('origin'), hosts).ok
  if (isAddressed) return
  const message = `This server only answers requests to and from ${hosts.join(', ')}. See the hosts option of mcpServer.`
  throw new StatewrightError('forbidden', message, 'hosts')
}

/** A user's browser may add cookies that `authorize` accepts. @throws {StatewrightError} `forbidden` */
function checkOrigin({ headers, url }: Request): void {
  const origin = headers.get('origin')
  if (origin === null) return
  const { protocol, host } = URL.canParse(origin) ? new URL(origin) : { protocol: '', host: '' }
  const own = [url, `${protocol}//${headers.get('host') ?? ''}`]
  if (host !== '' && own.some((one) => URL.canParse(one) && new URL(one).host === host)) return
  const message = `This server does not accept requests from pages served by '${origin.slice(0, 200)}'. Add that host name, and this server's own, to the hosts option of mcpServer.`
  throw new StatewrightError('forbidden', message, 'hosts')
}

export interface McpStdioServer {
  /** Resolves when the client closed the connection, or `close` was called. */
  closed: Promise<void>
  /** Closes the connection. Runs stop at a point where another process can continue. */
  close: () => Promise<void>
}

/** Options for `serveMcpStdio`. The client that starts the server may access every session. */
export interface McpStdioOptions extends Omit<McpServerOptions, 'authorize' | 'hosts' | 'maxBodyBytes'> {
  /** Defaults to the process's stdin. */
  stdin?: Readable
  /** Defaults to the process's stdout. Other output to stdout then goes to stderr until the server has closed. */
  stdout?: Writable
}

/**
 * Serves agents over stdin and stdout to the MCP client that started this process, like `statewright mcp`.
 *
 * @example
 * const serve = async () => {
 *   const agents = defineAgents({ support: createAgent({ model, store: memoryStore() }) })
 *   const { closed } = await serveMcpStdio({ agents })
 *   await closed
 * }
 * @throws {ConfigError} `invalid_config`, naming the key
 */
export async function serveMcpStdio(options: McpStdioOptions): Promise<McpStdioServer> {
  expectArgument('serveMcpStdio(options)', options, objectRule(['agents'], '{ agents, … }'))
  const { stdin = process.stdin, stdout, ...others } = options
  const { answerCommand = 'statewright send' } = others
  const checked = checkServerOptions('serveMcpStdio', { ...others, answerCommand, authorize: 'none' })
  const host = createTaskHost(checked)
  const [sdk, stdio] = await Promise.all([loadServerSdk(), loadStdioSdk()])
  const reserved = stdout === undefined ? reserveStdout() : null
  const transport = new stdio.StdioServerTransport(stdin, reserved?.stdout ?? stdout)
  const connection = stdio.serveStdio(({ era }) => createProtocolServer(sdk, host, openGrant, era), {
    transport,
    onerror: checked.onError,
  })
  let end = (): void => undefined
  const ended = new Promise<void>((resolve) => (end = resolve))
  for (const event of ['end', 'close']) stdin.once(event, end)
  const closed = ended.then(() => host.runner.drain()).finally(() => reserved?.release())
  return {
    closed,
    close: async () => {
      end()
      await connection.close()
      await closed
    },
  }
}
