import { SimulatedClock } from 'xstate'
import { type AgentEvent, createAgent, type WatchedEvent, type WatchOptions } from '../../src/index.js'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import type { SessionStore } from '../../src/core/sessions/store/store.js'
import { distant } from '../support/distant.js'
import { ManualModel, call as callOf } from '../support/manual-model.js'
import { again, stage, until } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'
import { sampledKinds } from '../support/extent.js'

const kinds: [string, () => SessionStore][] = [
  ['synchronously', memoryStore],
  ['asynchronously', () => distant(memoryStore())],
]

async function all(events: AsyncIterable<WatchedEvent>): Promise<WatchedEvent[]> {
  const seen: WatchedEvent[] = []
  for await (const event of events) seen.push(event)
  return seen
}

/** The events seen from any process, without timestamps. */
const bare = ({ id: _i, runId: _r, seq: _s, at: _a, ...event }: AgentEvent) => {
  const { record: _record, ...reported } = event as WatchedEvent
  return reported
}
const live = [
  'stream_chunk',
  'tool_call_delta',
  'step_started',
  'step_completed',
  'step_progress',
  'tool_progress',
]
const logged = (events: readonly AgentEvent[]) => events.filter(({ type }) => !live.includes(type)).map(bare)
const textOf = (events: readonly AgentEvent[]) =>
  events.reduce((shown, event) => {
    if (event.type !== 'stream_chunk') return shown
    return (event.reset ? '' : shown) + event.text
  }, '')

describe.each(sampledKinds(kinds))('a session of a store that answers %s', (_, open) => {
  it('is replayed from its log as its run emitted it, from the start or after any event', async () => {
    const store = open()
    const play = await stage([call('look'), text('Done.')], { store, tools: [tool('look')] })
    const run = play.run('Go.', { session: 's' })
    await run.end(2)
    const other = again(play, { store })
    const events = await all(other.watch('s'))
    expect(logged(events)).toEqual(logged(run.events))
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index + 1))
    expect(events.every(({ runId }) => runId === run.run.id)).toBe(true)
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length)
    for (const [index, { id, record }] of events.entries()) {
      const rest = await all(other.watch('s', { after: id }))
      expect(rest.map((event) => event.id)).toEqual(events.slice(index + 1).map((event) => event.id))
      const after = await all(other.watch('s', { after: record }))
      expect(after.every((event) => event.record > record)).toBe(true)
    }
  })

  it('is live in its own process: a reader that joins midway receives the answer so far', async () => {
    const store = open()
    const model = new ManualModel()
    const clock = new SimulatedClock()
    const agent = createAgent({ model, store, tools: [tool('look')], clock })
    const run = agent.run('Go.', { session: 's' })
    const events: AgentEvent[] = []
    run.events$.subscribe((event) => events.push(event))
    await until(() => model.pending !== null)
    const first = all(agent.watch('s'))
    model.pending?.delta('Hello, ')
    await until(() => textOf(events) === 'Hello, ')
    const late: WatchedEvent[] = []
    const second = (async () => {
      for await (const event of agent.watch('s')) late.push(event)
    })()
    await until(() => textOf(late) === 'Hello, ')
    expect(late.find(({ type }) => type === 'stream_chunk')).toMatchObject({ reset: true, text: 'Hello, ' })
    model.pending?.delta('Ada.')
    model.pending?.answer({ text: 'Hello, Ada.', toolCalls: [callOf('a', 'look')] })
    await until(() => model.attempts.length === 2)
    model.pending?.delta('Done.')
    model.pending?.answer({ text: 'Done.' })
    await run.result
    await second
    for (const seen of [await first, late]) {
      expect(logged(seen)).toEqual(logged(events))
      const chunks = seen.filter(({ type }) => type === 'stream_chunk') as { stepId: string }[]
      const step = (event: { stepId: string } | undefined) => event?.stepId
      const ofFirst = chunks.filter((chunk) => step(chunk) === step(chunks[0]))
      expect(textOf(ofFirst as AgentEvent[])).toBe('Hello, Ada.')
      // The answer's deltas come before the answer.
      const last = seen.findLastIndex(({ type }) => type === 'stream_chunk')
      expect(seen.findIndex((event, i) => i > last && event.type === 'assistant_message')).toBeGreaterThan(
        last,
      )
    }
  })

  it('ends at a rest, at a final state, or when it has no readers', async () => {
    const store = open()
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const play = await stage([call('pay'), text('Done.')], { store, tools: [pay] })
    await play.agent.run('Go.', { session: 's' }).result
    const rested = await all(play.agent.watch('s'))
    expect(rested.at(-1)).toMatchObject({ type: 'approval_requested' })
    const stop = new AbortController()
    const watch = (until: 'end' | 'never') => all(play.agent.watch('s', { until, signal: stop.signal }))
    const [end, never] = [watch('end'), watch('never')]
    const run = await play.agent.resume('s')
    for (const question of (await run.result).pending ?? []) run.approve(question)
    await run.result
    expect((await end).at(-1)).toMatchObject({ type: 'run_ended', state: 'COMPLETED' })
    stop.abort()
    expect((await never).slice(0, rested.length)).toEqual(rested)
    // A reader that stops early does not affect other readers.
    for await (const event of play.agent.watch('s')) {
      expect(event.record).toBeGreaterThan(0)
      break
    }
  })
})

it('a watch polls a session that another process writes', async () => {
  const store = memoryStore()
  // Another object for the same store, without shared in-process state.
  const theirs: SessionStore = { ...store }
  const model = new ManualModel()
  const agent = createAgent({ model, store: theirs, clock: new SimulatedClock() })
  const run = agent.run('Go.', { session: 's' })
  await until(() => model.pending !== null)
  const clock = new SimulatedClock()
  const watcher = createAgent({ model, store, clock })
  const seen: WatchedEvent[] = []
  const watched = (async () => {
    for await (const event of watcher.watch('s')) seen.push(event)
  })()
  await until(() => seen.some(({ type }) => type === 'user_message'))
  model.pending?.delta('Do')
  model.pending?.answer({ text: 'Done.' })
  await run.result
  const isOver = watched.then(() => true)
  for (let looks = 0; looks < 5; looks += 1) {
    await until(() => true)
    clock.increment(500)
  }
  expect(await isOver).toBe(true)
  expect(seen.at(-1)).toMatchObject({ type: 'run_ended' })
  expect(seen.some(({ type }) => type === 'stream_chunk')).toBe(false)
})

it('a watch sends a slow reader every event of the log, and buffers at most a thousand', async () => {
  const store = memoryStore()
  const model = new ManualModel()
  const agent = createAgent({ model, store, clock: new SimulatedClock() })
  const run = agent.run('Go.', { session: 's' })
  await until(() => model.pending !== null)
  const events = agent.watch('s')[Symbol.asyncIterator]()
  for (let first = await events.next(); first.value?.type !== 'user_message'; first = await events.next());
  const pending = events.next()
  await until(() => true)
  for (let n = 0; n < 5000; n += 1) model.pending?.delta('x')
  model.pending?.answer({ text: 'x'.repeat(5000) })
  await run.result
  const rest: AgentEvent[] = []
  for (let next = await pending; !next.done; next = await events.next()) rest.push(next.value)
  expect(rest.filter(({ type }) => type === 'stream_chunk').length).toBeLessThanOrEqual(1001)
  expect(rest.find(({ type }) => type === 'assistant_message')).toMatchObject({
    message: { content: 'x'.repeat(5000) },
  })
  expect(rest.at(-1)).toMatchObject({ type: 'run_ended' })
})

it('a watch rejects its first event if the session cannot be watched', async () => {
  const play = await stage([text('Never said.')], { store: memoryStore() })
  const first = async (id: string, options?: WatchOptions) =>
    play.agent.watch(id, options)[Symbol.asyncIterator]().next()
  await expect(first('nobody')).rejects.toMatchObject({ code: 'unknown_session' })
  await expect(first('../s')).rejects.toMatchObject({ code: 'invalid_session' })
  await expect(first('s', { after: 'x' })).rejects.toMatchObject({ code: 'invalid_option', subject: 'after' })
  await expect(first('s', { until: 'soon' as 'rest' })).rejects.toMatchObject({ subject: 'until' })
  await expect(first('s', { signal: {} as AbortSignal })).rejects.toMatchObject({ subject: 'signal' })
  expect(() => again(play).watch('s')).toThrow(expect.objectContaining({ code: 'no_store' }) as Error)
})

describe('a closed watch', () => {
  it('emits nothing more, and does not wait for pending reads', async () => {
    const store = memoryStore()
    const model = new ManualModel()
    const agent = createAgent({ model, store })
    const run = agent.run('Go.', { session: 's' })
    await until(() => model.pending !== null)
    const watch = agent.watch('s', { until: 'never' })[Symbol.asyncIterator]()
    const seen: AgentEvent['type'][] = []
    // All existing records.
    while (seen.at(-1) !== 'state_changed') seen.push((await watch.next()).value?.type)
    const pending = [watch.next(), watch.next()]
    await watch.return?.()
    model.pending?.answer({ text: 'Done.' })
    await run.result
    expect((await Promise.all(pending)).map(({ done }) => done)).toEqual([true, true])
    expect(await watch.next()).toEqual({ done: true, value: undefined })
  })

  it('emits nothing if it is closed before its first event', async () => {
    const store = memoryStore()
    const watch = createAgent({ model: new ManualModel(), store }).watch('nobody')[Symbol.asyncIterator]()
    await watch.return?.()
    expect(await watch.next()).toEqual({ done: true, value: undefined })
  })
})
