import { jest } from '@jest/globals'
import { SimulatedClock } from 'xstate'
import {
  type AgentEvent,
  type AgentOptions,
  createSession,
  memoryStore,
  type SessionStore,
  type StatewrightError,
  UsageError,
} from '../../src/index.js'
import { distant } from '../support/distant.js'
import { again, latch, stage, tick, until } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'
import { sampledKinds } from '../support/extent.js'

const stores: [string, () => { store?: SessionStore }][] = [
  ['no store', () => ({})],
  ['a store that answers at once', () => ({ store: memoryStore() })],
  ['a store that answers by promises', () => ({ store: distant(memoryStore()) })],
]

/** Collects the platform warnings emitted during `work`. (Unhandled rejections fail the test anyway.) */
async function warned(work: () => Promise<void>): Promise<[message: string, how: object][]> {
  const emitWarning = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  try {
    await work()
    // The owner of a rejected run has one event loop turn to await it.
    for (const _ of [1, 2]) await new Promise((resolve) => setTimeout(resolve))
    return emitWarning.mock.calls as unknown as [string, object][]
  } finally {
    emitWarning.mockRestore()
  }
}

describe.each(sampledKinds(stores))('run.started, with %s', (_, createOptions) => {
  /** A session with another active run. */
  const busy = async () => {
    const theatre = await stage([{ hang: true }, text('Done.')], createOptions())
    const first = theatre.run('One.', { session: 's' })
    await first.run.started
    await theatre.arrival()
    return { theatre, first }
  }

  it('settles when the run holds its session, before any question', async () => {
    const theatre = await stage([text('Done.')], createOptions())
    const play = theatre.run()
    await play.run.started
    expect(theatre.requests).toHaveLength(0)
    await play.end(1)
    await play.run.started
  })

  it('rejects with the refusal, like the result, the events and an iteration', async () => {
    const { theatre, first } = await busy()
    const unheard = await warned(async () => {
      const run = theatre.agent.run('Two.', { session: 's' })
      const events: AgentEvent[] = []
      const states: string[] = []
      const failed = new Promise<unknown>((resolve) => {
        run.events$.subscribe({ next: (event) => events.push(event), error: resolve })
      })
      run.state$.subscribe({ next: (state) => states.push(state), error: () => undefined })
      const refusal: StatewrightError = await run.started.then(
        () => Promise.reject(new Error('It has started.')),
        (error: StatewrightError) => error,
      )
      expect(refusal.code).toBe('session_busy')
      await expect(run.result).rejects.toBe(refusal)
      await expect(run[Symbol.asyncIterator]().next()).rejects.toBe(refusal)
      expect(await failed).toBe(refusal)
      expect(events).toMatchObject([
        { type: 'warning', code: 'session_busy', message: refusal.message, seq: 1 },
      ])
      expect(run.state).toBe('ERROR')
      const late: AgentEvent[] = []
      run.events$.subscribe((event) => late.push(event))
      expect(late).toEqual(events)
      // It ignores every message.
      run.cancel()
      expect(() => run.pause()).toThrow(UsageError)
      expect(() => run.approve('call_1')).toThrow(UsageError)
    })
    expect(unheard).toEqual([])
    first.run.cancel()
    await first.end(1)
    expect((await theatre.run('Two.', { session: 's' }).end(2)).output).toBe('Done.')
  })

  it('causes a warning of the platform for a refused run that nothing awaits', async () => {
    const { theatre, first } = await busy()
    const warnings = await warned(async () => {
      const run = theatre.agent.run('Two.', { session: 's' })
      await until(() => run.state === 'ERROR')
    })
    expect(warnings).toEqual([
      [
        expect.stringMatching(/nothing awaits its result: .*wait (?:until it|for its final state)/i),
        { type: 'StatewrightWarning', code: 'session_busy' },
      ],
    ])
    first.run.cancel()
    await first.end(1)
  })

  it('rejects for impossible limits, and run() throws for invalid ones', async () => {
    const theatre = await stage([text('Done.')], { ...createOptions(), limits: { costLimit: 1 } })
    await expect(theatre.agent.run('Go.').started).rejects.toMatchObject({ code: 'unknown_price' })
    expect(() => theatre.agent.run('Go.', { limits: { maxSteps: -1 } })).toThrow(/limits.maxSteps/)
  })
})

test('a resumed run has started; a refused one leaves the session to its owner', async () => {
  const options = { store: memoryStore(), tools: [tool('pay', () => 'paid', { needsApproval: true })] }
  const theatre = await stage([call('pay'), text('Done.')], options)
  await theatre.run('Go.', { session: 's' }).rest()
  await expect(theatre.agent.run('Two.', { session: 's' }).started).rejects.toMatchObject({
    code: 'unfinished_run',
  })
  const run = await again(theatre, options).resume('s')
  await run.started
  run.approve('call_1_1')
  expect((await run.result).output).toBe('Done.')
})

test('a session of the app belongs to one run, regardless of refused runs', async () => {
  const theatre = await stage([{ hang: true }])
  const session = createSession()
  const first = theatre.run('One.', { session })
  await theatre.arrival()
  for (const _ of [1, 2]) {
    await expect(theatre.agent.run('Two.', { session }).started).rejects.toMatchObject({
      code: 'session_busy',
    })
  }
  first.run.cancel()
  await first.end(1)
})

describe('a store whose promise never settles', () => {
  const never = () => new Promise<never>(() => undefined)

  const hung = async (methods: Partial<SessionStore>, options: Partial<AgentOptions> = {}) => {
    const clock = new SimulatedClock()
    const inner = memoryStore({ now: () => clock.now() })
    const gate = latch()
    const store: SessionStore = { ...distant(inner), ...methods }
    const tools = [tool('pay', () => 'paid', { needsApproval: true })]
    const theatre = await stage([call('pay'), text('Done.')], { store, tools, clock, ...options })
    return { clock, inner, store, gate, theatre, run: theatre.agent.run('Go.', { session: 's' }) }
  }

  it.each(['acquire', 'read'] as const)('refuses the run during %s', async (method) => {
    const arrival = latch()
    const { clock, run } = await hung({
      [method]: () => {
        arrival.open()
        return never()
      },
    })
    const refused = run.started.catch((error: unknown) => error)
    await arrival.opened
    clock.increment(59_999)
    await tick()
    expect(run.state).toBe('RUNNING')
    clock.increment(1)
    expect(await refused).toMatchObject({ code: 'store_unavailable' })
    expect(String(await refused)).toContain(`${method}(): no answer within 60000 ms (storeTimeoutMs)`)
  })

  it('ends the run during an append, even a cancelled one', async () => {
    for (const isCancelled of [false, true]) {
      const arrival = latch()
      const append = () => {
        arrival.open()
        return never()
      }
      const { clock, run } = await hung({ append }, { storeTimeoutMs: 5_000 })
      await arrival.opened
      if (isCancelled) run.cancel()
      clock.increment(5_000)
      expect(await run.result).toMatchObject({
        state: isCancelled ? 'CANCELLED' : 'ERROR',
        reason: isCancelled ? 'cancelled' : 'store_error',
        error: { code: 'store_unavailable' },
      })
    }
  })

  it('releases a waiting run, when its session is requested again', async () => {
    for (const isCancelled of [false, true]) {
      const { clock, run, store, inner } = await hung({})
      expect((await run.result).state).toBe('WAITING_FOR_INPUT')
      store.acquire = never
      if (isCancelled) run.cancel()
      else run.approve('call_1_1')
      await tick()
      clock.increment(60_000)
      // Only the lease owner can write a cancel record.
      if (isCancelled) await tick()
      clock.increment(60_000)
      expect((await run.result).state).toBe(isCancelled ? 'CANCELLED' : 'ERROR')
      expect(inner.list()).toMatchObject([{ holder: null }])
    }
  })

  it('releases a session that it returned too late', async () => {
    const late = latch()
    const inner = memoryStore()
    const acquire: SessionStore['acquire'] = (...args) => late.opened.then(() => inner.acquire(...args))
    const { clock, run } = await hung({ acquire, release: (lease) => inner.release(lease) })
    const refused = run.started.catch((error: unknown) => error)
    await tick()
    clock.increment(60_000)
    expect(await refused).toMatchObject({ code: 'store_unavailable' })
    late.open()
    await tick()
    expect(inner.acquire('s', { holder: 'another', ttlMs: 1_000 })).toMatchObject({ holder: 'another' })
  })

  it('can be slow if storeTimeoutMs is off', async () => {
    const { clock, run } = await hung({ acquire: never }, { storeTimeoutMs: null })
    await tick()
    clock.increment(86_400_000)
    await tick()
    expect(run.state).toBe('RUNNING')
  })
})
