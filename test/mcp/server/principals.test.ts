import {
  type Agent,
  createAgent,
  defineAgents,
  memoryStore,
  runSession,
  type SessionStore,
} from '../../../src/index.js'
import { mcpServer, type McpHandler } from '../../../src/mcp/server/index.js'
import { ManualModel, settled } from '../../support/manual-model.js'
import { tool } from '../../support/tools.js'
import { awaitTask, lastResult, rpc, scriptedModel } from './support.js'

/**
 * Same rights as on pages. The owner may continue sessions of a dead process. The reader may view them. The
 * stranger has other sessions.
 */
const grants: Record<string, object> = {
  owner: { prefix: 'ann', context: 'owner', mayContinue: true },
  reader: { prefix: 'ann', context: 'reader' },
  stranger: { prefix: 'bob', context: 'stranger' },
}
const authorize = (request: Request) =>
  grants[request.headers.get('x-user') ?? ''] as { prefix: string } | undefined

/** A process whose agent asks for an approval, then pays with its context. */
function start(store: SessionStore) {
  const paidBy: unknown[] = []
  const pay = tool('pay', (_, { context }) => void paidBy.push(context), { needsApproval: true })
  const model = scriptedModel((request) =>
    lastResult(request) === undefined ? [{ name: 'pay', arguments: '{}' }] : 'Done.',
  )
  const agents = defineAgents({ payer: createAgent({ model, store, tools: [pay] }) })
  return { handler: mcpServer({ agents, authorize: authorize as never, pollMs: 10 }), paidBy, agents }
}

const call = { name: 'payer', arguments: { message: 'Pay.', session: 's' } }

/** A task that waits for an approval, and the key of its question. */
async function waiting(handler: McpHandler): Promise<string> {
  await rpc(handler, 'tools/call', call, { user: 'owner' })
  const { inputRequests } = await awaitTask(handler, 's', ['input_required'], { user: 'owner' })
  return Object.keys(inputRequests as object)[0] ?? ''
}

const approval = (key: string) => ({
  taskId: 's',
  inputResponses: { [key]: { action: 'accept', content: { confirm: true } } },
})

test('a request without a user is refused before anything is read', async () => {
  const { handler } = start(memoryStore())
  const response = await handler(new Request('http://localhost/mcp', { method: 'POST', body: 'what' }))
  expect(response.status).toBe(401)
})

test.each(['tasks/get', 'tasks/cancel', 'tasks/update'])('a stranger finds no task by %s', async (method) => {
  const { handler, paidBy } = start(memoryStore())
  const key = await waiting(handler)
  const { error } = await rpc(handler, method, approval(key), { user: 'stranger' })
  expect(error).toMatchObject({ code: -32_602, message: "There is no task 's'." })
  await awaitTask(handler, 's', ['input_required'], { user: 'owner' })
  expect(paidBy).toEqual([])
})

test('a stranger who uses the same session id gets a separate session', async () => {
  const store = memoryStore()
  const { handler } = start(store)
  await waiting(handler)
  await rpc(handler, 'tools/call', call, { user: 'stranger' })
  await awaitTask(handler, 's', ['input_required'], { user: 'stranger' })
  expect(
    store
      .list()
      .map(({ id }) => id)
      .sort(),
  ).toEqual(['ann:s', 'bob:s'])
})

test('a stranger who repeats the requestState of another principal finds no task', async () => {
  const { handler, paidBy } = start(memoryStore())
  const plain = { elicitation: { form: {} } }
  const { result } = await rpc(handler, 'tools/call', call, { user: 'owner', capabilities: plain })
  const { inputRequests, requestState } = result as Record<string, unknown>
  const [key = ''] = Object.keys(inputRequests as object)
  const { inputResponses } = approval(key)
  const stolen = await rpc(
    handler,
    'tools/call',
    { ...call, requestState, inputResponses },
    { user: 'stranger', capabilities: plain },
  )
  expect(stolen.error?.message).toBe("There is no task 's'.")
  expect(paidBy).toEqual([])
  const again = { ...call, requestState, inputResponses }
  const [first, second] = [
    await rpc(handler, 'tools/call', again, { user: 'owner', capabilities: plain }),
    // A replay has no effect.
    await rpc(handler, 'tools/call', again, { user: 'owner', capabilities: plain }),
  ]
  expect(first.result?.['content']).toEqual([{ type: 'text', text: 'Done.' }])
  expect(second.result?.['content']).toEqual(first.result?.['content'])
  expect(paidBy).toEqual(['owner'])
})

test.each(['', 'x', '{}', '{"task":7}', '{"task":"../ann:s"}', '{"task":"s~0"}', '{"task":"s~1~2"}'])(
  'a forged requestState %j finds no task',
  async (requestState) => {
    const { handler } = start(memoryStore())
    await waiting(handler)
    const { error } = await rpc(handler, 'tools/call', { ...call, requestState }, { user: 'owner' })
    expect(error?.code).toBe(-32_602)
  },
)

test('an answer continues the run with the permissions of its sender', async () => {
  const { handler, paidBy } = start(memoryStore())
  const key = await waiting(handler)
  await rpc(handler, 'tasks/update', approval(key), { user: 'reader' })
  await awaitTask(handler, 's', ['completed'], { user: 'owner' })
  expect(paidBy).toEqual(['reader'])
})

test('an answered call without a process is continued for its owner, but not for a reader with its state', async () => {
  const { handler, paidBy, agents } = start(memoryStore())
  const plain = { elicitation: { form: {} } }
  const { result } = await rpc(handler, 'tools/call', call, { user: 'owner', capabilities: plain })
  const { requestState } = result as Record<string, unknown>
  const agent = agents.get('payer').agent as Agent
  const [pending] = (await agent.replay('ann:s')).run?.pending ?? []
  if (!pending) throw new Error('Nothing waits.')
  await agent.send('ann:s', { type: 'approve', ...pending })
  const again = { ...call, requestState }
  const read = await rpc(handler, 'tools/call', again, { user: 'reader', capabilities: plain })
  expect(JSON.stringify(read.result)).toContain('The agent is still working')
  expect(paidBy).toEqual([])
  const done = await rpc(handler, 'tools/call', again, { user: 'owner', capabilities: plain })
  expect(done.result?.['content']).toEqual([{ type: 'text', text: 'Done.' }])
  expect(paidBy).toEqual(['owner'])
})

describe('a task whose process has died', () => {
  /** A session whose process died during work, and another process. */
  async function left() {
    const store = memoryStore()
    const model = new ManualModel()
    const gone = defineAgents({ payer: createAgent({ model, store }) })
    const stop = new AbortController()
    const work = runSession(gone, { session: 'ann:s', input: 'Pay.', signal: stop.signal })
    while (model.pending === null) await settled()
    stop.abort()
    await work
    return start(store)
  }

  test('is continued by the process that its owner asks', async () => {
    const { handler } = await left()
    const task = await awaitTask(handler, 's', ['input_required', 'completed'], { user: 'owner' })
    expect(task.status).toBe('input_required')
  })

  test('is only shown to a reader, until the call is sent again', async () => {
    const { handler } = await left()
    const { result } = await rpc(handler, 'tasks/get', { taskId: 's' }, { user: 'reader' })
    expect(result?.status).toBe('working')
    for (let i = 0; i < 20; i += 1) await settled()
    const still = await rpc(handler, 'tasks/get', { taskId: 's' }, { user: 'reader' })
    expect(still.result?.status).toBe('working')
    await rpc(handler, 'tools/call', call, { user: 'reader' })
    await awaitTask(handler, 's', ['input_required'], { user: 'reader' })
  })
})

test('the session of a sub-agent is not a task', async () => {
  const store = memoryStore()
  const child = createAgent({ model: scriptedModel(() => 'Found.'), store })
  const search = child.asTool({ name: 'search', description: 'Searches.', maxSteps: 3 })
  const model = scriptedModel((request) =>
    lastResult(request) === undefined ? [{ name: 'search', arguments: '{"task":"all"}' }] : 'Done.',
  )
  const agents = defineAgents({ payer: createAgent({ model, store, tools: [search] }) })
  await runSession(agents, { session: 's', input: 'Go.' })
  const [childId = ''] = store.list({ parent: 's' }).map(({ id }) => id.replace(/^s:/, ''))
  expect(childId).not.toBe('')
  // This person's prefix equals a session id, so it also covers the ids of its sub-agents.
  const handler = mcpServer({ agents, authorize: () => 's' })
  const { error } = await rpc(handler, 'tasks/get', { taskId: childId })
  expect(error?.code).toBe(-32_602)
})
