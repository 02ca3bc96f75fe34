import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { createRequestListener } from '@remix-run/node-fetch-server'
import { createAgent, defineAgents, memoryStore } from '../../../src/index.js'
import { mcpServer } from '../../../src/mcp/server/index.js'
import { tool } from '../../support/tools.js'
import { startServer } from '../http-server.js'
import { blockOf } from '../page-block.js'
import { lastResult, scriptedModel } from './support.js'

/** The wire traffic as the page shows it, without the SDK's standard fields and without random ids. */
class Transcript {
  readonly lines: string[] = []

  readonly fetch = async (url: string | URL, init?: RequestInit): Promise<Response> => {
    const { body } = init ?? {}
    const sent = JSON.parse(typeof body === 'string' ? body : '{}') as { method?: string; params?: object }
    const response = await fetch(url, init)
    if (sent.method === undefined) return response
    const text = await response.clone().text()
    this.lines.push(`→ ${sent.method}${tell(sent.params)}`)
    const parsed = text.startsWith('{')
      ? [text]
      : [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => data ?? '')
    for (const message of parsed) {
      const { method, params, result } = JSON.parse(message) as Message
      this.lines.push(method === undefined ? `←${tell(result)}` : `← ${method}${tell(params)}`)
    }
    return response
  }
}

interface Message {
  method?: string
  params?: object
  result?: object
}

function tell(value: object = {}): string {
  const { _meta: meta, ...rest } = value as { _meta?: Record<string, unknown> }
  const ours = Object.entries(meta ?? {}).filter(([key]) => key.startsWith('statewright/'))
  const parsed = { ...rest, ...(ours.length > 0 && { _meta: Object.fromEntries(ours) }) }
  if (Object.keys(parsed).length === 0) return ''
  return ` ${JSON.stringify(parsed, null, 1)
    .replaceAll(/\n\s*/g, ' ')
    .replaceAll(/@[\da-f]{16}/g, '@…')
    .replaceAll(/[\da-f]{32}/g, '…')}`
}

test('docs/mcp.md shows the exchange of the SDK client and our server: STATEWRIGHT_MCP_PAGE=write writes it', async () => {
  const refund = tool('refund', () => 'Refunded.', { needsApproval: true })
  const model = scriptedModel(
    (request) => lastResult(request) ?? [{ name: 'refund', arguments: '{"order":"17"}' }],
  )
  const agents = defineAgents({ support: createAgent({ model, store: memoryStore(), tools: [refund] }) })
  const tools = { support: { description: 'Answers customer questions.' } }
  const handler = mcpServer({ agents, tools, authorize: 'none' })
  const { url } = await startServer(createRequestListener((request) => handler(request)))
  const transcript = new Transcript()
  const client = new Client(
    { name: 'shop', version: '1' },
    { versionNegotiation: { mode: 'auto' }, capabilities: { elicitation: { form: {} } } },
  )
  client.setRequestHandler('elicitation/create', () =>
    Promise.resolve({ action: 'accept' as const, content: { confirm: true } }),
  )
  const options = { fetch: transcript.fetch as typeof fetch }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), options))
  await client.listTools()
  const call = { name: 'support', arguments: { message: 'Refund order 17.', session: 'order-17' } }
  const { content } = await client.callTool(call)
  expect(content).toEqual([{ type: 'text', text: 'Refunded.' }])
  await client.close()
  const played = ['```text', ...transcript.lines, '```']
  expect(blockOf('transcript', played)).toEqual(played)
})
