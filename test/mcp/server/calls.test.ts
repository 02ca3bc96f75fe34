import { createAgent, defineAgents, defineTool, memoryStore, type SessionStore } from '../../../src/index.js'
import { z } from 'zod'
import { mcpServer, type McpHandler } from '../../../src/mcp/server/index.js'
import { tool } from '../../support/tools.js'
import { awaitTask, connect, lastResult, rpc, scriptedModel } from './support.js'

const authorize = (request: Request): string | null => request.headers.get('x-user')

/** A server with one agent, which pays after an approval. */
function payer(store: SessionStore = memoryStore()): {
  handler: McpHandler
  paid: string[]
  store: SessionStore
} {
  const paid: string[] = []
  const pay = defineTool({
    name: 'pay',
    description: 'Pays an invoice.',
    input: z.object({ invoice: z.string() }),
    needsApproval: true,
    execute: ({ invoice }) => {
      paid.push(invoice)
      return `paid ${invoice}`
    },
  })
  const model = scriptedModel((request) => {
    const result = lastResult(request)
    return result === undefined ? [{ name: 'pay', arguments: '{"invoice":"17"}' }] : `Done: ${result}`
  })
  const agents = defineAgents({ payer: createAgent({ model, store, tools: [pay] }) })
  return { handler: mcpServer({ agents, authorize, pollMs: 10 }), paid, store }
}

function greeter(): McpHandler {
  const model = scriptedModel(({ messages }) => `Hello, ${messages.at(-1)?.content as string}!`)
  return mcpServer({
    agents: defineAgents({ greeter: createAgent({ model, store: memoryStore() }) }),
    authorize,
  })
}

const text = (result: unknown): string =>
  (result as { content: { text: string }[] }).content.map((part) => part.text).join('\n')

describe.each(['auto', 'legacy'] as const)('a client of the era %s', (era) => {
  test('lists the agents as tools, and receives an answer', async () => {
    const client = await connect(greeter(), { era })
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['greeter'])
    const result = await client.callTool({ name: 'greeter', arguments: { message: 'Bea' } })
    expect(text(result)).toBe('Hello, Bea!')
    expect(result.isError).toBe(false)
  })

  test('reads why its arguments are invalid, and starts nothing', async () => {
    const client = await connect(greeter(), { era })
    const wrong = await client.callTool({ name: 'greeter', arguments: { text: 'Bea' } })
    expect(wrong.isError).toBe(true)
    expect(text(wrong)).toBe("'greeter' takes message and session, not 'text'.")
  })

  test('reads the pending call and where a person answers it, if it cannot be asked', async () => {
    const { handler, paid } = payer()
    const client = await connect(handler, { era })
    const result = await client.callTool({
      name: 'payer',
      arguments: { message: 'Pay 17.', session: 'june' },
    })
    expect(text(result)).toMatch(
      /waiting for a person[^]*pay\(\{"invoice":"17"\}\)[^]*A person, not you, must answer it/,
    )
    // Its reader is the model that made the call.
    expect(text(result)).not.toMatch(/approve|call_1_0/)
    expect(paid).toEqual([])
  })
})

test('a client of 2026 is asked, and its answer is applied', async () => {
  const { handler, paid } = payer()
  const forms: unknown[] = []
  const client = await connect(handler, {
    answer: (params) => {
      forms.push(params['message'])
      return { action: 'accept', content: { confirm: true } }
    },
  })
  const result = await client.callTool({ name: 'payer', arguments: { message: 'Pay 17.' } })
  expect(text(result)).toBe('Done: paid 17')
  expect(forms).toEqual(['The agent wants to call pay({"invoice":"17"}).'])
  expect(paid).toEqual(['17'])
})

test.each([
  ['declines', { action: 'decline' }, /Done: .*rejected/i],
  ['rejects', { action: 'accept', content: { confirm: false, why: 'Not today.' } }, /Not today\./],
  ['cancels the question', { action: 'cancel' }, /waiting for a person/],
])('a client of 2026 that %s pays nothing', async (_, answer, expected) => {
  const { handler, paid } = payer()
  const client = await connect(handler, { answer: () => answer })
  const result = await client.callTool({ name: 'payer', arguments: { message: 'Pay 17.' } })
  expect(text(result)).toMatch(expected)
  expect(paid).toEqual([])
})

describe('a client with tasks', () => {
  test('receives a task, is asked, answers, and reads the result', async () => {
    const { handler, paid } = payer()
    const created = await rpc(handler, 'tools/call', { name: 'payer', arguments: { message: 'Pay 17.' } })
    expect(created.result).toMatchObject({ resultType: 'task', ttlMs: null, pollIntervalMs: 10 })
    const { taskId } = created.result ?? { taskId: '' }
    const waiting = await awaitTask(handler, taskId, ['input_required'])
    const [key = ''] = Object.keys(waiting['inputRequests'] as object)
    const update = {
      taskId,
      inputResponses: { [key]: { action: 'accept', content: { confirm: true } } },
    }
    expect((await rpc(handler, 'tasks/update', update)).error).toBeUndefined()
    const done = await awaitTask(handler, taskId, ['completed'])
    expect(text(done['result'])).toBe('Done: paid 17')
    // A repeated answer and a different answer arrive too late and have no effect.
    expect((await rpc(handler, 'tasks/update', update)).error).toBeUndefined()
    expect(paid).toEqual(['17'])
  })

  test('answers two questions in sequence while the task waits', async () => {
    const done: string[] = []
    const tools = ['one', 'two'].map((name) =>
      tool(name, () => void done.push(name), { needsApproval: true }),
    )
    const model = scriptedModel((request) =>
      lastResult(request) === undefined ? tools.map(({ name }) => ({ name, arguments: '{}' })) : 'Done.',
    )
    const agents = defineAgents({ asker: createAgent({ model, store: memoryStore(), tools }) })
    const handler = mcpServer({ agents, authorize })
    await rpc(handler, 'tools/call', { name: 'asker', arguments: { message: 'Go.', session: 's' } })
    const { inputRequests } = await awaitTask(handler, 's', ['input_required'])
    const [first = '', second = ''] = Object.keys(inputRequests as object)
    const answer = (key: string) =>
      rpc(handler, 'tasks/update', {
        taskId: 's',
        inputResponses: { [key]: { action: 'accept', content: { confirm: true } } },
      })
    await answer(first)
    const { result } = await rpc(handler, 'tasks/get', { taskId: 's' })
    expect(result?.status).toBe('input_required')
    expect(Object.keys(result?.['inputRequests'] as object)).toEqual([second])
    await answer(second)
    await awaitTask(handler, 's', ['completed'])
    expect(done.sort()).toEqual(['one', 'two'])
  })

  test('can cancel its task repeatedly', async () => {
    const { handler } = payer()
    const { result } = await rpc(handler, 'tools/call', { name: 'payer', arguments: { message: 'Pay 17.' } })
    const taskId = result?.taskId ?? ''
    await awaitTask(handler, taskId, ['input_required'])
    expect((await rpc(handler, 'tasks/cancel', { taskId })).result).toMatchObject({ resultType: 'complete' })
    await awaitTask(handler, taskId, ['cancelled'])
    expect((await rpc(handler, 'tasks/cancel', { taskId })).error).toBeUndefined()
  })

  test('does not find the task of another principal', async () => {
    const { handler } = payer()
    const { result } = await rpc(handler, 'tools/call', { name: 'payer', arguments: { message: 'Pay 17.' } })
    const taskId = result?.taskId ?? ''
    await awaitTask(handler, taskId, ['input_required'])
    for (const method of ['tasks/get', 'tasks/cancel']) {
      const { error } = await rpc(handler, method, { taskId }, { user: 'ben' })
      expect(error).toMatchObject({ code: -32_602, message: `There is no task '${taskId}'.` })
    }
  })

  test('must declare the extension to use its methods', async () => {
    const { handler } = payer()
    const { error } = await rpc(handler, 'tasks/get', { taskId: 'x' }, { capabilities: {} })
    expect(error?.code).toBe(-32_021)
  })

  test('reads why an answer is invalid, and the question stays open', async () => {
    const { handler, paid } = payer()
    const { result } = await rpc(handler, 'tools/call', { name: 'payer', arguments: { message: 'Pay 17.' } })
    const taskId = result?.taskId ?? ''
    const waiting = await awaitTask(handler, taskId, ['input_required'])
    const [key = ''] = Object.keys(waiting['inputRequests'] as object)
    const inputResponses = { [key]: { action: 'accept', content: { confirm: 'yes' } } }
    const { error } = await rpc(handler, 'tasks/update', { taskId, inputResponses })
    expect(error?.message).toContain('confirm must be true to approve the call')
    await awaitTask(handler, taskId, ['input_required'])
    expect(paid).toEqual([])
  })
})

describe('a repeated call', () => {
  const key = { meta: { 'statewright/key': 'order-17' } }
  const call = { name: 'payer', arguments: { message: 'Pay 17.' } }

  test('with the same key is one task, in any process', async () => {
    const store = memoryStore()
    const [one, two] = [payer(store), payer(store)]
    const replies = await Promise.all(
      [one, two, one].map(({ handler }) => rpc(handler, 'tools/call', call, key)),
    )
    const ids = new Set(replies.map(({ result }) => result?.taskId))
    expect(ids.size).toBe(1)
    expect(store.list()).toHaveLength(1)
  })

  test('is refused if the key belongs to another message', async () => {
    const { handler } = payer()
    await rpc(handler, 'tools/call', call, key)
    const other = { ...call, arguments: { message: 'Pay 18.' } }
    const { result } = await rpc(handler, 'tools/call', other, key)
    expect(result?.['isError']).toBe(true)
    expect(text(result)).toContain('This key was used for another message')
  })

  test('with the same session is one task, and another message is the next turn', async () => {
    const handler = greeter()
    const say = (message: string) =>
      rpc(handler, 'tools/call', { name: 'greeter', arguments: { message, session: 'june' } })
    const first = (await say('Bea')).result?.taskId ?? ''
    await awaitTask(handler, first, ['completed'])
    expect((await say('Bea')).result?.taskId).toBe('june')
    const second = (await say('Cal')).result?.taskId ?? ''
    expect(second).toBe('june~2')
    expect(text((await awaitTask(handler, second, ['completed']))['result'])).toBe('Hello, Cal!')
    // The first task is unchanged.
    expect(text((await awaitTask(handler, first, ['completed']))['result'])).toBe('Hello, Bea!')
  })
})
