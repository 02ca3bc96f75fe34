import { type AgentEvent, defineShield, memoryStore, type Run } from '../../src/index.js'
import { distant } from '../support/distant.js'
import { again, stage, until } from '../support/play.js'
import { call, clientTool, text, tool } from '../support/tools.js'

const done = text('Done.')
const pay = () => tool('pay', () => 'paid', { needsApproval: true })

/** The events of a run from this point. */
function eventsOf(run: Run): AgentEvent[] {
  const events: AgentEvent[] = []
  run.events$.subscribe((event) => {
    events.push(event)
  })
  return events
}

const numbers = (events: readonly AgentEvent[]): number[] => events.map(({ seq }) => seq)
const from = (first: number, count: number): number[] => Array.from({ length: count }, (_, i) => first + i)

describe('a late subscriber', () => {
  it('first receives the state of the run and its questions, as emitted before', async () => {
    const play = (await stage([call('pay'), done], { tools: [pay()] })).run()
    await play.rest()
    const late = eventsOf(play.run)
    expect(late.map(({ type }) => type)).toEqual(['state_changed', 'approval_requested'])
    expect(late).toMatchObject([
      { from: 'WAITING_FOR_TOOL', to: 'WAITING_FOR_INPUT' },
      { callId: 'call_1_1' },
    ])
    for (const event of late) expect(play.events).toContain(event)
    play.run.approve('call_1_1')
    await play.end(2)
    expect(play.events.filter(({ seq }) => seq >= (late[0]?.seq ?? 0))).toEqual(late)
    const after = eventsOf(play.run)
    expect(after).toEqual(play.of('state_changed').slice(-1))
    const ids = play.events.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('does not receive answered questions', async () => {
    const play = (await stage([call('pay'), call('pick')], { tools: [pay(), clientTool('pick')] })).run()
    await play.rest()
    play.run.reject('call_1_1')
    await play.rest()
    expect(eventsOf(play.run)).toMatchObject([{ type: 'state_changed', reason: 'tool_output' }])
    play.run.cancel()
  })
})

describe.each([
  ['synchronously', memoryStore],
  ['asynchronously', () => distant(memoryStore())],
])('another process that continues a run, with a store that answers %s', (_, open) => {
  it('continues the numbers from the rest of the run, and repeats its questions', async () => {
    const options = { store: open(), tools: [pay()] }
    const theatre = await stage([call('pay'), done], options)
    const play = theatre.run('Go.', { session: 's' })
    await play.rest()
    const emitted = play.events.length
    expect(numbers(play.events)).toEqual(from(1, emitted))

    const other = await again(theatre, options).resume('s')
    const events = eventsOf(other)
    expect(events).toMatchObject([
      { type: 'state_changed', from: null, to: 'WAITING_FOR_INPUT', reason: 'approval' },
      {
        type: 'approval_requested',
        callId: 'call_1_1',
        fingerprint: play.of('approval_requested')[0]?.fingerprint,
      },
    ])
    const iterated: AgentEvent[] = []
    for await (const event of other) iterated.push(event)
    expect(iterated).toEqual(events)
    other.approve('call_1_1')
    expect((await other.result).state).toBe('COMPLETED')
    expect(numbers(events)).toEqual(from(emitted + 1, events.length))

    const third = await again(theatre, options).resume('s')
    const ended = eventsOf(third)
    expect(ended).toMatchObject([
      { type: 'state_changed', from: null, to: 'COMPLETED', seq: emitted + events.length + 1 },
    ])
    const ids = [play.events, events, ended].flat().map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('leaves a gap for events that a killed process may have emitted', async () => {
    const options = { store: open(), tools: [tool('look', () => new Promise(() => {}), { readOnly: true })] }
    const theatre = await stage([call('look'), done], options)
    const play = theatre.run('Go.', { session: 's' })
    await play.event('step_started', ({ stepType }) => stepType === 'tool_execution')
    // The records that a kill at this point would leave.
    const records = await options.store.read('s')
    const left = memoryStore()
    const lease = left.acquire('s', { holder: 'a copy', ttlMs: 1_000 })
    left.append(lease, records)
    left.release(lease)
    const other = await again(theatre, { store: left, tools: [tool('look')] }).resume('s')
    const events = eventsOf(other)
    expect((await other.result).state).toBe('COMPLETED')
    expect(numbers(events)).toEqual(from(1_000_001, events.length))
    play.run.cancel()
  })

  it('leaves a gap even if no event had been emitted at the last write', async () => {
    const looks = defineShield({ name: 'looks', check: () => new Promise<never>(() => {}) })
    const store = open()
    const theatre = await stage([done], { store, shields: { input: [looks] } })
    const play = theatre.run('Go.', { session: 's' })
    await play.event('step_started')
    const left = memoryStore()
    const lease = left.acquire('s', { holder: 'a copy', ttlMs: 1_000 })
    left.append(lease, await store.read('s'))
    left.release(lease)
    const events = eventsOf(await again(theatre, { store: left }).resume('s'))
    await until(() => events.length > 0)
    expect(events[0]?.seq).toBe(1_000_001)
    play.run.cancel()
  })

  it('restarts the numbers in the next run of the session', async () => {
    const options = { store: open() }
    const theatre = await stage([done, done], options)
    for (const calls of [1, 2]) {
      const play = theatre.run('Go.', { session: 's' })
      await until(() => play.of('run_ended').length === 1)
      await play.end(calls)
    }
  })
})
