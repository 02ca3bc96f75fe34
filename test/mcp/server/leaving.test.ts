import { jest } from '@jest/globals'
import { SimulatedClock } from 'xstate'
import { type Clock, createAgent, defineAgents, memoryStore } from '../../../src/index.js'
import { mcpServer, type McpServerOptions } from '../../../src/mcp/server/index.js'
import { ManualModel, settled } from '../../support/manual-model.js'
import { tool } from '../../support/tools.js'
import { awaitTask, connect, rpc, scriptedModel } from './support.js'

function manual(more: Partial<McpServerOptions> = {}, clock?: Clock) {
  const [model, store] = [new ManualModel(), memoryStore()]
  const agents = defineAgents({ one: createAgent({ model, store, ...(clock && { clock }) }) })
  const handler = mcpServer({ agents, authorize: 'none', onError: () => undefined, ...more })
  const until = async (holds: () => unknown): Promise<void> => {
    while (!holds()) await settled()
  }
  return { model, store, handler, until }
}

test.each([
  ['is cancelled when its call has neither a key nor a session', {}, 'CANCELLED'],
  ['continues when its call has a session', { session: 's' }, 'RUNNING'],
])('a run whose client disconnects %s', async (_, named, state) => {
  const { model, store, handler, until } = manual()
  const client = await connect(handler)
  const leave = new AbortController()
  const call = { name: 'one', arguments: { message: 'Go.', ...named } }
  const gone = client.callTool(call, { signal: leave.signal }).catch(() => 'gone')
  await until(() => model.pending)
  leave.abort()
  expect(await gone).toBe('gone')
  for (let i = 0; i < 50; i += 1) await settled()
  await until(() => store.list()[0]?.summary?.state === state)
  model.pending?.answer({ text: 'Done.' })
  await until(() => store.list()[0]?.summary?.state === (state === 'RUNNING' ? 'COMPLETED' : state))
})

test('a call waits for a session that a dead process still holds', async () => {
  const { model, store, handler, until } = manual()
  const say = (message: string) =>
    rpc(handler, 'tools/call', { name: 'one', arguments: { message, session: 's' } })
  await say('Go.')
  await until(() => model.pending)
  model.pending?.answer({ text: 'Done.' })
  await awaitTask(handler, 's', ['completed'])
  await until(() => store.get('s')?.holder === null)
  const lease = store.acquire('s', { holder: 'dead', ttlMs: 60_000 })
  const later = say('And then?')
  for (let i = 0; i < 50; i += 1) await settled()
  store.release(lease)
  expect((await later).result?.taskId).toBe('s~2')
  model.pending?.answer({ text: 'Done.' })
})

test('a call stops waiting for the session of another process when its client has left', async () => {
  const clock = new SimulatedClock()
  const { store, handler } = manual({}, clock)
  const pass = async (): Promise<void> => {
    for (let i = 0; i < 50; i += 1) {
      await settled()
      clock.increment(10)
    }
  }
  const lease = store.acquire('s', { holder: 'other', ttlMs: 60_000 })
  const client = await connect(handler)
  const leave = new AbortController()
  const call = { name: 'one', arguments: { message: 'Go.', session: 's' } }
  const gone = client.callTool(call, { signal: leave.signal }).catch(() => 'gone')
  await pass()
  leave.abort()
  expect(await gone).toBe('gone')
  await pass()
  store.release(lease)
  await pass()
  expect(store.get('s')?.summary ?? null).toBeNull()
})

test.each([
  [
    'throws',
    () => {
      throw new Error('secret')
    },
  ],
  ['rejects', () => Promise.reject(new Error('secret'))],
])('an onError that %s changes nothing for the client', async (_, onError) => {
  const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  const { handler } = manual({
    onError,

    tools: {
      one: {
        input: { type: 'object', properties: {} },
        toMessage: () => {
          throw new Error('No.')
        },
      },
    },
  })
  const { error } = await rpc(handler, 'tools/call', { name: 'one', arguments: {} })
  expect(error?.message).toBe('The server failed. (internal)')
  await settled()
  expect(warned).toHaveBeenCalledWith(expect.stringContaining('secret'), expect.anything())
  warned.mockRestore()
})

test('drain starts nothing new, and lets active work end', async () => {
  const { model, handler, until } = manual()
  await rpc(handler, 'tools/call', { name: 'one', arguments: { message: 'Go.', session: 's' } })
  await until(() => model.pending)
  const drained = handler.drain()
  const { error } = await rpc(handler, 'tools/call', { name: 'one', arguments: { message: 'Go.' } })
  expect(error?.message).toContain('draining')
  model.pending?.answer({ text: 'Done.' })
  await drained
  expect((await awaitTask(handler, 's', ['completed'])).status).toBe('completed')
})

test('another message in a session is refused while its run is active', async () => {
  const { model, handler, until } = manual()
  const say = (message: string) =>
    rpc(handler, 'tools/call', { name: 'one', arguments: { message, session: 's' } })
  await say('Go.')
  await until(() => model.pending)
  const { result } = await say('And then?')
  expect(JSON.stringify(result)).toContain("The session 's' is still working on another message")
  model.pending?.answer({ text: 'Done.' })
  await awaitTask(handler, 's', ['completed'])
})

test('a session of one agent does not belong to another agent', async () => {
  const store = memoryStore()
  const make = () => createAgent({ model: scriptedModel(() => 'Hello.'), store })
  const handler = mcpServer({ agents: defineAgents({ one: make(), two: make() }), authorize: 'none' })
  const call = (name: string) =>
    rpc(handler, 'tools/call', { name, arguments: { message: 'Hi.', session: 's' } })
  await call('one')
  await awaitTask(handler, 's', ['completed'])
  expect(JSON.stringify((await call('two')).result)).toContain("belongs to the agent 'one'")
})

test("a result names its session, and answerUrl names the address for a person's answer", async () => {
  const ask = tool('ask', () => 'ok', { needsApproval: true })
  const model = scriptedModel(() => [{ name: 'ask', arguments: '{}' }])
  const agents = defineAgents({ one: createAgent({ model, store: memoryStore(), tools: [ask] }) })
  const answerUrl = (task: string): string => `https://app.example/tasks/${task}`
  const client = await connect(mcpServer({ agents, authorize: 'none', answerUrl }))
  const result = await client.callTool({ name: 'one', arguments: { message: 'Go.', session: 's' } })
  expect(JSON.stringify(result.content)).toContain('https://app.example/tasks/s')
  expect(result['_meta']).toMatchObject({ 'statewright/session': 's' })
})

test('a Response that authorize throws is sent unchanged, and an error is a 500', async () => {
  const ask = (authorize: McpServerOptions['authorize']) =>
    manual({ authorize }).handler(new Request('http://localhost/mcp', { method: 'POST', body: '{}' }))
  const challenge = new Response(null, { status: 401, headers: { 'www-authenticate': 'Bearer' } })
  const thrown = await ask(() => {
    throw challenge
  })
  expect(thrown.headers.get('www-authenticate')).toBe('Bearer')
  const failed = await ask(() => {
    throw new Error('No database.')
  })
  expect(failed.status).toBe(500)
  expect(await failed.text()).not.toContain('database')
})

test.each(['2025-06-18', '2025-11-25'])(
  'a client of the revision %s receives an answer',
  async (protocolVersion) => {
    const { handler } = manual()
    const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'old', version: '1' } }
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
    const response = await handler(new Request('http://localhost/mcp', { method: 'POST', headers, body }))
    expect(await response.text()).toContain(`"protocolVersion":"${protocolVersion}"`)
  },
)

test('an answer resumes a paused task', async () => {
  const { model, store, handler, until } = manual()
  await rpc(handler, 'tools/call', { name: 'one', arguments: { message: 'Go.', session: 's' } })
  await until(() => model.pending)
  store.inbox.put('s', JSON.stringify({ type: 'PAUSE' }))
  model.pending?.fail()
  const { inputRequests } = await awaitTask(handler, 's', ['input_required'])
  const [key = ''] = Object.keys(inputRequests as object)
  const inputResponses = { [key]: { action: 'accept', content: { decision: 'resume' } } }
  await rpc(handler, 'tasks/update', { taskId: 's', inputResponses })
  await until(() => model.pending)
  model.pending?.answer({ text: 'Done.' })
  await awaitTask(handler, 's', ['completed'])
})
