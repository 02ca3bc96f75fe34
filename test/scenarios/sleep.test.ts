import { SimulatedClock } from 'xstate'
import { createAgent, memoryStore, runSession, sleepUntil, type SessionStore } from '../../src/index.js'
import { checkSessionLog } from '../../src/testing/index.js'
import { distant } from '../support/distant.js'
import { call as callOf, ManualModel } from '../support/manual-model.js'
import { until } from '../support/play.js'
import { tool } from '../support/tools.js'

const start = Date.parse('2026-05-04T06:00:00Z')
const hour = 3_600_000
const at = (hours: number) => start + hours * hour
type Result = Awaited<ReturnType<ReturnType<typeof createAgent>['run']>['result']>
const wakeAtOf = (result: Result) => (result.state === 'PAUSED' ? result.wakeAt : undefined)

/** The test sets how long each call of `nap` sleeps. */
function setUp(
  { store, naps = [() => sleepUntil(at(1))] as (() => unknown)[], timeoutMs = 0 } = {} as {
    store?: SessionStore
    naps?: (() => unknown)[]
    timeoutMs?: number
  },
) {
  const clock = new SimulatedClock()
  clock.set(start)
  const model = new ManualModel()
  const nap = tool('nap', () => naps.shift()?.())
  const look = tool('look', () => 'seen')
  const options = { tools: [nap, look], clock, limits: { timeoutMs } }
  const agent = createAgent({ model, ...options, ...(store && { store }) })
  const asks = async (...names: string[]) => {
    await until(() => model.pending !== null)
    const toolCalls = names.map((name, i) => callOf(`${model.attempts.length}${i}`, name))
    model.pending?.answer({ toolCalls, finishReason: 'tool_calls' })
  }
  const says = async (text: string) => {
    await until(() => model.pending !== null)
    model.pending?.answer({ text })
  }
  const results = () =>
    model.attempts.at(-1)?.request.messages.flatMap((one) => (one.role === 'tool' ? [one.content] : []))
  return { clock, model, agent, asks, says, results }
}

describe('a run sleeps', () => {
  test('until all calls of the batch have their results, which the model reads when the run continues', async () => {
    const { agent, asks, says, results, model } = setUp()
    const run = agent.run('Go.')
    await asks('nap', 'look')
    const rest = await run.result
    expect(rest).toMatchObject({ state: 'PAUSED', reason: 'sleeping', wakeAt: at(1), resumable: true })
    expect(rest.messages.filter(({ role }) => role === 'tool')).toHaveLength(2)
    expect(model.attempts).toHaveLength(1)
    run.resume()
    await says('Done.')
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(results()).toEqual([expect.stringContaining('2026-05-04T07:00:00.000Z'), 'seen'])
  })

  test.each([
    ['the earlier date first', [at(1), at(2)]],
    ['the later date first', [at(2), at(1)]],
    ['one date in the past', [at(-1), at(2)]],
  ])('until the latest date: %s', async (_, dates) => {
    const { agent, asks } = setUp({ naps: dates.map((date) => () => sleepUntil(date)) })
    const run = agent.run('Go.')
    await asks('nap', 'nap')
    expect(wakeAtOf(await run.result)).toBe(at(2))
  })

  test('only until a future date', async () => {
    const { agent, asks, says, results } = setUp({ naps: [() => sleepUntil(new Date(at(-1)))] })
    const run = agent.run('Go.')
    await asks('nap')
    await says('Done.')
    expect((await run.result).state).toBe('COMPLETED')
    expect(results()).toEqual([expect.stringContaining('is in the past')])
  })

  test.each([
    ['no date', () => sleepUntil(new Date('tomorrow'))],
    ['NaN', () => sleepUntil(Number.NaN)],
    ['a string', () => sleepUntil('2026-05-04' as never)],
    ['an invalid date', () => sleepUntil(1e18)],
    ['a duration', () => sleepUntil(hour)],
  ])('not for %s: the call fails, and the model reads why', async (_, nap) => {
    const { agent, asks, says, results } = setUp({ naps: [nap] })
    expect(nap).toThrow(expect.objectContaining({ code: 'invalid_date', subject: 'date' }))
    const run = agent.run('Go.')
    await asks('nap')
    await says('Done.')
    expect((await run.result).state).toBe('COMPLETED')
    expect(results()).toEqual([expect.stringContaining('sleepUntil(date):')])
  })

  test('with its deadline suspended', async () => {
    const { agent, asks, says, clock } = setUp({ timeoutMs: hour })
    const run = agent.run('Go.')
    await asks('nap')
    await run.result
    clock.increment(10 * hour)
    run.resume()
    await says('Done.')
    expect((await run.result).state).toBe('COMPLETED')
  })

  test('unless a limit comes first', async () => {
    const { agent, asks } = setUp()
    const run = agent.run('Go.', { limits: { maxSteps: 1 } })
    await asks('nap')
    expect(await run.result).toMatchObject({ state: 'MAX_STEPS', reason: 'max_steps' })
  })

  test('until it is cancelled, or receives a message', async () => {
    const one = setUp()
    const cancelled = one.agent.run('Go.')
    await one.asks('nap')
    await cancelled.result
    cancelled.cancel()
    expect((await cancelled.result).state).toBe('CANCELLED')
    const two = setUp()
    const steered = two.agent.run('Go.')
    await two.asks('nap')
    await steered.result
    steered.steer('Hurry.')
    await two.says('Yes.')
    expect((await steered.result).state).toBe('COMPLETED')
  })

  test('unless it receives a message before it falls asleep', async () => {
    let end: (value: unknown) => void = () => undefined
    const { agent, asks, says } = setUp({ naps: [() => new Promise((resolve) => (end = resolve))] })
    const run = agent.run('Go.')
    await asks('nap')
    await until(() => run.state === 'WAITING_FOR_TOOL')
    run.steer('Hurry.')
    end(sleepUntil(at(1)))
    await says('Yes.')
    expect((await run.result).state).toBe('COMPLETED')
  })

  test('unless a pause comes first, which has no end time', async () => {
    let end: (value: unknown) => void = () => undefined
    const { agent, asks } = setUp({ naps: [() => new Promise((resolve) => (end = resolve))] })
    const run = agent.run('Go.')
    await asks('nap')
    await until(() => run.state === 'WAITING_FOR_TOOL')
    run.pause()
    end(sleepUntil(at(1)))
    const rest = await run.result
    expect(rest).toMatchObject({ state: 'PAUSED', reason: 'paused' })
    expect(rest).not.toHaveProperty('wakeAt')
  })

  test('instead of pausing, if a pending pause is withdrawn with a date', async () => {
    let end: (value: unknown) => void = () => undefined
    const { agent, asks } = setUp({ naps: [() => new Promise((resolve) => (end = resolve))] })
    const run = agent.run('Go.')
    await asks('nap')
    await until(() => run.state === 'WAITING_FOR_TOOL')
    run.pause()
    run.resume({ at: at(2) })
    end('done')
    expect(await run.result).toMatchObject({ state: 'PAUSED', reason: 'sleeping', wakeAt: at(2) })
  })

  test('again after a postponement, and emits the date', async () => {
    const { agent, asks } = setUp()
    const run = agent.run('Go.')
    const received: unknown[] = []
    run.events$.subscribe((event) => {
      if (event.type === 'state_changed' && event.to === 'PAUSED') received.push([event.reason, event.wakeAt])
    })
    await asks('nap')
    await run.result
    run.resume({ at: at(3) })
    expect(await run.result).toMatchObject({ state: 'PAUSED', reason: 'sleeping', wakeAt: at(3) })
    expect(received).toEqual([
      ['sleeping', at(1)],
      ['sleeping', at(3)],
    ])
    expect(() => run.resume({ at: Number.NaN })).toThrow(expect.objectContaining({ code: 'invalid_input' }))
  })
})

describe.each([
  ['synchronously', (store: SessionStore) => store],
  ['asynchronously', (store: SessionStore) => distant(store as never)],
])('with a store that answers %s', (_, reach) => {
  test('its row and its timers contain the wake time, and runSession wakes it', async () => {
    const inner = memoryStore()
    const { agent, asks, says, clock } = setUp({ store: reach(inner) })
    const driven = runSession(agent, { session: 's', input: 'Go.' })
    await asks('nap')
    expect(await driven).toMatchObject({ state: 'PAUSED', reason: 'sleeping', wakeAt: at(1), wakeMs: hour })
    expect(inner.get('s')?.summary).toMatchObject({ state: 'PAUSED', wakeAt: at(1) })
    expect(inner.timers.get('wake:s')).toMatchObject({ at: at(1) })
    clock.increment(hour)
    const woken = runSession(agent, { session: 's' })
    await says('Done.')
    expect(await woken).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(inner.get('s')?.summary).not.toHaveProperty('wakeAt')
    expect(checkSessionLog(inner.read('s'))).toBeNull()
  })

  test('a paused run can be scheduled by a process without the lease', async () => {
    const inner = memoryStore()
    const { agent, says, clock, model } = setUp({ store: reach(inner) })
    const run = agent.run('Go.', { session: 's' })
    await until(() => model.pending !== null)
    run.pause()
    model.pending?.answer({ toolCalls: [callOf('a', 'look')], finishReason: 'tool_calls' })
    expect((await run.result).reason).toBe('paused')
    const receipt = await agent.send('s', { type: 'resume', at: new Date(at(2)) })
    expect(receipt.status).toBe('applied')
    expect(inner.get('s')?.summary).toMatchObject({ reason: 'sleeping', wakeAt: at(2) })
    expect(inner.timers.get('wake:s')).toMatchObject({ at: at(2) })
    clock.increment(2 * hour)
    const woken = runSession(agent, { session: 's' })
    await says('Done.')
    expect((await woken).state).toBe('COMPLETED')
    expect(checkSessionLog(inner.read('s'))).toBeNull()
  })

  test('each later date replaces the one before, also while a message waits for the next turn', async () => {
    const inner = memoryStore()
    const { agent, asks } = setUp({ store: reach(inner) })
    const run = agent.run('Go.', { session: 's' })
    await asks('nap')
    await run.result
    for (const hours of [2, 3, 4]) {
      const receipt = await agent.send('s', { type: 'resume', at: at(hours) })
      expect(receipt.status).toBe('applied')
      expect(inner.get('s')?.summary).toMatchObject({ wakeAt: at(hours) })
      expect(inner.timers.get('wake:s')).toMatchObject({ at: at(hours) })
      await agent.send('s', { type: 'message', when: 'next', input: `${hours}` })
    }
    await until(() => inner.inbox.read('s').every(({ text }) => text.startsWith('{"type":"MESSAGE"')))
    expect(checkSessionLog(inner.read('s'))).toBeNull()
  })

  test('a cancel ends it even while another process holds the session to change its date', async () => {
    const inner = memoryStore()
    const { agent, asks, clock } = setUp({ store: reach(inner) })
    const run = agent.run('Go.', { session: 's' })
    await asks('nap')
    await run.result
    let write = (): void => undefined
    const written = new Promise<void>((resolve) => {
      write = resolve
    })
    const slow = distant(inner, undefined, () => (inner.get('s')?.holder ? written : Promise.resolve()))
    const other = createAgent({ model: new ManualModel(), clock, store: slow })
    const postponed = other.send('s', { type: 'resume', at: at(2) })
    await until(() => inner.get('s')?.holder != null)
    const cancelled = agent.send('s', { type: 'cancel' })
    await until(() => inner.inbox.read('s').length === 2)
    write()
    await postponed
    await until(() => {
      clock.increment(20)
      return inner.get('s')?.summary?.state === 'CANCELLED'
    })
    expect(await cancelled).toMatchObject({ status: 'applied' })
  })

  test('its alarm is set before the log records the sleep', async () => {
    const inner = memoryStore()
    const done: string[] = []
    const near: SessionStore = {
      ...inner,
      append: (lease, records, summary, options) => {
        if (summary?.state === 'PAUSED') done.push('log')
        return inner.append(lease, records, summary, options)
      },
      timers: {
        ...inner.timers,
        set: (timers) => {
          done.push('alarm')
          return inner.timers.set(timers)
        },
      },
    }
    const { agent, asks } = setUp({ store: reach(near) })
    const run = agent.run('Go.', { session: 's' })
    await asks('nap')
    await run.result
    expect(done).toEqual(['alarm', 'log'])
  })

  test('no alarm is set for an interactive run, which its own program wakes', async () => {
    const inner = memoryStore()
    const model = new ManualModel()
    const nap = tool('nap', () => sleepUntil(at(1)))
    const clock = new SimulatedClock()
    clock.set(start)
    const agent = createAgent({ model, tools: [nap], clock, interactive: true, store: reach(inner) })
    const run = agent.run('Go.', { session: 's' })
    await until(() => model.pending !== null)
    model.pending?.answer({ toolCalls: [callOf('a', 'nap')], finishReason: 'tool_calls' })
    expect(await run.result).toMatchObject({ state: 'PAUSED', reason: 'sleeping' })
    expect(inner.timers.list({ prefix: '', limit: 9 })).toEqual([])
    run.resume()
    await until(() => model.pending !== null)
    model.pending?.answer({ text: 'Yes?' })
    expect((await run.result).state).toBe('WAITING_FOR_INPUT')
  })

  test('a message to a sleeping run lets it wake immediately', async () => {
    const inner = memoryStore()
    const { agent, asks, says } = setUp({ store: reach(inner) })
    const run = agent.run('Go.', { session: 's' })
    await asks('nap')
    await run.result
    await agent.send('s', { type: 'steer', text: 'Hurry.' })
    expect(inner.timers.get('wake:s')).toMatchObject({ at: 0 })
    const woken = runSession(agent, { session: 's' })
    await says('Yes.')
    expect((await woken).state).toBe('COMPLETED')
  })
})

describe('a sleeping sub-agent', () => {
  function family(store?: SessionStore) {
    const clock = new SimulatedClock()
    clock.set(start)
    const [parent, child] = [new ManualModel(), new ManualModel()]
    const nap = tool('nap', () => sleepUntil(at(1)))
    const research = createAgent({ model: child, tools: [nap], clock }).asTool({
      name: 'research',
      description: 'Finds.',
    })
    const agent = createAgent({ model: parent, tools: [research, nap], clock, ...(store && { store }) })
    return { clock, parent, child, agent }
  }
  const answer = async (model: ManualModel, input: object) => {
    await until(() => model.pending !== null)
    model.pending?.answer(input)
  }
  const asks = (name: string, input: object = {}) => ({
    toolCalls: [{ ...callOf('a', name), function: { name, arguments: JSON.stringify(input) } }],
    finishReason: 'tool_calls',
  })

  test.each([
    ['without a store', undefined],
    ['with a store', memoryStore()],
  ])('lets its run sleep, %s, and continue with it', async (_, store) => {
    const { parent, child, agent } = family(store)
    const run = agent.run('Go.', { session: 's' })
    await answer(parent, asks('research', { task: 'Look.' }))
    await answer(child, asks('nap'))
    expect(await run.result).toMatchObject({ state: 'PAUSED', reason: 'sleeping', wakeAt: at(1) })
    run.resume()
    await answer(child, { text: 'Found.' })
    await answer(parent, { text: 'Done.' })
    expect((await run.result).state).toBe('COMPLETED')
    expect(parent.attempts.at(-1)?.request.messages.at(-1)).toMatchObject({ role: 'tool', content: 'Found.' })
  })

  test('is woken only by its parent run, also in another process', async () => {
    const store = memoryStore()
    const first = family(store)
    const run = first.agent.run('Go.', { session: 's' })
    await answer(first.parent, asks('research', { task: 'Look.' }))
    await answer(first.child, asks('nap'))
    await run.result
    expect(store.timers.list({ prefix: '', limit: 10 }).map(({ id }) => id)).toEqual(['wake:s'])
    const second = family(store)
    second.clock.set(at(1))
    const woken = runSession(second.agent, { session: 's' })
    await answer(second.child, { text: 'Found.' })
    await answer(second.parent, { text: 'Done.' })
    expect((await woken).state).toBe('COMPLETED')
    const sessions = store.list({ children: true })
    expect(sessions.map(({ summary }) => summary?.state)).toEqual(['COMPLETED', 'COMPLETED'])
    for (const { id } of sessions) expect(checkSessionLog(store.read(id))).toBeNull()
  })
})
