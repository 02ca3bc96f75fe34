import { createAgent, defineAgents, memoryStore } from '../../../src/index.js'
import { type DbosLike, dbosSessions } from '../../../src/dbos/index.js'
import { type RestateLike, restateSessions } from '../../../src/restate/index.js'
import type { RestateContext } from '../../../src/restate/sdk.js'
import { ManualModel, call, settled } from '../../support/manual-model.js'
import { tool } from '../../support/tools.js'

// The real servers are in test/hosts: here is what they are asked.

interface Row {
  workflowID: string
  delaySeconds?: number
  queued: { session: string; answers?: { type: string }[] }
}

/** A queue that does what the test says. */
class Queue {
  readonly executorID = 'me'
  workflowID: string | undefined
  readonly rows: Row[] = []
  pending: { workflowID: string; executorId: string; input: unknown[]; dequeuedAt: number }[] = []
  readonly resumed: string[] = []
  #work: ((queued: never) => Promise<unknown>) | undefined

  registerWorkflow(work: (queued: never) => Promise<unknown>) {
    this.#work = work
    return work
  }

  registerQueue = () => Promise.resolve({})
  runStep = <Result>(step: () => Promise<Result>) => step()
  listWorkflows = () => Promise.resolve(this.pending)
  resumeWorkflow = (id: string) => Promise.resolve(this.resumed.push(id))

  enqueueWorkflowWithOptions = (options: Omit<Row, 'queued'>, queued: Row['queued']) => {
    if (!this.rows.some(({ workflowID }) => workflowID === options.workflowID))
      this.rows.push({ ...options, queued })
    return Promise.resolve()
  }

  run(index: number) {
    return this.#work?.(this.rows[index]?.queued as never)
  }
}

function program() {
  const [store, model] = [memoryStore(), new ManualModel()]
  const pay = tool('pay', () => 'paid', { needsApproval: true })
  const agent = createAgent({ model, store, tools: [pay] })
  return { store, model, agent, agents: defineAgents({ payer: agent }) }
}

async function asked(model: ManualModel) {
  // oxlint-disable-next-line no-await-in-loop -- some of the code is loaded when it is first needed
  for (let i = 0; i < 1000 && !model.pending; i += 1) await settled()
  return model.pending
}

test('what is too long for an engine is refused before it is there', async () => {
  const { agents } = program()
  const queue = new Queue()
  const own = dbosSessions(queue as unknown as DbosLike, agents)
  await expect(own.enqueue({ session: 's', input: 'x'.repeat(2000) })).rejects.toMatchObject({
    code: 'payload_too_large',
    retryable: false,
  })
  expect(queue.rows).toEqual([])
  const { run, context } = restated(agents)
  await expect(run(context('s'), { input: 'x'.repeat(2000) })).rejects.toThrow('payload_too_large')
})

describe('DBOS', () => {
  test('drives from its queue, and queues what has to wait', async () => {
    const { agents, model, store } = program()
    const queue = new Queue()
    const own = dbosSessions(queue as unknown as DbosLike, agents)
    await own.enqueue({ session: 's', input: 'Pay.' })
    await own.enqueue({ session: 's', input: 'Pay.' })
    expect(queue.rows).toMatchObject([{ workflowID: 'drive:s:1.0' }])
    const first = queue.run(0)
    const attempt = await asked(model)
    // Another process has it.
    expect(await queue.run(0)).toEqual({ later: 500 })
    expect(queue.rows[1]).toMatchObject({ workflowID: 'drive:s:1.1', delaySeconds: 0.5 })
    attempt?.answer({ toolCalls: [call('a', 'pay')], finishReason: 'tool_calls' })
    expect(await first).toMatchObject({ state: 'WAITING_FOR_INPUT', pendingCount: 1 })
    await own.answer('s', [{ type: 'approve', callId: 'a' }], { id: 'one' })
    await own.answer('s', [{ type: 'approve', callId: 'a' }], { id: 'one' })
    expect(queue.rows).toHaveLength(3)
    const last = queue.run(2)
    ;(await asked(model))?.answer({ text: 'Paid.' })
    expect(await last).toMatchObject({ state: 'COMPLETED', output: 'Paid.' })
    expect(store.get('s')?.holder).toBeNull()
  })

  test('cancels a session that nobody answers in time', async () => {
    const { agents, model } = program()
    const queue = new Queue()
    const own = dbosSessions(queue as unknown as DbosLike, agents, { patienceMs: 60_000 })
    await own.enqueue({ session: 's', input: 'Pay.' })
    const first = queue.run(0)
    ;(await asked(model))?.answer({ toolCalls: [call('a', 'pay')], finishReason: 'tool_calls' })
    await first
    expect(queue.rows[1]).toMatchObject({ delaySeconds: 60, queued: { answers: [{ type: 'cancel' }] } })
    expect(await queue.run(1)).toMatchObject({ state: 'CANCELLED' })
  })

  test('finds what dead processes have left', async () => {
    const { agents, agent, model, store } = program()
    const run = agent.run('Go.', { session: 'orphan' })
    ;(await asked(model))?.answer({ text: 'Done.' })
    await run.result
    const orphan = await agent.fork('orphan', 2)
    const queue = new Queue()
    const dead = (workflowID: string, session: string, executorId = 'dead') => ({
      workflowID,
      executorId,
      input: [{ session }],
      dequeuedAt: 0,
    })
    queue.pending = [dead('lost', 'new'), dead('mine', 'new', 'me'), dead('held', 'held')]
    const lease = store.acquire('held', { holder: 'somebody', ttlMs: 60_000 })
    store.append(lease, store.read('orphan').slice(0, 2))
    const { sweep } = await import('../../../src/dbos/sweep.js')
    const found: string[] = []
    await sweep(queue as unknown as DbosLike, agents, store, {
      now: Date.now() + 60_000,
      workflowName: 'w',
      queueName: 'q',
      found: (session) => Promise.resolve(void found.push(session)),
    })
    expect(found).toEqual([orphan])
    expect(queue.resumed).toEqual(['lost'])
  })
})

/** The handlers of the object, and contexts for them whose steps run at once. */
function restated(agents: ReturnType<typeof defineAgents>) {
  type Handler = (context: RestateContext, given?: object) => Promise<unknown>
  const handlers: Record<string, Handler> = {}
  const state = new Map<string, unknown>()
  const waits: number[] = []
  let answer: ((value: unknown) => void) | undefined
  const restate = {
    TerminalError: class extends Error {},
    handlers: {
      object: { exclusive: (_: object, work: Handler) => work, shared: (_: object, work: Handler) => work },
    },
    object: (definition: { handlers: Record<string, Handler> }) =>
      Object.assign(handlers, definition.handlers),
  }
  restateSessions(restate as unknown as RestateLike, agents)
  const context = (key: string) =>
    ({
      key,
      run: (_: string, step: () => Promise<unknown>) => step(),
      sleep: (ms: number) => Promise.resolve(void waits.push(ms)),
      awakeable: () => ({ id: 'awake', promise: new Promise((resolve) => (answer = resolve)) }),
      resolveAwakeable: () => answer?.(null),
      get: (name: string) => Promise.resolve(state.get(name) ?? null),
      set: (name: string, value: unknown) => state.set(name, value),
      clear: (name: string) => state.delete(name),
    }) as unknown as RestateContext
  return { run: handlers['run'] as Handler, tell: handlers['tell'] as Handler, context, state, waits }
}

describe('Restate', () => {
  test('drives in steps, and waits on its own promises', async () => {
    const { agents, model, store } = program()
    const { run, tell, context, state } = restated(agents)
    const running = run(context('s'), { input: 'Pay.', agent: 'payer' })
    ;(await asked(model))?.answer({ toolCalls: [call('a', 'pay')], finishReason: 'tool_calls' })
    // oxlint-disable-next-line no-await-in-loop -- until it waits
    for (let i = 0; i < 1000 && !state.has('waiting'); i += 1) await settled()
    await settled()
    expect(store.get('s')?.holder).toBeNull()
    expect(await tell(context('s'), { type: 'approve', callId: 'a' })).toMatchObject({ status: 'waiting' })
    ;(await asked(model))?.answer({ text: 'Paid.' })
    expect(await running).toMatchObject({ state: 'COMPLETED', output: 'Paid.' })
    expect(state.has('waiting')).toBe(false)

    const hanging = run(context('t'), { input: 'Pay.' })
    await asked(model)
    expect(await tell(context('t'), { type: 'cancel' })).toMatchObject({ status: 'sent' })
    expect(await hanging).toMatchObject({ state: 'CANCELLED' })
    await expect(run(context('-'), { input: 'Pay.' })).rejects.toThrow('invalid_session')
  })
})
