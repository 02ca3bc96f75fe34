import * as z from 'zod'
import {
  type Agent,
  type Agents,
  createAgent,
  defineAgents,
  defineTool,
  memoryStore,
  type SessionResult,
  type ToolExecution,
} from '../../../src/index.js'
import { createInboxPoll } from '../../../src/dbos/dbos-sessions.js'
import { type DbosLike, type DbosSessions, dbosSessions } from '../../../src/dbos/index.js'
import { type RestateLike, restateSessions, type RestateSessionsOptions } from '../../../src/restate/index.js'
import type { RestateContext } from '../../../src/restate/restate-sessions.js'
import { ManualModel, call, settled } from '../../support/manual-model.js'
import { tool } from '../../support/tools.js'

// Covers the requests to the servers. The real servers run in test/hosts.

interface Row {
  workflowID: string
  delaySeconds?: number
  priority?: number
  queued: { session: string; answers?: { type: string }[] }
}

interface Taken {
  workflowID: string
  executorId: string
  input: unknown[]
  dequeuedAt: number
}

/** A queue that the test controls. */
class Queue {
  readonly executorID = 'me'
  workflowID: string | undefined
  readonly rows: Row[] = []
  pending: Taken[] = []
  readonly resumed: string[] = []
  #work: ((queued: never) => Promise<unknown>) | undefined

  registerWorkflow(work: (queued: never) => Promise<unknown>) {
    this.#work = work
    return work
  }

  registerQueue = () => Promise.resolve({})
  runStep = <Result>(step: () => Promise<Result>) => step()
  listWorkflows = ({ status, limit, offset }: { status: string; limit: number; offset: number }) => {
    const delayed = this.rows.filter(({ delaySeconds }) => delaySeconds)
    return Promise.resolve((status === 'PENDING' ? this.pending : delayed).slice(offset, offset + limit))
  }
  resumeWorkflow = (id: string) => Promise.resolve(this.resumed.push(id))

  enqueueWorkflowWithOptions = (options: Omit<Row, 'queued'>, queued: Row['queued']) => {
    if (!this.rows.some(({ workflowID }) => workflowID === options.workflowID))
      this.rows.push({ ...options, queued })
    return Promise.resolve()
  }

  run(index: number) {
    return this.drive(this.rows[index]?.queued)
  }

  async drive(queued: unknown) {
    return this.#work?.(queued as never)
  }
}

function program() {
  const [store, model] = [memoryStore(), new ManualModel()]
  const pay = tool('pay', () => 'paid', { needsApproval: true })
  const { inputs } = pay
  const agent = createAgent({ model, store, tools: [pay] })
  return { store, model, agent, inputs, agents: defineAgents({ payer: agent }) }
}

async function untilRequest(model: ManualModel) {
  for (let i = 0; i < 1000 && !model.pending; i += 1) await settled()
  return model.pending
}

/** Waits until the session of the first drive asks for payment approval. */
async function untilItAsks(own: DbosSessions, queue: Queue, model: ManualModel) {
  await own.enqueue({ session: 's', input: 'Pay.' })
  const first = queue.run(0)
  ;(await untilRequest(model))?.answer({ toolCalls: [call('a', 'pay')], finishReason: 'tool_calls' })
  await first
}

async function pendingOf(agents: Agents) {
  const { run } = await (agents.get('payer').agent as Agent).replay('s')
  return run?.pending ?? []
}

test('an error of DBOS is reported in one sentence, as a Statewright error', async () => {
  const { agents, model } = program()
  const queue = new Queue()
  const own = dbosSessions(queue as unknown as DbosLike, agents)
  await untilItAsks(own, queue, model)
  const away = () => Promise.reject(new TypeError('connect ECONNREFUSED 127.0.0.1:5432'))
  queue.registerQueue = away
  queue.enqueueWorkflowWithOptions = away
  const refusal = {
    code: 'engine_unavailable',
    retryable: true,
    message:
      'DBOS refuses: connect ECONNREFUSED 127.0.0.1:5432. Await DBOS.launch() first, and check that DBOS can reach its Postgres.',
  }
  await expect(own.start()).rejects.toMatchObject(refusal)
  await expect(own.enqueue({ session: 't', input: 'Pay.' })).rejects.toMatchObject(refusal)
  const [first] = await pendingOf(agents)
  if (!first) throw new Error('A call waits.')
  await expect(own.answer('s', [{ type: 'approve', ...first }])).rejects.toMatchObject(refusal)
})

test('an input that is too long for an engine is refused before it is enqueued', async () => {
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
  test('drives sessions from its queue, and enqueues those that must wait', async () => {
    const { agents, model, store } = program()
    const queue = new Queue()
    const own = dbosSessions(queue as unknown as DbosLike, agents)
    await own.enqueue({ session: 's', input: 'Pay.' })
    await own.enqueue({ session: 's', input: 'Pay.' })
    expect(queue.rows).toMatchObject([{ workflowID: 'drive:s:1.0' }])
    const first = queue.run(0)
    const attempt = await untilRequest(model)
    // Another process has it.
    expect(await queue.run(0)).toEqual({ later: 500, refused: 1 })
    expect(queue.rows[1]).toMatchObject({ workflowID: 'drive:s:1.1', delaySeconds: 0.5 })
    attempt?.answer({ toolCalls: [call('a', 'pay')], finishReason: 'tool_calls' })
    const rest = (await first) as SessionResult
    expect(rest).toMatchObject({ state: 'WAITING_FOR_INPUT', pendingCount: 1 })
    const answers = [{ type: 'approve', callId: 'a' }] as const
    const waiting = [{ message: 1, status: 'waiting' }]
    expect(await own.answer('s', answers, { at: rest.head, id: 'one' })).toEqual(waiting)
    expect(await own.answer('s', answers, { at: rest.head, id: 'one' })).toEqual(waiting)
    expect(queue.rows).toHaveLength(3)
    const last = queue.run(2)
    ;(await untilRequest(model))?.answer({ text: 'Paid.' })
    expect(await last).toMatchObject({ state: 'COMPLETED', output: 'Paid.' })
    expect(store.get('s')?.holder).toBeNull()
    // Again, much later.
    expect(await own.answer('s', answers, { at: rest.head, id: 'one' })).toEqual([
      { message: 1, status: 'applied' },
    ])
    expect(queue.rows).toHaveLength(3)
  })

  test('acknowledges the answers that count, and refuses the others by name', async () => {
    const { agents, model, store } = program()
    const queue = new Queue()
    const own = dbosSessions(queue as unknown as DbosLike, agents)
    await untilItAsks(own, queue, model)
    const [{ head }, [call]] = [store.get('s') ?? { head: 0 }, await pendingOf(agents)]
    const approve = { type: 'approve', callId: 'a' } as const
    const bound = { ...approve, fingerprint: call?.fingerprint ?? '' }
    const answerOutcome = (...args: Parameters<DbosSessions['answer']>) =>
      own.answer(...args).then(
        (receipts) => receipts.map(({ status }) => status).join(),
        ({ code }: { code: string }) => code,
      )
    expect([
      await answerOutcome('nobody', [bound]),
      await answerOutcome('s', [approve]),
      await answerOutcome('s', [{ ...bound, callId: 'x' }]),
      await answerOutcome('s', [{ ...approve, fingerprint: 'other' }]),
      await answerOutcome('s', [approve], { at: head - 1 }),
      await answerOutcome('s', [bound], { at: head }),
      await answerOutcome('s', [bound], { at: head }),
      await answerOutcome('s', [{ type: 'reject', callId: 'a', fingerprint: bound.fingerprint }]),
      await answerOutcome('s', [{ type: 'cancel' }]),
      await answerOutcome('s', [bound]),
    ]).toEqual([
      'unknown_session',
      'unbound_answer',
      'unknown_call',
      'stale_answer',
      'stale_answer',
      'waiting',
      'already_answered',
      'already_answered',
      'applied',
      'run_ended',
    ])
    expect(queue.rows.map(({ workflowID }) => workflowID)).toEqual(['drive:s:1.0', 'answer:s:1.0'])
  })

  test('drives a resting session that received a message from elsewhere', async () => {
    const { agents, agent, model, store } = program()
    const queue = new Queue()
    const own = dbosSessions(queue as unknown as DbosLike, agents)
    await untilItAsks(own, queue, model)
    const found: string[] = []
    const options = {
      againMs: 1e9,
      found: (session: string) => Promise.resolve(void found.push(session)),
    }
    const look = createInboxPoll(agents, store, options)
    await look()
    expect(found).toEqual([])
    await agent.send('s', { type: 'approve', callId: 'a' })
    await look()
    await look()
    expect(found).toEqual(['s'])
    // A store that cannot list them all at once is queried page by page.
    const waiting = (ids: readonly string[]) =>
      ids.flatMap((id) => (store.inbox.read(id).length > 0 ? [{ sessionId: id, inbox: 1 }] : []))
    await createInboxPoll(
      agents,
      { ...store, inbox: { ...store.inbox, listUnread: undefined as never, findUnread: waiting } },
      options,
    )()
    expect(found).toEqual(['s', 's'])
    const driving = queue.drive({ session: 's', base: 'found', attempt: 0 })
    ;(await untilRequest(model))?.answer({ text: 'Paid.' })
    expect(await driving).toMatchObject({ state: 'COMPLETED' })
    expect(store.inbox.read('s')).toEqual([])
    await createInboxPoll(agents, store, options)()
    expect(found).toEqual(['s', 's'])
  })

  test('sends unread messages of a run again, and nothing else', async () => {
    const { agents, model, store } = program()
    const queue = new Queue()
    const own = dbosSessions(queue as unknown as DbosLike, agents, { drainMs: 0 })
    await untilItAsks(own, queue, model)
    const answers = [
      { type: 'approve', callId: 'a' },
      { type: 'steer', text: 'Be quick.' },
    ] as const
    await own.answer('s', answers, { at: store.get('s')?.head ?? 0 })
    const running = queue.run(1)
    await untilRequest(model)
    // The process ends during the model request.
    await own.drain()
    expect(await running).toMatchObject({ stopped: true })
    expect(queue.rows[2]?.queued).toMatchObject({ session: 's', attempt: 1 })
    expect(queue.rows[2]?.queued).not.toHaveProperty('answers')
  })

  test('cancels a session that is not answered in time', async () => {
    const { agents, model } = program()
    const queue = new Queue()
    const own = dbosSessions(queue as unknown as DbosLike, agents, { answerTimeoutMs: 60_000 })
    await untilItAsks(own, queue, model)
    expect(queue.rows[1]).toMatchObject({ delaySeconds: 60, queued: { answers: [{ type: 'cancel' }] } })
    expect(await queue.run(1)).toMatchObject({ state: 'CANCELLED' })
  })

  test('recovers the work of dead processes', async () => {
    const { agents, agent, model, store } = program()
    const run = agent.run('Go.', { session: 'done' })
    ;(await untilRequest(model))?.answer({ text: 'Done.' })
    await run.result
    const gone = store.acquire('orphan', { holder: 'dead', ttlMs: 60_000 })
    const { summary } = store.get('done') ?? {}
    store.append(gone, store.read('done').slice(0, 2), summary ? { ...summary, state: 'RUNNING' } : undefined)
    store.release(gone)
    const queue = new Queue()
    const dead = (workflowID: string, session: string, executorId = 'dead') => ({
      workflowID,
      executorId,
      input: [{ session }],
      dequeuedAt: 0,
    })
    queue.pending = [
      // Regardless of the number of live processes.
      ...Array.from({ length: 450 }, (_, i) => dead(`alive ${i}`, 'held')),
      dead('lost', 'new'),
      dead('mine', 'new', 'me'),
      dead('held', 'held'),
    ]
    const lease = store.acquire('held', { holder: 'somebody', ttlMs: 60_000 })
    store.append(lease, store.read('done').slice(0, 2))
    const { sweepSessions } = await import('../../../src/dbos/dbos-sessions.js')
    const found: string[] = []
    await sweepSessions(queue as unknown as DbosLike, agents, store, {
      now: Date.now() + 60_000,
      found: (session) => Promise.resolve(void found.push(session)),
    })
    expect(found).toEqual(['orphan'])
    expect(queue.resumed).toEqual(['lost'])
  })
})

describe('the queue of DBOS', () => {
  test('drives waiting work once when the wait is over, for any number of requests', async () => {
    const { agents, model, store } = program()
    const queue = new Queue()
    const own = dbosSessions(queue as unknown as DbosLike, agents)
    await own.enqueue({ session: 's', input: 'Pay.' })
    const first = queue.run(0)
    const refusal = { kind: 'rate_limit', code: 'http_429', status: 429, retryAfterMs: 50_000 } as const
    ;(await untilRequest(model))?.fail(refusal)
    expect(await first).toMatchObject({ state: 'RUNNING', stopped: true })
    expect(queue.rows).toHaveLength(2)
    const [, waiting] = queue.rows
    expect(waiting?.delaySeconds).toBeGreaterThan(40)
    // The scan for abandoned sessions leaves it alone.
    const { sweepSessions } = await import('../../../src/dbos/dbos-sessions.js')
    const found: string[] = []
    await sweepSessions(queue as unknown as DbosLike, agents, store, {
      now: Date.now() + 60_000,
      found: (session) => Promise.resolve(void found.push(session)),
    })
    expect(found).toEqual([])
    // A later arrival does not queue another job.
    await queue.drive({ session: 's', base: 'found:1', attempt: 0 })
    await queue.drive({ session: 's', base: 'found:2', attempt: 0 })
    expect(queue.rows).toHaveLength(2)
    // Too early according to another clock.
    await queue.run(1)
    expect(queue.rows).toHaveLength(3)
    // It has started, so it does not start again even if it is deleted in the meantime.
    store.delete('s')
    await expect(queue.run(2)).rejects.toMatchObject({ code: 'not_begun' })
    expect(model.attempts).toHaveLength(1)
  })

  test('sends a queued message after the previous run, but not at a rest or after a stop', async () => {
    const { agents, agent, model, store } = program()
    const queue = new Queue()
    const own = dbosSessions(queue as unknown as DbosLike, agents)
    await untilItAsks(own, queue, model)
    await agent.send('s', { type: 'message', when: 'next', input: 'And then?' })
    const found: string[] = []
    const look = (): Promise<void> =>
      createInboxPoll(agents, store, {
        againMs: 0,
        found: (session) => Promise.resolve(void found.push(session)),
      })()
    await look()
    expect(found).toEqual([])
    await agent.send('s', { type: 'cancel' })
    await look()
    expect(found).toEqual([])
    const driven = queue.drive({ session: 's', turn: 2, base: 'again', attempt: 0 })
    ;(await untilRequest(model))?.answer({ text: 'Nothing.' })
    expect(await driven).toMatchObject({ turn: 2, output: 'Nothing.' })
    await agent.send('s', { type: 'message', when: 'next', input: 'Really?' })
    await look()
    expect(found).toEqual(['s'])
    const last = queue.drive({ session: 's', base: 'found', attempt: 0 })
    ;(await untilRequest(model))?.answer({ text: 'Yes.' })
    expect(await last).toMatchObject({ turn: 3, output: 'Yes.' })
  })

  test('refuses an invalid drive, both when it is enqueued and when another program has enqueued it', async () => {
    const { agents } = program()
    const queue = new Queue()
    const own = dbosSessions(queue as unknown as DbosLike, agents)
    for (const [input, expected] of [
      [undefined, { code: 'invalid_option', subject: 'session' }],
      [{ session: '-' }, { code: 'invalid_session' }],
      [
        { session: 's', input: 5 },
        { code: 'invalid_option', subject: 'input' },
      ],
      [
        { session: 's', turn: 0 },
        { code: 'invalid_option', subject: 'turn' },
      ],
      [
        { session: 's', agent: 7 },
        { code: 'invalid_option', subject: 'agent' },
      ],
      [
        { session: 's', priority: -1 },
        { code: 'invalid_option', subject: 'priority' },
      ],
    ] as const) {
      await expect(own.enqueue(input as never)).rejects.toMatchObject({ ...expected, retryable: false })
      await expect(queue.drive(input)).rejects.toMatchObject(expected)
    }
    await expect(own.answer('s', 'yes' as never)).rejects.toMatchObject({ subject: 'answers' })
    expect(queue.rows).toEqual([])
  })

  test('an agent that is not registered yet is awaited, and an unknown agent is refused', async () => {
    const { agents, model } = program()
    const queue = new Queue()
    const own = dbosSessions(queue as unknown as DbosLike, agents)
    await expect(own.enqueue({ session: 's', input: 'Pay.', agent: 'newer' })).rejects.toMatchObject({
      code: 'unknown_agent',
    })
    // From a process of the next version.
    const queued = { session: 's', input: 'Pay.', agent: 'newer', base: 'drive:s:1', attempt: 0 }
    expect(await queue.drive(queued)).toEqual({ later: 500, refused: 1 })
    expect(queue.rows).toMatchObject([
      { workflowID: 'drive:s:1.1', queued: { agent: 'newer', input: 'Pay.' } },
    ])
    expect(model.attempts).toEqual([])
  })

  test('a process that ends passes on the work that it claimed, without a delay', async () => {
    const { agents } = program()
    const queue = new Queue()
    const own = dbosSessions(queue as unknown as DbosLike, agents)
    await own.enqueue({ session: 's', input: 'Pay.' })
    await own.drain()
    for (let i = 0; i < 8; i += 1) {
      expect(await queue.run(i)).toEqual({ later: 100, refused: 0 })
    }
    expect(queue.rows.at(-1)).toMatchObject({ workflowID: 'drive:s:1.8', queued: { input: 'Pay.' } })
  })
})

describe('data of a session that the app loads and the engine does not have', () => {
  const long = 'Pay. '.repeat(2000)

  /** An agent whose tool returns the owner of its context. */
  function ownProgram() {
    const [store, model] = [memoryStore(), new ManualModel()]
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      input: z.object({}),
      needsApproval: true,
      execute: (_input, { context }: ToolExecution<{ user: string }>) => `paid by ${context.user}`,
    })
    const agent = createAgent({ model, store, tools: [pay] })
    return { store, model, agent, agents: defineAgents({ payer: agent }) }
  }

  const userOf = (session: string) => Promise.resolve({ user: `user of ${session}` })

  test('DBOS: a long input is loaded when the run starts, and tools receive the context of their session', async () => {
    const { agents, agent, model, store } = ownProgram()
    const queue = new Queue()
    const loaded: string[] = []
    const own = dbosSessions(queue as unknown as DbosLike, agents, {
      context: userOf,
      loadInput: (session) => {
        loaded.push(session)
        return Promise.resolve(`${long}for ${session}`)
      },
    })
    await own.enqueue({ session: 's' })
    expect(queue.rows).toMatchObject([{ workflowID: 'drive:s:1.0', priority: 10 }])
    expect(JSON.stringify(queue.rows[0]?.queued).length).toBeLessThan(1000)
    const first = queue.run(0)
    const attempt = await untilRequest(model)
    expect(attempt?.request.messages.at(-1)).toMatchObject({ content: `${long}for s` })
    attempt?.answer({ toolCalls: [call('a', 'pay')], finishReason: 'tool_calls' })
    await first
    const { run } = await agent.replay('s')
    await own.answer('s', [
      { type: 'approve', ...(run?.pending?.[0] as { callId: string; fingerprint: string }) },
    ])
    const last = queue.run(1)
    const next = await untilRequest(model)
    expect(next?.request.messages.at(-1)).toMatchObject({ role: 'tool', content: 'paid by user of s' })
    next?.answer({ text: 'Paid.' })
    expect(await last).toMatchObject({ state: 'COMPLETED' })
    // The request repeats, as after a crash. A continuation does not recreate a deleted session.
    expect(await queue.run(0)).toMatchObject({ state: 'COMPLETED' })
    expect(loaded).toEqual(['s'])
    store.delete('s')
    await expect(queue.run(1)).rejects.toMatchObject({ code: 'not_begun' })
    expect(loaded).toEqual(['s'])
  })

  test('Restate: the same', async () => {
    const { agents, model } = ownProgram()
    const { run, tell, context, state } = restated(agents, {
      context: userOf,
      loadInput: (session) => `${long}for ${session}`,
    })
    const running = run(context('s'), {})
    const attempt = await untilRequest(model)
    expect(attempt?.request.messages.at(-1)).toMatchObject({ content: `${long}for s` })
    attempt?.answer({ toolCalls: [call('a', 'pay')], finishReason: 'tool_calls' })
    for (let i = 0; i < 1000 && !state.has('waiting'); i += 1) await settled()
    await tell(context('s'), { type: 'approve', callId: 'a' })
    const next = await untilRequest(model)
    expect(next?.request.messages.at(-1)).toMatchObject({ content: 'paid by user of s' })
    next?.answer({ text: 'Paid.' })
    expect(await running).toMatchObject({ output: 'Paid.' })
  })

  test('an input of the request takes precedence over a loaded one', async () => {
    const { agents, model } = ownProgram()
    const queue = new Queue()
    const own = dbosSessions(queue as unknown as DbosLike, agents, {
      context: userOf,
      loadInput: () => 'Loaded.',
    })
    await own.enqueue({ session: 's', input: 'Said.' })
    const first = queue.run(0)
    const attempt = await untilRequest(model)
    expect(attempt?.request.messages.at(-1)).toMatchObject({ content: 'Said.' })
    attempt?.answer({ text: 'Done.' })
    await first
  })

  test.each(['context', 'loadInput'] as const)('%s that throws is called again later', async (name) => {
    const { agents, model } = ownProgram()
    const queue = new Queue()
    let isAway = true
    const options = { context: userOf, loadInput: () => 'Loaded.' }
    const ask = (session: string) => {
      if (isAway) throw new Error('no connection to users')
      return options[name](session) as never
    }
    const own = dbosSessions(queue as unknown as DbosLike, agents, { ...options, [name]: ask })
    await own.enqueue({ session: 's' })
    expect(await queue.run(0)).toEqual({ later: 500, refused: 1 })
    expect(queue.rows[1]).toMatchObject({ workflowID: 'drive:s:1.1', delaySeconds: 0.5 })
    const { run, context } = restated(agents, { ...options, [name]: ask })
    await expect(run(context('t'), {})).rejects.toMatchObject({
      code: 'host_function_failed',
      subject: name,
      retryable: true,
      message: `${name} threw: no connection to users. The session will be retried later.`,
    })
    isAway = false
    const again = queue.run(1)
    ;(await untilRequest(model))?.answer({ text: 'Done.' })
    expect(await again).toMatchObject({ output: 'Done.' })
  })

  test.each(['context', 'loadInput'])('%s that is not a function is refused', (name) => {
    const { agents } = program()
    const refusal = expect.objectContaining({ code: 'invalid_config', subject: name })
    expect(() => dbosSessions(new Queue() as unknown as DbosLike, agents, { [name]: {} })).toThrow(refusal)
    expect(() => restated(agents, { [name]: {} })).toThrow(refusal)
  })
})

/** The object's handlers, and contexts for them whose steps run at once. */
function restated(agents: Agents, options: RestateSessionsOptions<never> | RestateSessionsOptions = {}) {
  type Handler = (context: RestateContext, input?: object) => Promise<unknown>
  const handlers: Record<string, Handler> = {}
  const state = new Map<string, unknown>()
  const waits: number[] = []
  const sent: object[] = []
  const patience: number[] = []
  let settle: { answer: (value: unknown) => void; late: () => void } | undefined
  const restate = {
    TerminalError: class extends Error {},
    handlers: {
      object: { exclusive: (_: object, work: Handler) => work, shared: (_: object, work: Handler) => work },
    },
    object: (definition: { handlers: Record<string, Handler> }) =>
      Object.assign(handlers, definition.handlers),
  }
  restateSessions(restate as unknown as RestateLike, agents, options as RestateSessionsOptions)
  const awakeable = () => {
    const promise = new Promise((resolve, reject) => {
      const late = () => reject(Object.assign(new Error('late'), { name: 'TimeoutError' }))
      settle = { answer: resolve, late }
    })
    const orTimeout = (ms: number) => {
      patience.push(ms)
      return promise
    }
    return { id: 'awake', promise: Object.assign(promise, { orTimeout }) }
  }
  const context = (key: string) =>
    ({
      key,
      run: (_: string, step: () => Promise<unknown>) => step(),
      sleep: (ms: number) => Promise.resolve(void waits.push(ms)),
      awakeable,
      resolveAwakeable: () => settle?.answer(null),
      genericSend: (call: object) => sent.push(call),
      get: (name: string) => Promise.resolve(state.get(name) ?? null),
      set: (name: string, value: unknown) => state.set(name, value),
      clear: (name: string) => state.delete(name),
    }) as unknown as RestateContext
  const [run, tell] = [handlers['run'] as Handler, handlers['send'] as Handler]
  return {
    run,
    tell,
    context,
    state,
    waits,
    sent,
    patience,
    late: () => settle?.late(),
    wake: () => settle?.answer(null),
  }
}

describe('Restate', () => {
  test('drives in steps, and waits on its own promises', async () => {
    const { agents, model, store } = program()
    const { run, tell, context, state } = restated(agents)
    const running = run(context('s'), { input: 'Pay.', agent: 'payer' })
    ;(await untilRequest(model))?.answer({ toolCalls: [call('a', 'pay')], finishReason: 'tool_calls' })
    for (let i = 0; i < 1000 && !state.has('waiting'); i += 1) await settled()
    await settled()
    expect(store.get('s')?.holder).toBeNull()
    expect(await tell(context('s'), { type: 'approve', callId: 'a' })).toMatchObject({ status: 'waiting' })
    ;(await untilRequest(model))?.answer({ text: 'Paid.' })
    expect(await running).toMatchObject({ state: 'COMPLETED', output: 'Paid.' })
    expect(state.has('waiting')).toBe(false)

    const hanging = run(context('t'), { input: 'Pay.' })
    await untilRequest(model)
    expect(await tell(context('t'), { type: 'cancel' })).toMatchObject({ status: 'sent' })
    expect(await hanging).toMatchObject({ state: 'CANCELLED' })
    await expect(run(context('-'), { input: 'Pay.' })).rejects.toThrow('invalid_session')
  })

  test('sends queued messages through the active run, or through a new run if there is none', async () => {
    const { agents, model } = program()
    const { run, tell, context, sent } = restated(agents)
    const running = run(context('s'), { input: 'Hello.' })
    await untilRequest(model)
    const next = (input: string) => tell(context('s'), { type: 'message', when: 'next', input })
    expect(await next('Two?')).toMatchObject({ status: 'sent' })
    ;(await untilRequest(model))?.answer({ text: 'One.' })
    await settled()
    ;(await untilRequest(model))?.answer({ text: 'Two.' })
    expect(await running).toMatchObject({ turn: 2, output: 'Two.' })
    expect(sent).toEqual([])
    expect(await next('Three?')).toMatchObject({ status: 'waiting' })
    expect(sent).toMatchObject([{ service: 'session', method: 'run', key: 's' }])
    const again = run(context('s'))
    ;(await untilRequest(model))?.answer({ text: 'Three.' })
    expect(await again).toMatchObject({ turn: 3, output: 'Three.' })
  })

  test('a turn that is invalid is refused permanently', async () => {
    const { run, context } = restated(program().agents)
    for (const [turn, words] of [
      ['Pay.', 'is not an object'],
      [[], 'is not an object'],
      [{ inputs: 'Pay.' }, "contains 'inputs'"],
      [{ input: 5 }, 'invalid_input'],
      [{ input: 'Pay.', turn: 0 }, 'invalid_option'],
      [{ input: 'Pay.', agent: 'nobody' }, 'unknown_agent'],
      [undefined, 'not_begun'],
    ] as const)
      await expect(run(context('s'), turn as never)).rejects.toThrow(words)
  })
})

describe('a person that Restate waits for', () => {
  async function waiting(options: RestateSessionsOptions) {
    const parts = program()
    const host = restated(parts.agents, options)
    const running = host.run(host.context('s'), { input: 'Pay.' })
    ;(await untilRequest(parts.model))?.answer({ toolCalls: [call('a', 'pay')], finishReason: 'tool_calls' })
    const until = async (holds: () => boolean) => {
      for (let i = 0; i < 1000 && !holds(); i += 1) await settled()
    }
    await until(() => host.patience.length === 1)
    return { ...parts, ...host, running, until }
  }

  test('has a time limit that other messages do not extend', async () => {
    const { patience, wake, until, late, running, tell, context } = await waiting({ answerTimeoutMs: 60_000 })
    wake()
    await until(() => patience.length === 2)
    expect(patience[0]).toBeLessThanOrEqual(60_000)
    expect(patience[1]).toBeLessThanOrEqual(patience[0] ?? 0)
    late()
    expect(await running).toMatchObject({ state: 'CANCELLED' })
    await expect(tell(context('s'), { type: 'approve', callId: 'a' })).rejects.toThrow('CANCELLED')
  })

  test('can answer at the very end of the time limit, and the next question has its own limit', async () => {
    const { agent, model, late, running, patience, until, tell, context } = await waiting({
      answerTimeoutMs: 60_000,
    })
    // Its message is stored, but no process has woken for it yet.
    await agent.send('s', { type: 'approve', callId: 'a' })
    late()
    const again = [call('b', 'pay', { again: true })]
    ;(await untilRequest(model))?.answer({ toolCalls: again, finishReason: 'tool_calls' })
    await until(() => patience.length === 2)
    await tell(context('s'), { type: 'approve', callId: 'b' })
    ;(await untilRequest(model))?.answer({ text: 'Paid.' })
    expect(await running).toMatchObject({ state: 'COMPLETED', output: 'Paid.' })
  })

  test.each([
    [{ type: 'approve', callId: 'a' }, 'COMPLETED'],
    [{ type: 'reject', callId: 'a' }, 'COMPLETED'],
    [{ type: 'steer', text: 'Hurry.' }, 'COMPLETED'],
    [{ type: 'cancel' }, 'CANCELLED'],
  ])('a message of a process that dies before Restate receives it counts once: %j', async (message, end) => {
    const { model, running, tell, context } = await waiting({ answerTimeoutMs: 60_000 })
    // The step runs again, because its first run left no record.
    const dying = {
      ...context('s'),
      run: async (name: string, step: () => Promise<unknown>) => {
        if (name === 'send') await step()
        return step()
      },
    } as unknown as RestateContext
    expect(await tell(dying, message)).toMatchObject({ message: 1 })
    if (message.type === 'steer')
      expect(await tell(context('s'), { type: 'approve', callId: 'a' })).toMatchObject({ message: 2 })
    if (end === 'COMPLETED') (await untilRequest(model))?.answer({ text: 'Done.' })
    expect(await running).toMatchObject({ state: end })
  })

  test('a steering message that another process received first is applied once', async () => {
    const { agent, model, running, tell, context, store } = await waiting({ answerTimeoutMs: 60_000 })
    const dying = {
      ...context('s'),
      run: async (name: string, step: () => Promise<unknown>) => {
        if (name !== 'send') return step()
        await step()
        // The session has since continued elsewhere, and the message has left its inbox.
        await agent.send('s', { type: 'approve', callId: 'a' })
        const resumed = await agent.resume('s')
        ;(await untilRequest(model))?.answer({ toolCalls: [call('b', 'pay')], finishReason: 'tool_calls' })
        await resumed.result
        expect(store.inbox.read('s')).toEqual([])
        return step()
      },
    } as unknown as RestateContext
    expect(await tell(dying, { type: 'steer', text: 'Hurry.' })).toMatchObject({ status: 'applied' })
    expect(store.inbox.read('s')).toEqual([])
    await tell(context('s'), { type: 'approve', callId: 'b' })
    ;(await untilRequest(model))?.answer({ text: 'Done.' })
    expect(await running).toMatchObject({ state: 'COMPLETED' })
    const { messages } = await agent.replay('s')
    expect(messages.filter(({ content }) => content === 'Hurry.')).toHaveLength(1)
  })

  test('can send two answers at once, and each counts', async () => {
    const { model, running, tell, context, inputs } = await waiting({ answerTimeoutMs: 60_000 })
    const say = (editedInput: object) =>
      tell(context('s'), { type: 'approve', callId: 'a', editedInput }).then(
        () => 'told',
        (error: Error) => error.message,
      )
    expect(await Promise.all([say({ amount: 1 }), say({ amount: 1000 })])).toEqual([
      'told',
      expect.stringContaining('already_answered'),
    ])
    ;(await untilRequest(model))?.answer({ text: 'Done.' })
    expect(await running).toMatchObject({ state: 'COMPLETED' })
    expect(inputs).toEqual([{ amount: 1 }])
  })
})
