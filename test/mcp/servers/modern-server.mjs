// A 2026-07-28 server without a library. Clients send no handshake, and it notifies listeners of changes.
import { createInterface } from 'node:readline'
import { send, text, tool } from './raw-server.mjs'

const version = '2026-07-28'
const subscription = 'io.modelcontextprotocol/subscriptionId'

/** `call(name, args, request)` returns a result, or undefined when it sends the result itself. */
export function serveModern({ name = 'modern', tools, call, on = {} }) {
  const answers = {
    'server/discover': () => ({
      supportedVersions: [version],
      capabilities: { tools: { listChanged: true } },
      ttlMs: 0,
      cacheScope: 'private',
      _meta: { 'io.modelcontextprotocol/serverInfo': { name, version: '1' } },
    }),
    'tools/list': () => ({ tools: tools(), ttlMs: 0, cacheScope: 'private' }),
    'tools/call': (request) => call(request.params.name, request.params.arguments, request),
    'subscriptions/listen': ({ id, params: { notifications } }) => {
      const params = { _meta: { [subscription]: id }, notifications }
      send({ method: 'notifications/subscriptions/acknowledged', params })
    },
  }
  createInterface({ input: process.stdin }).on('line', async (line) => {
    const request = JSON.parse(line)
    on[request.method]?.(request)
    if (request.id === undefined) return
    const { _meta: meta = {} } = request.params ?? {}
    const isOurs = meta['io.modelcontextprotocol/protocolVersion'] === version
    const answer = isOurs ? answers[request.method] : undefined
    if (answer === undefined) {
      const error = { code: -32022, message: 'Unsupported.', data: { supported: [version] } }
      return send({ id: request.id, error })
    }
    const result = await answer(request)
    if (result !== undefined) send({ id: request.id, result: { resultType: 'complete', ...result } })
  })
}

export { send, subscription, text, tool }
