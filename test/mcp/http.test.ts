import type { ServerResponse } from 'node:http'
import { classifyToolError } from '../../src/core/tools/tool-error.js'
import { httpServer, json, sse } from './http-server.js'
import { failureOf, open, use } from './support.js'
import { longTest } from '../support/extent.js'

const ok = { content: [{ type: 'text', text: 'ok' }] }

describe('a server over HTTP', () => {
  it('receives the headers with every request, and the end of its session', async () => {
    const { url, requests } = await httpServer((request, response) => json(response, request, ok))
    const server = await open({ url: new URL(url), headers: { Authorization: 'Bearer secret' } })
    expect(await use(server, 'web_go')).toBe('ok')
    await server.close()
    expect(requests.map(({ headers }) => headers.authorization)).toEqual(requests.map(() => 'Bearer secret'))
    expect(requests.at(-1)).toMatchObject({ method: 'DELETE', headers: { 'mcp-session-id': 'one' } })
  })

  it('fails a call immediately if it ends the stream before the answer', async () => {
    const { url } = await httpServer((_, response) => {
      sse(response).end(': nothing\n\n')
    })
    const failure = await failureOf(use(await open({ url }), 'web_go'))
    expect(failure.message).toContain('The connection was closed before the answer was complete')
  })

  it('fails a call as transient if it breaks the connection', async () => {
    const { url } = await httpServer((_, response) => {
      sse(response).write('data: {"jsonrpc"', () => response.destroy())
    })
    const failure = await failureOf(use(await open({ url }), 'web_go'))
    expect(classifyToolError(failure).kind).toBe('transient')
    expect(failure.message).toContain('The connection was closed before the answer was complete')
  })

  longTest('that disconnects while its answer could be resumed is abandoned after two attempts', async () => {
    const gone = await httpServer((_, response) => {
      sse(response).write('id: 1\ndata:\n\n', () => gone.close())
    })
    const failure = await failureOf(use(await open({ url: gone.url }), 'web_go'))
    expect(failure).toMatchObject({ name: 'ToolError', kind: 'transient' })
    expect(failure.message).toContain("The MCP server 'web' can no longer be reached during the call.")
  })

  it.each([
    ['an event', (piece: string) => piece],
    ['an event of many lines', (piece: string) => `data: ${piece}\n`],
  ])('is disconnected if it floods with %s', async (_, shape) => {
    const { url } = await httpServer((_, response) => {
      sse(response)
      const pour = (): void => {
        while (!response.destroyed && response.write(shape('x'.repeat(10_000))));
        response.once('drain', pour)
      }
      pour()
    })
    const failure = await failureOf(use(await open({ url, maxMessageBytes: 100_000 }), 'web_go'))
    expect(failure).toMatchObject({ name: 'ToolError', kind: 'failed' })
    expect(failure.message).toContain('sent a message larger than 100000 bytes and was cut off')
  })

  it('may send more than the limit in many events', async () => {
    const { url } = await httpServer(({ id }, response) => {
      sse(response)
      for (let i = 0; i < 100; i += 1) response.write(`: ${'x'.repeat(2_000)}\r\n\r\n`)
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: ok })}\n\n`)
    })
    expect(await use(await open({ url, maxMessageBytes: 10_000 }), 'web_go')).toBe('ok')
  })

  it('is disconnected if one answer is too large, and reconnected by the next call', async () => {
    const answers = ['x'.repeat(200_000), 'short']
    const { url } = await httpServer((request, response) => {
      json(response, request, { content: [{ type: 'text', text: answers.shift() }] })
    })
    const server = await open({ url, maxMessageBytes: 100_000 })
    expect((await failureOf(use(server, 'web_go'))).message).toContain('larger than 100000 bytes')
    expect(await use(server, 'web_go')).toBe('short')
  })

  it.each([404, 400])(
    'that has lost the session (%i) gets a new session, and the call is repeated',
    async (status) => {
      let sessions = 0
      let executed = 0
      const { url } = await httpServer(
        (request, response) => {
          executed += 1
          json(response, request, ok)
        },
        ({ method }, response, headers) => {
          if (method === 'initialize') sessions += 1
          if (sessions > 1 || method !== 'tools/call' || headers['mcp-session-id'] === undefined) return false
          response.writeHead(status).end()
          return true
        },
      )
      expect(await use(await open({ url }), 'web_go')).toBe('ok')
      expect({ sessions, executed }).toEqual({ sessions: 2, executed: 1 })
    },
  )

  const refuse = (response: ServerResponse, id: unknown, code: number, message: string): void => {
    response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'one' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }))
  }

  it.each([
    [-32_603, 'Session not found'],
    [-32_001, 'Session not found'],
    [-32_000, 'Bad Request: No valid session ID provided'],
    [-32_600, 'Invalid session'],
    [-32_000, 'Bad Request: Server not initialized'],
    [404, "The session 'one' has expired."],
  ])(
    'that reports a lost session in a 200 (%i, %s) gets a new session, and the call is repeated',
    async (code, message) => {
      let sessions = 0
      let executed = 0
      const { url } = await httpServer(
        (request, response) => {
          executed += 1
          json(response, request, ok)
        },
        ({ id, method }, response) => {
          if (method === 'initialize') sessions += 1
          if (sessions > 1 || id === undefined || !['tools/call', 'ping'].includes(method)) return false
          if (sessions === 0) return false
          refuse(response, id, code, message)
          return true
        },
      )
      expect(await use(await open({ url }), 'web_go')).toBe('ok')
      expect({ sessions, executed }).toEqual({ sessions: 2, executed: 1 })
    },
  )

  it('cannot cause a repeated call with its own text about another session', async () => {
    let executed = 0
    const { url } = await httpServer(({ id }, response) => {
      executed += 1
      refuse(response, id, -32_603, 'Session not found')
    })
    const failure = await failureOf(use(await open({ url }), 'web_go'))
    expect(failure.message).toBe("The MCP server 'web': Session not found")
    expect(executed).toBe(1)
  })

  it('cannot stop the process with a long text about a session', async () => {
    const { url } = await httpServer(({ id }, response) =>
      refuse(response, id, -32_603, 'session '.repeat(100_000)),
    )
    const failure = await failureOf(use(await open({ url }), 'web_go'))
    expect(failure.message).toMatch(/^The MCP server 'web': session session/)
  })

  it('cannot cause a repeated call with its own error of the number 404', async () => {
    let executed = 0
    const { url } = await httpServer(({ id }, response) => {
      executed += 1
      response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'one' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: 404, message: 'Not here.' } }))
    })
    const failure = await failureOf(use(await open({ url }), 'web_go'))
    expect(failure.message).toBe("The MCP server 'web': Not here.")
    expect(executed).toBe(1)
  })

  it.each([
    [503, 'transient'],
    [403, 'failed'],
  ])('that answers %i fails the call as %s', async (status, kind) => {
    const { url } = await httpServer((_, response) => response.writeHead(status).end('No.'))
    const failure = await failureOf(use(await open({ url }), 'web_go'))
    expect(classifyToolError(failure).kind).toBe(kind)
    expect(failure.message).toContain("The MCP server 'web' refused the request.")
  })

  it.each([
    [401, "It returned 401. Pass credentials with headers: { Authorization: 'Bearer …' }, or with auth."],
    [404, 'It returned 404. There is no MCP endpoint at this path.'],
    [500, 'It returned 500: "No.".'],
  ])('that answers %i is reported without the query of its address', async (status, why) => {
    const { url } = await httpServer(
      () => undefined,
      (_, response) => {
        response.writeHead(status).end('No.')
        return true
      },
    )
    const failure = await failureOf(open({ url: `${url}?key=secret` }))
    expect(failure).toMatchObject({ name: 'StatewrightError', code: 'mcp_unavailable', subject: url })
    expect(failure.message).toBe(`The MCP server '${url}' cannot be used. ${why}`)
  })

  it('is reported with the reason if it is unreachable', async () => {
    const { url, close } = await httpServer(() => undefined)
    close()
    const failure = await failureOf(open({ url }))
    expect(failure).toMatchObject({ code: 'mcp_unavailable' })
    expect(failure.message).toMatch(/cannot be used\. It cannot be reached \(.*ECONNREFUSED/)
  })

  it('is reported after startTimeoutMs if it accepts the connection and does not answer', async () => {
    const { url } = await httpServer(
      () => undefined,
      () => true,
    )
    expect(await failureOf(open({ url, startTimeoutMs: 100 }))).toMatchObject({ code: 'mcp_timeout' })
  })
})
