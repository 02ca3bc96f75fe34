// A server without a library, so that it can violate the protocol.
import { createInterface } from 'node:readline'

export function send(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
}

export function text(words, more = {}) {
  return { content: [{ type: 'text', text: words }], ...more }
}

export function tool(name, more = {}) {
  return { name, description: `The tool ${name}.`, inputSchema: { type: 'object' }, ...more }
}

/**
 * `tools()` returns the list. `call(name, args, request)` returns a result, or undefined when it sends the
 * result itself. `page` replaces the answer to tools/list.
 */
export function serve({ name = 'odd', tools = () => [], call = () => text('ok'), page, on = {} }) {
  const answers = {
    initialize: ({ params }) => ({
      protocolVersion: params.protocolVersion,
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name, version: '1' },
    }),
    'tools/list': (request) => (page ? page(request) : { tools: tools() }),
    'tools/call': (request) => call(request.params.name, request.params.arguments, request),
    ping: () => ({}),
  }
  createInterface({ input: process.stdin }).on('line', async (line) => {
    const request = JSON.parse(line)
    on[request.method]?.(request)
    if (request.id === undefined || request.method === undefined) return
    try {
      const result = await answers[request.method](request)
      if (result !== undefined) send({ id: request.id, result })
    } catch (error) {
      send({ id: request.id, error: { code: -32603, message: error.message } })
    }
  })
}
