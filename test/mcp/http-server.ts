import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Request {
  id?: number
  method: string
  params?: { name?: string; protocolVersion?: string }
}

export interface HttpServer {
  url: string
  /** The received requests, oldest first. */
  requests: { method: string; rpc: string | undefined; headers: IncomingMessage['headers'] }[]
  close: () => void
}

type Answer = (request: Request, response: ServerResponse, headers: IncomingMessage['headers']) => void

const closing: (() => void)[] = []

afterEach(() => {
  for (const close of closing.splice(0)) close()
})

/** Listens on a free port until the test ends. */
export async function startServer(listener: RequestListener): Promise<Pick<HttpServer, 'url' | 'close'>> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const close = (): void => {
    server.closeAllConnections()
    server.close()
  }
  closing.push(close)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, close }
}

/**
 * A streamable HTTP server without a library. `call` answers tools/call. `before` may answer any request
 * first.
 */
export async function httpServer(
  call: Answer,
  before?: (...args: Parameters<Answer>) => boolean,
): Promise<HttpServer> {
  const requests: HttpServer['requests'] = []
  const served = await startServer((message, response) => {
    let body = ''
    message.on('data', (chunk) => (body += String(chunk)))
    message.on('end', () => {
      const request = (body === '' ? { method: '' } : JSON.parse(body)) as Request
      requests.push({ method: message.method ?? '', rpc: request.method, headers: message.headers })
      if (message.method !== 'POST') response.writeHead(message.method === 'DELETE' ? 200 : 405).end()
      else if (before?.(request, response, message.headers) === true) return
      else if (request.id === undefined) response.writeHead(202).end()
      else if (request.method === 'tools/call') call(request, response, message.headers)
      else json(response, request, request.method === 'initialize' ? greeting(request) : { tools })
    })
  })
  return { ...served, requests }
}

export function json(response: ServerResponse, { id }: Request, result: object, headers = {}): void {
  response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'one', ...headers })
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
}

/**
 * A 2026-07-28 server that sends an elicitation first. The text appears in a message, in every form field,
 * and in a URL.
 */
export function askingServer(words: string, content: object[]): Promise<HttpServer> {
  const field = { title: words, description: words, enum: ['a', words], default: words }
  const form = {
    message: words,
    requestedSchema: { type: 'object', properties: { f: { type: 'string', ...field } } },
  }
  const page = { mode: 'url', message: words, url: `https://a.example/?q=${words}`, elicitationId: 'e1' }
  const ask = (params: object): object => ({ method: 'elicitation/create', params })
  const inputRequests = { form: ask(form), page: ask(page) }
  return modernServer(({ params }) => {
    const isAnswered = params && 'inputResponses' in params
    return isAnswered ? { resultType: 'complete', content } : { resultType: 'input_required', inputRequests }
  })
}

/** A 2026-07-28 server, with the result of each call. */
export function modernServer(
  toResult: (request: Request) => object,
  listed: readonly object[] = tools,
): Promise<HttpServer> {
  const more = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
  return httpServer(
    (request, response) => json(response, request, toResult(request)),
    (request, response) => {
      if (request.method === 'tools/list') json(response, request, { ...more, tools: listed })
      else if (request.method === 'server/discover')
        json(response, request, {
          ...more,
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {} },
          _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'web', version: '1' } },
        })
      else return false
      return true
    },
  )
}

export function sse(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { 'content-type': 'text/event-stream' })
}

const tools = [{ name: 'go', inputSchema: { type: 'object' } }]

function greeting({ params }: Request): object {
  return {
    protocolVersion: params?.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'web', version: '1' },
  }
}
