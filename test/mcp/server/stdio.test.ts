import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { serializeMessage } from '@modelcontextprotocol/server'
import { Client, type JSONRPCMessage, type Transport } from '@modelcontextprotocol/client'
import { createAgent, defineAgents, memoryStore } from '../../../src/index.js'
import { serveMcpStdio } from '../../../src/mcp/server/index.js'
import { cli } from '../../cli/support.js'
import { tool } from '../../support/tools.js'
import { lastResult, scriptedModel } from './support.js'

/** The client's side of two pipes. */
class PipeTransport implements Transport {
  onmessage?: (message: JSONRPCMessage) => void
  onclose?: () => void
  #rest = ''

  constructor(
    readonly stdin: PassThrough,
    readonly stdout: PassThrough,
  ) {}

  start(): Promise<void> {
    this.stdout.on('data', (chunk) => {
      const lines = (this.#rest + String(chunk)).split('\n')
      this.#rest = lines.pop() ?? ''
      for (const line of lines) this.onmessage?.(JSON.parse(line) as JSONRPCMessage)
    })
    return Promise.resolve()
  }

  send(message: JSONRPCMessage): Promise<void> {
    this.stdin.write(serializeMessage(message as never))
    return Promise.resolve()
  }

  close(): Promise<void> {
    this.stdin.end()
    this.onclose?.()
    return Promise.resolve()
  }
}

async function serve(needsApproval = false) {
  const done: string[] = []
  const pay = tool('pay', () => void done.push('paid'), { needsApproval })
  const model = scriptedModel((request) =>
    lastResult(request) === undefined ? [{ name: 'pay', arguments: '{}' }] : 'Done.',
  )
  const agents = defineAgents({ payer: createAgent({ model, store: memoryStore(), tools: [pay] }) })
  const [stdin, stdout] = [new PassThrough(), new PassThrough()]
  const server = await serveMcpStdio({ agents, stdin, stdout })
  return { done, server, transport: new PipeTransport(stdin, stdout) }
}

test.each(['legacy', { pin: '2026-07-28' }] as const)(
  'a client of the era %j is asked over stdio',
  async (mode) => {
    const { done, server, transport } = await serve(true)
    const client = new Client(
      { name: 'test', version: '1' },
      { versionNegotiation: { mode }, capabilities: { elicitation: { form: {} } } },
    )
    client.setRequestHandler('elicitation/create', () =>
      Promise.resolve({ action: 'accept' as const, content: { confirm: true } }),
    )
    await client.connect(transport)
    const result = await client.callTool({ name: 'payer', arguments: { message: 'Pay.' } })
    expect(result.content).toEqual([{ type: 'text', text: 'Done.' }])
    expect(done).toEqual(['paid'])
    await client.close()
    await server.closed
  },
)

test('closes when it is told to', async () => {
  const { server } = await serve()
  await server.close()
  await server.closed
})

describe('statewright mcp', () => {
  test('needs agents', async () => {
    const { code, err } = await cli(['mcp'])
    expect(code).toBe(2)
    expect(err).toContain('statewright mcp --agents MODULE')
  })

  test('refuses a module without agents', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'mcp-cli-'))
    writeFileSync(join(folder, 'none.mjs'), 'export default 1')
    const { code, err } = await cli(['mcp', '--agents', join(folder, 'none.mjs'), '--store', 'memory:'])
    rmSync(folder, { recursive: true })
    expect(code).toBe(2)
    expect(err).toContain('has no agents as its default export')
  })
})
