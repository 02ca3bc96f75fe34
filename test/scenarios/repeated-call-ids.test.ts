import fc from 'fast-check'
import { nameCall } from '../../src/core/models/calls.js'
import { memoryStore, type RunInput } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { again, stage } from '../support/play.js'
import { text, tool } from '../support/tools.js'

// Several servers count the calls of each response from call_0. Kimi repeats ids in later steps.
const look = (...ids: string[]): Turn => ({
  toolCalls: ids.map((id, n) => ({ id, name: 'look', arguments: { n } })),
})
const turns = [look('call_0', 'call_1'), look('call_0', 'call_1'), look('call_0'), text('Done.')]
const names = ['call_0', 'call_1', 'call_0_5', 'call_1_5', 'call_0_8']

describe('a provider that repeats call ids', () => {
  for (const api of ['chat', 'responses'] as const)
    for (const stream of [true, false])
      it(`gets each id once in its history (${api}, ${stream ? 'streamed' : 'whole'})`, async () => {
        const played = await stage(turns, { api, tools: [tool('look')], stream })
        const play = played.run()
        const { messages } = await play.end(4)
        const calls = messages.flatMap((one) => (one.role === 'assistant' ? (one.tool_calls ?? []) : []))
        expect(calls.map(({ id }) => id)).toEqual(names)
        expect(messages.flatMap((one) => (one.role === 'tool' ? [one.tool_call_id] : []))).toEqual(names)
        const sent = JSON.stringify(played.requests.at(-1)?.body)
        // Once in the call, and once in its result.
        for (const id of names) expect(sent.split(JSON.stringify(id))).toHaveLength(3)
        const streamed = play.of('tool_call_delta').map(({ callId }) => callId)
        expect([...new Set(streamed)]).toEqual(stream ? names : [])
      })

  it('receives each id once after a restart, too', async () => {
    const store = memoryStore()
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const asks: Turn = { toolCalls: [{ id: 'call_0', name: 'pay', arguments: {} }] }
    const played = await stage([asks, asks, text('Done.')], { store, tools: [pay] })
    await played.agent.run('Go.', { session: 's' }).result
    const other = again(played, { store, tools: [pay] })
    const run = await other.resume('s')
    run.approve('call_0')
    expect((await run.result).pending).toMatchObject([{ callId: 'call_0_4' }])
  })

  it('receives each id once from a custom history', async () => {
    const step = (n: number): object[] => [
      { role: 'assistant', tool_calls: [{ id: 'c', function: { name: 'look', arguments: `{"n":${n}}` } }] },
      { role: 'tool', tool_call_id: 'c', content: `seen ${n}` },
    ]
    const history = [
      { role: 'user', content: 'Look.' },
      ...step(1),
      ...step(2),
      { role: 'user', content: 'So?' },
    ]
    const played = await stage([text('Done.')], { tools: [tool('look')] })
    const { messages } = await played.agent.run(history as RunInput).result
    expect(messages.slice(1, 5)).toMatchObject([
      { tool_calls: [{ id: 'c' }] },
      { tool_call_id: 'c', content: 'seen 1' },
      { tool_calls: [{ id: 'c_4' }] },
      { tool_call_id: 'c_4', content: 'seen 2' },
    ])
  })
})

describe('the id of a new call', () => {
  it('is unique in the session, and unchanged if it already was', () => {
    const id = fc.constantFrom('call_0', 'call_0_3', 'functions.pay:0', 'functions.pay:3', ':7', 'a/b')
    fc.assert(
      fc.property(fc.uniqueArray(id), id, fc.integer({ min: 1, max: 9 }), (known, wanted, number) => {
        const used = new Set<string>(known)
        const name = nameCall(wanted, number, used)
        expect(used.has(name)).toBe(false)
        if (!used.has(wanted)) expect(name).toBe(wanted)
      }),
    )
  })

  it('keeps the format of Kimi, which contains the tool and a count', () => {
    expect(nameCall('functions.pay:0', 4, new Set(['functions.pay:0']))).toBe('functions.pay:4')
  })
})
