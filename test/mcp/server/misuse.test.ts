import fc from 'fast-check'
import { createAgent, defineAgents, memoryStore, ToolError, type AgentOptions } from '../../../src/index.js'
import { z } from 'zod'
import { mcpServer, type McpHandler, type McpServerOptions } from '../../../src/mcp/server/index.js'
import { tool } from '../../support/tools.js'
import { awaitTask, connect, lastResult, rpc, type RpcReply, scriptedModel } from './support.js'
import { sampled } from '../../support/extent.js'

const echo = () => createAgent({ model: scriptedModel(() => 'Hello.'), store: memoryStore() })
const serve = (more: Partial<McpServerOptions> = {}): McpHandler =>
  mcpServer({ agents: defineAgents({ echo: echo() }), authorize: 'none', onError: () => undefined, ...more })

const textOf = (result: unknown): string => (result as { content: { text: string }[] }).content[0]?.text ?? ''

describe('options', () => {
  test.each([
    ['agents', { agents: 1 }, 'invalid_config'],
    ['authorize', { authorize: undefined }, 'invalid_config'],
    ['agent', { agent: echo() }, 'invalid_config'],
    ['pollMs', { pollMs: 0 }, 'invalid_config'],
    ['maxBodyBytes', { maxBodyBytes: 0.5 }, 'invalid_config'],
    ['hosts', { hosts: 'a.example' }, 'invalid_config'],
    ['name', { name: '' }, 'invalid_config'],
    ['answerUrl', { answerUrl: 'https://a.example' }, 'invalid_config'],
    ['answerCommand', { answerCommand: true }, 'invalid_config'],
    ['tools.none', { tools: { none: {} } }, 'invalid_config'],
    ['tools.echo.input', { tools: { echo: { input: z.string() } } }, 'invalid_config'],
    ['tools.echo.task', { tools: { echo: { task: 'no' } } }, 'invalid_config'],
    ['tools.echo.title', { tools: { echo: { title: 7 } } }, 'invalid_config'],
    ['tools.echo.toMessage', { tools: { echo: { toMessage: 'text' } } }, 'invalid_config'],
  ])('%s is refused with its name', (key, more, code) => {
    const act = () => serve(more as never)
    expect(act).toThrow(expect.objectContaining({ code }) as Error)
    expect(act).toThrow(key.split('.').at(-1))
  })

  test('agents must share one store with an inbox, and cannot be interactive', () => {
    const model = scriptedModel(() => 'Hello.')
    const create = (options: Partial<AgentOptions>) =>
      defineAgents({ one: createAgent({ model, ...options } as never) })
    expect(() => serve({ agents: create({}) })).toThrow('share one store')
    const { inbox: _, ...bare } = memoryStore()
    expect(() => serve({ agents: create({ store: bare as never }) })).toThrow('an inbox')
    expect(() => serve({ agents: create({ store: memoryStore(), interactive: true }) })).toThrow(
      "'one' is interactive",
    )
  })
})

describe('hosts', () => {
  const ask = (handler: McpHandler, headers: Record<string, string>) =>
    handler(new Request('http://localhost/mcp', { method: 'POST', body: '{}', headers }))

  test.each([{ host: 'evil.example' }, { origin: 'https://evil.example' }])(
    'without authorize, a request with %j is refused',
    async (headers) => {
      expect((await ask(serve(), headers)).status).toBe(403)
      const named = serve({ hosts: ['evil.example', 'localhost'] })
      expect((await ask(named, headers)).status).not.toBe(403)
    },
  )

  const site = { host: 'mcp.example:8443', 'content-type': 'application/json', cookie: 'user=ann' }
  const authorize = ({ headers }: Request): string | null =>
    /user=(\w+)/.exec(headers.get('cookie') ?? '')?.[1] ?? null

  test.each([
    'https://evil.example',
    'https://mcp.example',
    'https://mcp.example:9443',
    'https://mcp.example.evil.example:8443',
    'null',
    'mcp.example:8443',
    '',
  ])(
    'if authorize reads cookies, a page of the origin %j is refused before authorize runs',
    async (origin) => {
      let requestCount = 0
      const handler = serve({ authorize: (request) => ((requestCount += 1), authorize(request)) })
      const response = await ask(handler, { ...site, origin })
      expect(response.status).toBe(403)
      expect(await response.text()).toContain('hosts option of mcpServer')
      expect(requestCount).toBe(0)
    },
  )

  test.each([{}, { origin: 'https://mcp.example:8443' }, { origin: 'http://localhost' }])(
    'if authorize reads cookies, a request with %j is answered',
    async (headers) => {
      expect((await ask(serve({ authorize }), { ...site, ...headers })).status).not.toBe(403)
    },
  )
})

describe('the end of a run', () => {
  const end = async (options: Partial<AgentOptions>, more: Partial<McpServerOptions> = {}) => {
    const failing = tool('fail', () => {
      throw new ToolError('failed', 'no row 7')
    })
    const model = scriptedModel((request) => {
      if (lastResult(request) === undefined) return [{ name: 'fail', arguments: '{}' }]
      return [{ name: 'fail', arguments: `{"again":${request.messages.length}}` }]
    })
    const agents = defineAgents({
      one: createAgent({ model, store: memoryStore(), tools: [failing], ...options } as never),
    })
    const handler = mcpServer({ agents, authorize: 'none', onError: () => undefined, ...more })
    await rpc(handler, 'tools/call', { name: 'one', arguments: { message: 'Go.', session: 's' } })
    return awaitTask(handler, 's', ['completed', 'failed'])
  }

  test('at a limit completes the task with isError and the reason', async () => {
    const { status, result } = await end({ limits: { maxSteps: 2 } } as never)
    expect(status).toBe('completed')
    expect(result).toMatchObject({ isError: true, _meta: { 'statewright/state': 'MAX_STEPS' } })
    expect(textOf(result)).toContain('(max_steps)')
  })

  test('in an error completes the task with isError, masked unless expose allows it', async () => {
    const model = scriptedModel(() => {
      throw new Error('The key sk-123 is not valid.')
    })
    const masked = await end({ model, retry: { maxAttempts: 1 } } as never)
    expect(masked.status).toBe('completed')
    expect(textOf(masked['result'])).not.toContain('sk-123')
    const open = await end({ model, retry: { maxAttempts: 1 } } as never, { expose: { errors: true } })
    expect(textOf(open['result'])).toContain('is not valid')
  })
})

test('a custom schema is validated, and toMessage creates the message', async () => {
  const inputs: unknown[] = []
  const model = scriptedModel(({ messages }) => {
    inputs.push(messages.at(-1)?.content)
    return 'Sunny.'
  })
  const handler = mcpServer({
    agents: defineAgents({ weather: createAgent({ model, store: memoryStore() }) }),
    authorize: 'none',
    tools: {
      weather: {
        title: 'Weather',
        input: z.object({ city: z.string() }),
        toMessage: ({ city }: { city: string }) => `How is the weather in ${city}?`,
      },
    },
  })
  const client = await connect(handler)
  const { tools } = await client.listTools()
  expect(tools[0]).toMatchObject({ title: 'Weather', inputSchema: { properties: { city: {}, session: {} } } })
  const wrong = await client.callTool({ name: 'weather', arguments: { city: 7 } })
  expect(wrong.isError).toBe(true)
  expect(textOf(wrong)).toContain('city')
  await client.callTool({ name: 'weather', arguments: { city: 'Bern', session: 'a' } })
  expect(inputs).toEqual(['How is the weather in Bern?'])
})

test('a tool without tasks answers immediately, also for a client with tasks', async () => {
  const { result } = await rpc(serve({ tools: { echo: { task: false } } }), 'tools/call', {
    name: 'echo',
    arguments: { message: 'Hi.' },
  })
  expect(result).toMatchObject({ resultType: 'complete', content: [{ type: 'text', text: 'Hello.' }] })
})

test('an answer with a schema is structured content', async () => {
  const model = scriptedModel(() => '{"sum":4}')
  const agents = defineAgents({
    adder: createAgent({ model, store: memoryStore(), output: z.object({ sum: z.number() }) }),
  })
  const handler = mcpServer({ agents, authorize: 'none' })
  await rpc(handler, 'tools/call', { name: 'adder', arguments: { message: '2 + 2', session: 's' } })
  const { result } = await awaitTask(handler, 's', ['completed'])
  expect(result).toMatchObject({ structuredContent: { sum: 4 }, isError: false })
})

test('a client reads the progress of a plain call', async () => {
  const gate: (() => void)[] = []
  const slow = tool('slow', () => new Promise<string>((resolve) => gate.push(() => resolve('ok'))))
  const model = scriptedModel((request) =>
    lastResult(request) === undefined ? [{ name: 'slow', arguments: '{}' }] : 'Done.',
  )
  const agents = defineAgents({ one: createAgent({ model, store: memoryStore(), tools: [slow] }) })
  const client = await connect(mcpServer({ agents, authorize: 'none' }))
  const received: (string | undefined)[] = []
  const result = await client.callTool(
    { name: 'one', arguments: { message: 'Go.' } },
    {
      onprogress: ({ message }) => {
        received.push(message)
        if (message?.includes('slow')) for (const open of gate.splice(0)) open()
      },
    },
  )
  expect(textOf(result)).toBe('Done.')
  expect(received).toContain('Step 1: slow.')
})

test('any body is answered with a status, and starts nothing', async () => {
  const store = memoryStore()
  const agents = defineAgents({ echo: createAgent({ model: scriptedModel(() => 'Hello.'), store }) })
  const handler = mcpServer({ agents, authorize: 'none', onError: () => undefined })
  const bodies = fc.oneof(fc.string(), fc.json(), fc.constant('['.repeat(10_000)))
  await fc.assert(
    fc.asyncProperty(bodies, async (body) => {
      const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
      const response = await handler(new Request('http://localhost/mcp', { method: 'POST', body, headers }))
      expect(response.status).toBeLessThan(500)
      await response.text()
    }),
    { numRuns: sampled(60) },
  )
  expect(store.list()).toEqual([])
})

test('any arguments give an error that the model reads, and answers are validated', async () => {
  const handler = serve()
  const call = (params: Record<string, unknown>): Promise<RpcReply> => rpc(handler, 'tools/call', params)
  await fc.assert(
    fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), async (input) => {
      const { result, error } = await call({ name: 'echo', arguments: { ...input, strange: 1 } })
      expect(error).toBeUndefined()
      expect(result?.['isError']).toBe(true)
    }),
    { numRuns: sampled(40) },
  )
  expect((await call({ name: 'none' })).error?.message).toContain(
    "There is no tool 'none'. The tools are: echo.",
  )
  const bad = { name: 'echo', arguments: { message: 'Hi.', session: '../x' } }
  expect(textOf((await call(bad)).result)).toContain('A chat id consists of 1 to 128 characters')
})
