import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAgent } from '../../src/index.js'
import { languageModel } from '../../src/ai-sdk/index.js'
import { startRehearsal, type Turn } from '../../src/rehearsal/index.js'
import { tool } from '../support/tools.js'
import { packages, stateless } from './support.js'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

/** Forwards requests, and resets the connection of each streamed answer right before its last event. */
async function startCuttingProxy(target: string): Promise<{ url: string; count: () => number }> {
  let count = 0
  const server = createServer(async (request, response) => {
    count += 1
    let body = ''
    for await (const piece of request) body += String(piece)
    const headers = { 'content-type': 'application/json', authorization: 'Bearer key' }
    const answer = await fetch(new URL(request.url ?? '', target), { method: 'POST', headers, body })
    const events = (await answer.text()).split('\n\n').filter((event) => event.trim() !== '')
    const isEnd = /\[DONE\]|message_stop/.test(events.at(-1) ?? '')
    const sent = (isEnd ? events.slice(0, -1) : events).map((event) => `${event}\n\n`).join('')
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    // The client has the answer before its connection breaks.
    response.write(sent, () => setImmediate(() => response.socket?.resetAndDestroy()))
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, count: () => count }
}

describe.each(Object.entries(packages))('%s', (_name, make) => {
  it('accepts a complete answer if the connection breaks before the stream closes', async () => {
    const turns: Turn[] = [{ toolCalls: [{ name: 'echo', arguments: { text: 'a' } }] }, { text: 'Done.' }]
    const rehearsal = await startRehearsal({ scenario: { turns } })
    const proxy = await startCuttingProxy(rehearsal.url)
    try {
      const client = make(proxy.url)
      const model = languageModel(client, client.provider.endsWith('.responses') ? stateless : {})
      const result = await createAgent({ model, tools: [tool('echo')] }).run('Go.').result
      expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
      expect(proxy.count()).toBe(2)
    } finally {
      await rehearsal.close()
    }
  })
})
