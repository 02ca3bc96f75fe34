import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { serializeMessage } from '@modelcontextprotocol/server'
import { Client, type JSONRPCMessage, type Transport } from '@modelcontextprotocol/client'
import { createAgent, defineAgents, memoryStore } from '../../../src/index.js'
import { serveMcpStdio } from '../../../src/mcp/server/index.js'
import { cli } from '../../cli/support.js'
import { tool } from '../../support/tools.js'
import { scriptedModel } from './support.js'

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

async function serve(needsApproval = false, payments = 1) {
  const done: string[] = []
  const pay = tool('pay', () => void done.push('paid'), { needsApproval })
  const model = scriptedModel(({ messages }) => {
    const n = messages.filter(({ role }) => role === 'tool').length
    return n < payments ? [{ name: 'pay', arguments: JSON.stringify({ n }) }] : 'Done.'
  })
  const agents = defineAgents({ payer: createAgent({ model, store: memoryStore(), tools: [pay] }) })
  const [stdin, stdout] = [new PassThrough(), new PassThrough()]
  const server = await serveMcpStdio({ agents, stdin, stdout })
  return { done, server, transport: new PipeTransport(stdin, stdout) }
}

test.each([
  ['legacy', 1],
  ['legacy', 12],
  [{ pin: '2026-07-28' }, 1],
] as const)('a client of the era %j is asked over stdio (%i)', async (mode, payments) => {
  const { done, server, transport } = await serve(true, payments)
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
  expect(done).toEqual(Array.from({ length: payments }, () => 'paid'))
  await client.close()
  await server.closed
})

test('closes on request', async () => {
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

/** The built command as a process with real pipes. */
const bin = join(process.cwd(), 'dist/src/cli/main.js')
const whenBuilt = existsSync(bin) ? test : test.skip

const printingAgents = (entry: string) => `
  import { createAgent, defineAgents, defineTool } from ${JSON.stringify(entry)}
  console.log('The module is loaded.')
  process.stdout.write('Without a line end')
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 }
  const answer = { text: '', reasoning: '', refusal: null, toolCalls: [], finishReason: 'stop', complete: true, usage, model: 'm' }
  const call = { id: 'a', type: 'function', function: { name: 'look', arguments: '{}' } }
  const model = {
    provider: 'p',
    model: 'm',
    request: async ({ messages }) => {
      console.info('The model is asked.')
      return messages.at(-1).role === 'tool'
        ? { ...answer, text: 'Done.' }
        : { ...answer, toolCalls: [call], finishReason: 'tool_calls' }
    },
  }
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    input: { type: 'object' },
    execute: () => {
      console.log('{"jsonrpc":"2.0","id":1,"result":{}}')
      return 'seen'
    },
  })
  export default ({ store }) => defineAgents({ support: createAgent({ model, store, tools: [look] }) })`

whenBuilt(
  'what modules and tools print does not reach the stdout of statewright mcp',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'mcp-cli-'))
    const module = join(folder, 'agents.mjs')
    writeFileSync(module, printingAgents(pathToFileURL(join(process.cwd(), 'dist/src/index.js')).href))
    const child = spawn(process.execPath, [bin, 'mcp', '--agents', module, '--store', `file:${folder}/store`])
    let [out, err] = ['', '']
    child.stderr.on('data', (chunk) => (err += String(chunk)))
    const ended = once(child, 'close')
    const clientInfo = { name: 'test', version: '1' }
    const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
    const call = { name: 'support', arguments: { message: 'Look.' } }
    const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    child.stdout.on('data', (chunk) => {
      out += String(chunk)
      if (out.includes('Done.')) child.stdin.end()
    })
    send({ id: 7, method: 'initialize', params: initialize })
    send({ method: 'notifications/initialized' })
    send({ id: 8, method: 'tools/call', params: call })
    expect((await ended)[0]).toBe(0)
    rmSync(folder, { recursive: true })
    const messages = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: number })
    expect(messages.map(({ id }) => id)).toEqual([7, 8])
    for (const text of ['The module is loaded.', 'Without a line end', 'The model is asked.', '"id":1'])
      expect(err).toContain(text)
  },
  30_000,
)
