import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import { createBudget } from '../../src/fleet/index.js'
import { type Clock, createAgent, runSession, type SessionAnswer, sleepUntil } from '../../src/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import { Hosts } from '../fleet/host-clocks.js'
import { call, ManualModel, settled } from '../support/manual-model.js'
import { tool } from '../support/tools.js'
import { checkSessionLog } from '../../src/testing/index.js'
import { sampled } from '../support/extent.js'

const [hour, start] = [3_600_000, 1_790_000_000_000]

async function untilRequest(model: ManualModel, requests: number) {
  for (let i = 0; i < 1000 && model.attempts.length < requests; i += 1) await settled()
  return model.attempts.length
}

/** Waits until a record contains this text. */
async function written(store: SyncSessionStore, words: string) {
  const isThere = () => store.read('s').some(({ data }) => data.includes(words))
  for (let i = 0; i < 100_000 && !isThere(); i += 1) await settled()
}

/** Waits until a host has resumed the run and is waiting. */
async function takenUp(store: SyncSessionStore) {
  await written(store, '"RESUMED"')
  for (let i = 0; i < 20; i += 1) await settled()
}

/** The timestamps of the session's records, in order. */
const readTimes = (store: SyncSessionStore): number[] => store.read('s').map(({ at }) => at)

const outage = { kind: 'rate_limit', code: 'http_429', status: 429, retryAfterMs: 8000 } as const

const skews = fc.array(fc.integer({ min: -12 * hour, max: 12 * hour }), { minLength: 3, maxLength: 3 })

it('hosts with any clocks wait for a retry for the full delay, and keep the time limit of the run', async () => {
  await fc.assert(
    fc.asyncProperty(skews, fc.integer({ min: 0, max: 7000 }), async (ahead, killedAfter) => {
      const hosts = new Hosts(start)
      const store = memoryStore({ now: () => hosts.now })
      const process = (i: number) => {
        const model = new ManualModel()
        const clock = hosts.start(store, () => ahead[i] ?? 0).clock
        return { model, agent: createAgent({ model, store, clock, limits: { timeoutMs: 60_000 } }) }
      }
      const first = process(0)
      const stop = new AbortController()
      const driving = runSession(first.agent, { session: 's', input: 'Go.', signal: stop.signal })
      await untilRequest(first.model, 1)
      first.model.pending?.fail(outage)
      await hosts.pass(killedAfter)
      stop.abort()
      expect(await driving).toMatchObject({ stopped: true, state: 'RUNNING' })
      // The next host waits only for the remaining time.
      const second = process(1)
      const [rest, went] = [runSession(second.agent, { session: 's' }), hosts.now]
      await takenUp(store)
      await hosts.pass(8000 - killedAfter - 1)
      expect(second.model.attempts).toHaveLength(0)
      await hosts.pass(2)
      expect(await untilRequest(second.model, 1)).toBe(1)
      expect(hosts.now - went).toBeLessThanOrEqual(8001)
      // It ends the wait by its time limit, regardless of clock offset.
      await hosts.pass(60_000 - (hosts.now - start) - 1)
      expect(store.get('s')?.summary?.state).toBe('RUNNING')
      await hosts.pass(2)
      expect(await rest).toMatchObject({ state: 'TIMED_OUT' })
    }),
    { numRuns: sampled(12) },
  )
}, 60_000)

it('an abandoned wait is reported with its duration, and no host is occupied for an hour', async () => {
  await fc.assert(
    fc.asyncProperty(skews, async (ahead) => {
      const hosts = new Hosts(start)
      const store = memoryStore({ now: () => hosts.now })
      const models = ahead.map(() => new ManualModel())
      const driven = (i: number) => {
        const clock = hosts.start(store, () => ahead[i] ?? 0).clock
        const model = models[i] ?? new ManualModel()
        return runSession(createAgent({ model, store, clock }), {
          session: 's',
          input: 'Go.',
          maxRetryWaitMs: 1000,
        })
      }
      const begun = driven(0)
      await untilRequest(models[0] ?? new ManualModel(), 1)
      models[0]?.pending?.fail(outage)
      expect(await begun).toMatchObject({ stopped: true, waitMs: 8000 })
      await hosts.pass(3000)
      const next = await driven(1)
      expect(next.waitMs).toBe(5000)
      await hosts.pass(5000)
      const last = driven(2)
      await takenUp(store)
      await hosts.pass(0)
      expect(await untilRequest(models[2] ?? new ManualModel(), 1)).toBe(1)
      models[2]?.pending?.answer({ text: 'Done.' })
      expect(await last).toMatchObject({ state: 'COMPLETED' })
    }),
    { numRuns: sampled(12) },
  )
}, 60_000)

it('a clock that is set during a run changes none of its waits', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: -12 * hour, max: 12 * hour }), async (jump) => {
      const hosts = new Hosts(start)
      const store = memoryStore({ now: () => hosts.now })
      let skew = 0
      const model = new ManualModel()
      const agent = createAgent({
        model,
        store,
        clock: hosts.start(store, () => skew).clock,
        tools: [tool('look')],
        limits: { timeoutMs: 60_000 },
        streamIdleMs: 5000,
        contentIdleMs: 0,
        retry: { maxAttempts: 1 },
      })
      const run = agent.run('Go.', { session: 's' })
      await untilRequest(model, 1)
      skew = jump
      model.pending?.answer({ toolCalls: [call('a', 'look')], finishReason: 'tool_calls' })
      expect(await untilRequest(model, 2)).toBe(2)
      // The provider stops sending while the clock is set.
      model.pending?.delta('Wo')
      skew = -jump
      await hosts.pass(4998)
      expect(run.state).toBe('RUNNING')
      await hosts.pass(3)
      expect(await run.result).toMatchObject({ state: 'ERROR', error: { code: 'idle_timeout' } })
    }),
    { numRuns: sampled(12) },
  )
}, 60_000)

it('the time of a run never decreases, on any host that receives the answer', async () => {
  await fc.assert(
    fc.asyncProperty(skews, async (ahead) => {
      const hosts = new Hosts(start)
      const store = memoryStore({ now: () => hosts.now })
      const runOn = (i: number, options: { input: string } | { answers: SessionAnswer[]; at: number }) => {
        const model = new ManualModel()
        const clock = hosts.start(store, () => ahead[i] ?? 0).clock
        const agent = createAgent({
          model,
          store,
          clock,
          tools: [tool('pay', () => 'ok', { needsApproval: true })],
        })
        return { model, rest: runSession(agent, { session: 's', ...options }) }
      }
      const first = runOn(0, { input: 'Pay.' })
      await untilRequest(first.model, 1)
      first.model.pending?.answer({ toolCalls: [call('a', 'pay')], finishReason: 'tool_calls' })
      const { head } = await first.rest
      await hosts.pass(2000)
      const second = runOn(1, { answers: [{ type: 'approve', callId: 'a' }], at: head })
      expect(await untilRequest(second.model, 1)).toBe(1)
      second.model.pending?.answer({ text: 'Paid.' })
      expect(await second.rest).toMatchObject({ state: 'COMPLETED' })
      expect(checkSessionLog(store.read('s'))).toBeNull()
    }),
    { numRuns: sampled(12) },
  )
}, 60_000)

it('the next run of a session never starts before the last record, on any host', async () => {
  await fc.assert(
    fc.asyncProperty(skews, async (ahead) => {
      const hosts = new Hosts(start)
      const store = memoryStore({ now: () => hosts.now })
      for (const skew of ahead) {
        const model = new ManualModel()
        const agent = createAgent({ model, store, clock: hosts.start(store, () => skew).clock })
        const run = agent.run('Go.', { session: 's' })
        await untilRequest(model, 1)
        model.pending?.answer({ text: 'Done.' })
        expect(await run.result).toMatchObject({ state: 'COMPLETED' })
      }
      const times = readTimes(store)
      expect(times).toEqual([...times].sort((a, b) => a - b))
      expect(checkSessionLog(store.read('s'))).toBeNull()
    }),
    { numRuns: sampled(12) },
  )
})

it('a clock that advances while a run starts dates no event before its start', async () => {
  let now = start
  const timers = new SimulatedClock()
  const clock: Clock = {
    // A wall clock that ticks in whole milliseconds, always just before its next tick. The monotonic clock
    // has not advanced.
    now: () => (now += 1),
    elapsed: () => 0.2,
    setTimeout: (fire, ms) => timers.setTimeout(fire, ms),
    clearTimeout: (id) => timers.clearTimeout(id as number),
  }
  const store = memoryStore()
  const model = new ManualModel()
  const run = createAgent({ model, store, clock }).run('Go.', { session: 's' })
  await untilRequest(model, 1)
  model.pending?.answer({ text: 'Done.' })
  expect(await run.result).toMatchObject({ state: 'COMPLETED' })
  expect(checkSessionLog(store.read('s'))).toBeNull()
})

it('a failed request is never repeated early, even if timers fire early', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 450 }), async (early) => {
      const timers = new SimulatedClock()
      const clock: Clock = {
        now: () => start + timers.now(),
        setTimeout: (fire, ms) => timers.setTimeout(fire, Math.max(1, ms - early)),
        clearTimeout: (id) => timers.clearTimeout(id as number),
      }
      const store = memoryStore()
      const model = new ManualModel()
      const run = createAgent({ model, store, clock }).run('Go.', { session: 's' })
      const retry = new Promise<number>((resolve) => {
        run.events$.subscribe((event) => {
          if (event.type === 'retry') resolve(event.delayMs)
        })
      })
      await untilRequest(model, 1)
      model.pending?.fail()
      const delayMs = await retry
      await settled()
      for (const ms of [delayMs - early, early - 1]) {
        timers.increment(ms)
        await settled()
        expect(model.attempts).toHaveLength(1)
      }
      timers.increment(1)
      expect(await untilRequest(model, 2)).toBe(2)
      model.pending?.answer({ text: 'Done.' })
      expect(await run.result).toMatchObject({ state: 'COMPLETED' })
      expect(checkSessionLog(store.read('s'))).toBeNull()
    }),
    { numRuns: sampled(12) },
  )
})

it('a stopped clock whose timers fire immediately is not awaited forever', async () => {
  const clock: Clock = {
    now: () => start,
    setTimeout: (fire) => setImmediate(fire),
    clearTimeout: (id) => clearImmediate(id as NodeJS.Immediate),
  }
  const model = new ManualModel()
  const run = createAgent({ model, clock }).run('Go.')
  await untilRequest(model, 1)
  model.pending?.fail()
  expect(await untilRequest(model, 2)).toBe(2)
  model.pending?.answer({ text: 'Done.' })
  expect(await run.result).toMatchObject({ state: 'COMPLETED' })
})

describe('a clock with fractions of milliseconds', () => {
  const parts = fc.double({ min: 0, max: 0.99, noNaN: true })

  /** A host under such clocks fails, sleeps, and loses the session to another process. */
  const open = ([ofHost, ofStore]: [number, number], kind: 'memory' | 'file' = 'memory') => {
    const timers = new SimulatedClock()
    timers.set(start)
    const clock: Clock = {
      now: () => timers.now() + ofHost,
      setTimeout: (fire, ms) => timers.setTimeout(fire, ms),
      clearTimeout: (id) => timers.clearTimeout(id as number),
    }
    const now = () => timers.now() + ofStore
    const store =
      kind === 'memory'
        ? memoryStore({ now })
        : fileStore({ dir: mkdtempSync(join(tmpdir(), 'parts-')), now })
    const begin = () => {
      const model = new ManualModel()
      const nap = tool('nap', () => sleepUntil(start + hour))
      return { model, agent: createAgent({ model, store, clock, tools: [nap] }) }
    }
    return { timers, clock, store, begin }
  }

  it.each(['memory', 'file'] as const)('has whole milliseconds in every record and row: %s', async (kind) => {
    await fc.assert(
      fc.asyncProperty(fc.tuple(parts, parts), async (offsets) => {
        const { timers, store, begin } = open(offsets, kind)
        const [first, second] = [begin(), begin()]
        const stop = new AbortController()
        const driving = runSession(first.agent, { session: 's', input: 'Go.', signal: stop.signal })
        await untilRequest(first.model, 1)
        first.model.pending?.fail(outage)
        await written(store, outage.code)
        stop.abort()
        expect(await driving).toMatchObject({ stopped: true, state: 'RUNNING' })
        const rest = runSession(second.agent, { session: 's' })
        await takenUp(store)
        timers.increment(8000)
        expect(await untilRequest(second.model, 1)).toBe(1)
        second.model.pending?.answer({ toolCalls: [call('a', 'nap')], finishReason: 'tool_calls' })
        expect(await rest).toMatchObject({ state: 'PAUSED', wakeAt: start + hour, wakeMs: hour - 8000 })
        timers.increment(hour)
        const last = runSession(begin().agent, { session: 's', answers: [{ type: 'cancel' }] })
        expect(await last).toMatchObject({ state: 'CANCELLED' })
        const row = store.get('s')
        const times = [...readTimes(store), row?.createdAt, row?.updatedAt]
        expect(times.filter((at) => !Number.isSafeInteger(at))).toEqual([])
        expect(checkSessionLog(store.read('s'))).toBeNull()
        store.close?.()
      }),
      { numRuns: sampled(4) },
    )
  })

  it('has whole milliseconds in the report of a budget', async () => {
    const { clock, store, begin } = open([0.75, 0.25])
    const budget = createBudget({ id: 'b', tokens: 20_000, per: 'hour', onEmpty: 'wait', store, clock })
    await (await budget.reserve({ tokens: 20_000 })).settle({ tokens: 20_000 })
    const { resetsAt } = await budget.status()
    const rest = await begin().agent.run('Go.', { session: 's', budgets: [budget] }).result
    expect(rest).toMatchObject({ state: 'PAUSED', reason: 'shared_budget', wakeAt: resetsAt })
    expect(Number.isSafeInteger(resetsAt)).toBe(true)
    expect(checkSessionLog(store.read('s'))).toBeNull()
  })
})
