import type { ServerResponse } from 'node:http'
import fc from 'fast-check'
import { findHeaderFault } from '../../src/mcp/client/to-tool.js'
import { httpServer, json, modernServer, startServer } from './http-server.js'
import { failureOf, odd, open, use } from './support.js'

const ok = { content: [{ type: 'text', text: 'ok' }] }

describe('a server without a handshake, over stdio', () => {
  it('is used with its revision, in one process', async () => {
    const server = await odd('modern')
    expect(server.name).toBe('modern')
    expect(JSON.parse(String(await use(server, 'modern_seen')))).toEqual(['listen'])
  })

  it('can announce a changed list', async () => {
    const server = await odd('modern')
    await use(server, 'modern_add', { name: 'new' })
    expect(server.tools.map(({ name }) => name)).toContain('modern_new')
  })

  it('is subscribed to again after it ends the stream, without losing changes', async () => {
    const server = await odd('modern')
    await use(server, 'modern_end', { name: 'unheard' })
    await use(server, 'modern_seen')
    expect(JSON.parse(String(await use(server, 'modern_seen')))).toEqual(['listen', 'listen'])
    expect(server.tools.map(({ name }) => name)).toContain('modern_unheard')
  })

  it('is notified of a cancelled call, and reports progress', async () => {
    const server = await odd('modern')
    const controller = new AbortController()
    const progress = (): void => controller.abort(new Error('Enough.'))
    await failureOf(use(server, 'modern_hang', {}, { signal: controller.signal, progress }))
    expect(JSON.parse(String(await use(server, 'modern_seen')))).toContain('cancelled')
  })

  it('fails only the call whose answer violates the revision', async () => {
    const server = await odd('modern')
    const failure = await failureOf(use(server, 'modern_lie'))
    expect(failure.message).toMatch(/^The MCP server 'modern': Invalid result for tools\/call/)
    expect(await use(server, 'modern_seen')).toBe('["listen"]')
  })
})

describe('a server that needs a handshake', () => {
  it('is restarted and initialized if it exits on anything else', async () => {
    expect(await use(await odd('leaves'), 'shy_go')).toBe('here')
  })

  it('is initialized after a timeout if it ignores anything else', async () => {
    expect(await use(await odd('mute', { startTimeoutMs: 2_000 }), 'mute_go')).toBe('here')
  })
})

describe('a server without a handshake, over HTTP', () => {
  const schema = {
    type: 'object',
    properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, secret: { type: 'string' } },
  }

  const modern = (tools: object[]) => modernServer(() => ({ resultType: 'complete', ...ok }), tools)

  it('receives arguments as the headers that the schema requires, without a session', async () => {
    const { url, requests } = await modern([{ name: 'go', inputSchema: schema }])
    const server = await open({ url })
    expect(await use(server, 'web_go', { region: 'eu', secret: 'x' })).toBe('ok')
    await server.close()
    expect(requests.map(({ rpc }) => rpc)).toEqual(['server/discover', 'tools/list', 'tools/call'])
    const { headers } = requests.at(-1) ?? { headers: {} }
    expect(headers).toMatchObject({ 'mcp-param-region': 'eu', 'mcp-name': 'go', 'mcp-method': 'tools/call' })
    expect(headers).not.toHaveProperty('mcp-session-id')
  })

  it('loses tools whose headers cannot be sent, with a warning', async () => {
    const warnings: string[] = []
    const { url } = await modern([
      { name: 'go', inputSchema: schema },
      {
        name: 'bad',
        inputSchema: { type: 'object', properties: { a: { type: 'number', 'x-mcp-header': 'A' } } },
      },
    ])
    const server = await open({ url, onWarning: (warning) => warnings.push(warning) })
    expect(server.tools.map(({ name }) => name)).toEqual(['web_go'])
    expect(warnings).toEqual([
      `MCP server 'web': Its tool "bad" is omitted: it has an input schema that has an x-mcp-header on a property that is not a string, integer or boolean.`,
    ])
  })
})

describe('findHeaderFault', () => {
  it.each<[string, object, string | undefined]>([
    [
      'two headers',
      {
        properties: {
          a: { type: 'string', 'x-mcp-header': 'A' },
          b: { type: 'integer', 'x-mcp-header': 'B' },
        },
      },
      undefined,
    ],
    ['an argument of that name', { properties: { 'x-mcp-header': { type: 'string' } } }, undefined],
    [
      'a nested one',
      { properties: { a: { properties: { b: { type: 'boolean', 'x-mcp-header': 'B' } } } } },
      undefined,
    ],
    [
      'one name twice',
      {
        properties: {
          a: { type: 'string', 'x-mcp-header': 'A' },
          b: { type: 'string', 'x-mcp-header': 'a' },
        },
      },
      "has the x-mcp-header 'a' twice",
    ],
    [
      'a name with a space',
      { properties: { a: { type: 'string', 'x-mcp-header': 'A B' } } },
      'has an x-mcp-header that is not a valid header name',
    ],
    [
      'one in a list',
      { properties: { a: { items: { type: 'string', 'x-mcp-header': 'A' } } } },
      'has an x-mcp-header outside the arguments',
    ],
    [
      'the whole schema',
      { type: 'string', 'x-mcp-header': 'A' },
      'has an x-mcp-header outside the arguments',
    ],
  ])('checks %s', (_, schema, fault) => {
    expect(findHeaderFault(schema)).toBe(fault)
  })

  it('accepts any input from a server', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), (inner, name) => {
        const schema = { properties: { a: { type: 'string', 'x-mcp-header': name, inner } } }
        const isName = name !== '' && /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)
        if (!isName)
          expect(findHeaderFault(schema)).toBe('has an x-mcp-header that is not a valid header name')
        expect(findHeaderFault(inner)).toBeUndefined()
      }),
    )
  })
})

describe('a server that only has an event stream', () => {
  /** Revision 2024-11-05. `call` answers tools/call. */
  async function streamServer(
    call: (stream: ServerResponse, id: number) => void,
  ): Promise<{ url: string; streams: () => number }> {
    let stream: ServerResponse | undefined
    let streams = 0
    const say = (to: ServerResponse | undefined, id: number, result: object): void => {
      to?.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)
    }
    const { url } = await startServer((message, response) => {
      if (message.method === 'GET' && message.url === '/sse') {
        streams += 1
        stream = response.writeHead(200, { 'content-type': 'text/event-stream' })
        stream.write('event: endpoint\ndata: /messages\n\n')
        return
      }
      if (message.url !== '/messages') {
        response.writeHead(404).end()
        return
      }
      let body = ''
      message.on('data', (chunk) => (body += String(chunk)))
      message.on('end', () => {
        response.writeHead(202).end()
        const { id, method, params } = JSON.parse(body)
        if (method === 'initialize') {
          const { protocolVersion } = params
          const serverInfo = { name: 'old', version: '1' }
          say(stream, id, { protocolVersion, capabilities: { tools: {} }, serverInfo })
        } else if (method === 'tools/list')
          say(stream, id, { tools: [{ name: 'go', inputSchema: { type: 'object' } }] })
        else if (method === 'tools/call' && stream !== undefined) call(stream, id)
      })
    })
    return { url: new URL('/sse', url).href, streams: () => streams }
  }

  it('can be used', async () => {
    const { url } = await streamServer((stream, id) => {
      stream.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: ok })}\n\n`)
    })
    expect(await use(await open({ url }), 'old_go')).toBe('ok')
  })

  it('fails a call as transient if it ends the stream, and the next call reconnects', async () => {
    const ends = [true, false]
    const { url, streams } = await streamServer((stream, id) => {
      if (ends.shift() === true) stream.end()
      else stream.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: ok })}\n\n`)
    })
    const server = await open({ url })
    const failure = await failureOf(use(server, 'old_go'))
    expect(failure).toMatchObject({ name: 'ToolError', kind: 'transient' })
    expect(failure.message).toContain("The MCP server 'old' closed the connection during the call.")
    expect(await use(server, 'old_go')).toBe('ok')
    expect(streams()).toBe(2)
  })

  it('is disconnected if it floods the client', async () => {
    const { url } = await streamServer((stream) => {
      stream.write(`data: ${'x'.repeat(200_000)}`)
    })
    const failure = await failureOf(use(await open({ url, maxMessageBytes: 100_000 }), 'old_go'))
    expect(failure.message).toContain('sent a message larger than 100000 bytes and was cut off')
  })
})

describe('a server that redirects', () => {
  it('cannot send a request to another origin', async () => {
    const inside = await httpServer((request, response) => json(response, request, ok))
    const { url } = await httpServer(
      () => undefined,
      (_, response) => {
        response.writeHead(307, { location: inside.url }).end()
        return true
      },
    )
    const failure = await failureOf(open({ url, headers: { Authorization: 'Bearer secret' } }))
    expect(failure).toMatchObject({ code: 'mcp_unavailable' })
    expect(inside.requests).toEqual([])
  })
})
