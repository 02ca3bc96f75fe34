import { jest } from '@jest/globals'
import pg from 'pg'
import { RateLimiterPostgres } from 'rate-limiter-flexible'
import { createBudget, createWaker, flexibleLimiter } from '../../src/fleet/index.js'
import {
  type Agent,
  createAgent,
  type Clock,
  defineAgents,
  runSession,
  type SessionStore,
} from '../../src/index.js'
import { postgresStore } from '../../src/stores/postgres/index.js'
import { findUnlawful } from '../support/find-unlawful.js'
import { call as callOf, ManualModel, plainAnswer } from '../support/manual-model.js'
import { until } from '../support/play.js'
import { tool } from '../support/tools.js'
import { refusal } from '../stores/support.js'

interface Server {
  url: string
  start(): Promise<void>
  kill(): Promise<void>
  stop(): Promise<void>
}

describe('runs whose sessions are in Postgres', () => {
  let server: Server
  const stores: SessionStore[] = []
  const open = (now?: () => number): SessionStore => {
    const store = postgresStore({ connectionString: server.url, ...(now && { now }) })
    stores.push(store)
    return store
  }
  beforeAll(async () => {
    // A separate server, because the test kills it.
    const { ownPostgres } = (await import('../../scripts/own-postgres.mjs' as string)) as {
      ownPostgres: () => Promise<Server>
    }
    server = await ownPostgres()
  }, 60_000)
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close?.()
  })
  afterAll(async () => server.stop())

  /** A run whose tool `look` executes this function once. */
  const begin = (store: SessionStore, session: string, meanwhile: () => Promise<void>) => {
    const model = new ManualModel()
    let worked = 0
    const look = tool(
      'look',
      async () => {
        worked += 1
        if (worked === 1) await meanwhile()
        return 'seen'
      },
      { readOnly: true },
    )
    const agent = createAgent({ model, store, tools: [look] })
    const run = agent.run('Go.', { session })
    return { agent, model, run, look, worked: () => worked }
  }
  const call = { toolCalls: [callOf('a', 'look')] }

  test('continue unaffected if the server is killed and restarted between two writes', async () => {
    const { agent, model, run, worked } = begin(open(), 'restarted', async () => {
      await server.kill()
      await server.start()
    })
    await until(() => model.pending !== null)
    model.pending?.answer(call)
    // A run that failed asks the model nothing more.
    await Promise.race([waitFor(() => model.attempts.length === 2), run.result])
    model.pending?.answer({ text: 'Done.' })
    const result = await run.result
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(worked()).toBe(1)
    const { run: stored, messages } = await agent.replay('restarted')
    expect(stored).toEqual(result)
    expect(messages).toEqual(result.messages)
  }, 60_000)

  test('end with an error if the server is unavailable, and continue from the log when it is back', async () => {
    const { model, run, look } = begin(open(), 'away', () => server.kill())
    await until(() => model.pending !== null)
    model.pending?.answer(call)
    expect(await run.result).toMatchObject({
      state: 'ERROR',
      reason: 'store_error',
      error: { code: 'store_unavailable' },
    })
    await server.start()
    const store = open()
    const next = createAgent({ model, store, tools: [look] })
    // It could not release the session. After the server returns, it does so long before the lease expires.
    const beganAt = Date.now()
    while ((await store.get('away'))?.holder !== null) {
      if (Date.now() - beganAt > 15_000) throw new Error('The session is still in use.')
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    const resumed = await next.resume('away')
    await waitFor(() => model.attempts.length === 2)
    model.pending?.answer({ text: 'Done.' })
    const result = await resumed.result
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(result.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
  }, 60_000)

  test('make three requests for a drive of one answer: acquire the session, start, end and release', async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 2 })
    const store = postgresStore({ pool })
    await store.list({ limit: 1 })
    const asking = jest.spyOn(pool, 'query')
    const model = new ManualModel()
    const agent = createAgent({ model, store })
    const driving = runSession(agent, { session: 'counted', input: 'Go.' })
    await waitFor(() => model.pending !== null)
    expect(asking).toHaveBeenCalledTimes(2)
    expect((await store.get('counted'))?.holder).not.toBeNull()
    asking.mockClear()
    model.pending?.answer({ text: 'Done.' })
    expect(await driving).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(asking).toHaveBeenCalledTimes(1)
    const other = open()
    expect(await other.get('counted')).toMatchObject({ holder: null, summary: { state: 'COMPLETED' } })
    // The list sorts it by its last write.
    expect((await other.list({ state: 'COMPLETED' }))[0]?.id).toBe('counted')
    await pool.end()
  })

  test('wait for a budget of the database: until a run of another process releases, or the next window starts', async () => {
    const hourMs = 3_600_000
    const time = { now: Date.parse('2026-05-04T06:20:00Z') }
    const pollMs = 20
    let polls = 0
    const clock: Clock = {
      ...skewed(0),
      now: () => time.now,
      setTimeout: (fire, ms) => {
        if (ms === pollMs) polls += 1
        return setTimeout(fire, ms)
      },
    }
    const begin = () => {
      const store = open(() => time.now)
      const model = new ManualModel()
      const budget = createBudget({
        id: 'tenant',
        tokens: 1500,
        per: 'hour',
        onEmpty: 'wait',
        store,
        clock,
      })
      const options = { model, sampling: { maxTokens: 1000 }, budgets: [budget], store, clock }
      const agent = createAgent(options)
      const agents = defineAgents({ clerk: agent })
      const waker = createWaker(agents, { clock, pollMs })
      return { store, model, budget, agent, waker }
    }
    const [one, other] = [begin(), begin()]
    const rest = { state: 'PAUSED', reason: 'shared_budget', wakeAt: Date.parse('2026-05-04T07:00:00Z') }
    const working = one.agent.run('Go.', { session: 'works' })
    await waitFor(() => one.model.pending !== null)
    // The first run's reservation leaves too little for the second, until it releases the unused part.
    const served = other.agent.run('Go.', { session: 'served' })
    await waitFor(() => served.state === 'RUNNING')
    expect(await other.budget.status()).toMatchObject({ live: 1 })
    expect(other.model.attempts).toEqual([])
    one.model.pending?.answer({ text: 'Done.' })
    expect(await working.result).toMatchObject({ state: 'COMPLETED' })
    await waitFor(() => other.model.pending !== null)
    const usage = { inputTokens: 10, outputTokens: 900, totalTokens: 910 }
    other.model.pending?.answer({
      text: 'Done.',
      usage: { ...usage, cachedInputTokens: 0, reasoningTokens: 0 },
    })
    expect(await served.result).toMatchObject({ state: 'COMPLETED' })
    // Spent money does not return in this window.
    expect(await other.agent.run('Go.', { session: 'woken' }).result).toMatchObject(rest)
    one.waker.start()
    other.waker.start()
    await waitFor(() => polls > 4)
    expect(await one.store.get('woken')).toMatchObject({ summary: rest })
    time.now += hourMs
    const requestCount = () => one.model.attempts.length + other.model.attempts.length
    const before = requestCount()
    await waitFor(() => one.model.pending !== null || other.model.pending !== null)
    for (const { model } of [one, other]) model.pending?.answer({ text: 'Done.' })
    // They stop after their active work is idle.
    await Promise.all([one.waker.stop(), other.waker.stop()])
    expect(await one.store.get('woken')).toMatchObject({ summary: { state: 'COMPLETED' } })
    expect(requestCount() - before).toBe(1)
    expect(await one.store.timers?.list({ prefix: 'wake:', limit: 10 })).toEqual([])
    expect(await findUnlawful(one.store)).toEqual([])
  })

  test('share a rate limit across processes with rate-limiter-flexible', async () => {
    const starts: number[] = []
    const model = {
      provider: 'fake',
      model: 'm',
      request: async () => {
        starts.push(Date.now())
        return { ...plainAnswer, text: 'Done.' }
      },
    }
    const pools = [
      new pg.Pool({ connectionString: server.url }),
      new pg.Pool({ connectionString: server.url }),
    ]
    const agents: Agent[] = []
    for (const pool of pools) {
      const limits = { storeClient: pool, tableName: 'limits', points: 4, duration: 1 }
      const store = await new Promise<RateLimiterPostgres>((resolve, reject) => {
        const limiter = new RateLimiterPostgres(limits, (error) => (error ? reject(error) : resolve(limiter)))
      })
      agents.push(createAgent({ model: flexibleLimiter('shared', store).limit(model) }))
    }
    const runs = Array.from({ length: 12 }, async (_, i) => agents[i % 2]?.run('Go.').result)
    const results = await Promise.all(runs)
    await Promise.all(pools.map((pool) => pool.end()))
    expect(results.map((result) => result?.error ?? result?.state)).toEqual(runs.map(() => 'COMPLETED'))
    expect(starts).toHaveLength(12)
    // Three windows of one second. The first may start with the first request.
    expect(Math.max(...starts) - Math.min(...starts)).toBeGreaterThan(1500)
  })

  test('keep a session to one process, and receive messages of the others, for any clocks', async () => {
    const model = new ManualModel()
    const hourMs = 3_600_000
    const ahead = createAgent({ model, store: open(), clock: skewed(2 * hourMs) })
    const behind = createAgent({ model, store: open(), clock: skewed(-2 * hourMs) })
    for (const [id, holder, other] of [
      ['ahead', ahead, behind],
      ['behind', behind, ahead],
    ] as const) {
      const run = holder.run('Go.', { session: id })
      await until(() => model.pending !== null)
      await refusal('session_busy', () => other.resume(id))
      expect(await other.send(id, { type: 'cancel' })).toEqual({ message: 1, status: 'sent' })
      expect(await run.result).toMatchObject({ state: 'CANCELLED' })
      expect((await other.replay(id)).run).toMatchObject({ state: 'CANCELLED' })
    }
    const [first, second] = await open().list()
    // Sorted by the server's time.
    expect([first?.id, second?.id]).toEqual(['behind', 'ahead'])
    expect(Math.abs((first?.updatedAt ?? 0) - Date.now())).toBeLessThan(hourMs)
  })
})

function skewed(byMs: number): Clock {
  return {
    now: () => Date.now() + byMs,
    setTimeout: (fn, ms) => setTimeout(fn, ms),
    clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
  }
}

/** A server needs longer than the timeout of `until`. */
async function waitFor(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 20))
}
