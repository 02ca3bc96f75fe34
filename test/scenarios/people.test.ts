import { UsageError } from '../../src/index.js'
import { latch, stage, textOf, tick, until } from '../support/play.js'
import { call, calls, clientTool, text, tool } from '../support/tools.js'

const done = text('Done.')

function pay() {
  return tool('pay', ({ to, amount }) => `paid ${amount} to ${to}`, { needsApproval: true })
}

describe('a call that needs approval', () => {
  it('waits for a person, and runs when approved', async () => {
    const tools = [pay()]
    const theatre = await stage([call('pay', { to: 'Ann', amount: 5 }), done], { tools })
    const play = theatre.run()
    const waiting = await play.rest()
    expect(waiting).toMatchObject({
      state: 'WAITING_FOR_INPUT',
      reason: 'approval',
      pending: [{ callId: 'call_1_1', name: 'pay', arguments: '{"to":"Ann","amount":5}', needs: 'approval' }],
    })
    expect(play.of('approval_requested')).toMatchObject([{ callId: 'call_1_1', name: 'pay' }])
    expect(tools[0]?.inputs).toEqual([])
    play.run.approve('call_1_1')
    expect((await play.end(2)).output).toBe('Done.')
    expect(tools[0]?.inputs).toEqual([{ to: 'Ann', amount: 5 }])
  })

  it('can be decided by a predicate for each call; a predicate that throws requires approval', async () => {
    const large = tool('pay', () => 'paid', {
      needsApproval: (input) => {
        const { amount } = input as { amount?: number }
        if (amount === undefined) throw new Error('no amount')
        return amount > 10
      },
    })
    const batch = calls([
      ['pay', { amount: 1 }],
      ['pay', { amount: 99 }],
      ['pay', {}],
    ])
    const theatre = await stage([batch, done], { tools: [large] })
    const play = theatre.run()
    const { pending } = await play.rest()
    expect(pending?.map(({ callId }) => callId)).toEqual(['call_1_2', 'call_1_3'])
    expect(large.inputs).toEqual([{ amount: 1 }])
    play.run.reject('call_1_2')
    play.run.reject('call_1_3')
    await play.end(2)
    expect(large.inputs).toEqual([{ amount: 1 }])
  })

  it('can be one of several, decided in any order; results stay in call order', async () => {
    const tools = [pay(), tool('look', () => 'seen')]
    const batch = calls([
      ['pay', { to: 'A', amount: 1 }],
      ['look'],
      ['pay', { to: 'B', amount: 2 }],
      ['pay', { to: 'C', amount: 3 }],
    ])
    const theatre = await stage([batch, done], { tools })
    const play = theatre.run()
    await play.rest()
    play.run.approve('call_1_4')
    expect((await play.rest()).pending?.map(({ callId }) => callId)).toEqual(['call_1_1', 'call_1_3'])
    play.run.reject('call_1_1', 'A is a stranger')
    expect((await play.rest()).pending?.map(({ callId }) => callId)).toEqual(['call_1_3'])
    expect(tools[0]?.inputs).toEqual([])
    play.run.approve('call_1_3')
    await play.end(2)
    expect(
      theatre
        .wire(1)
        .slice(-4)
        .map(({ content }) => content),
    ).toEqual(['Rejected by the user: A is a stranger', 'seen', 'paid 2 to B', 'paid 3 to C'])
  })

  it('can be answered by the pending call or the event, for exactly that call', async () => {
    const tools = [pay()]
    const theatre = await stage([call('pay', { to: 'Ann', amount: 5 }), done], { tools })
    const play = theatre.run()
    const [question] = (await play.rest()).pending ?? []
    const [event] = play.of('approval_requested')
    if (!question || !event) throw new Error('Nothing was asked.')
    const other = { ...question, fingerprint: 'of another call' }
    expect(() => play.run.approve(other)).toThrow(expect.objectContaining({ code: 'stale_answer' }))
    expect(() => play.run.reject(other)).toThrow(expect.objectContaining({ code: 'stale_answer' }))
    for (const nothing of [undefined, null, 5, {}, { id: 'call_1_1' }]) {
      expect(() => play.run.approve(nothing as never)).toThrow(
        expect.objectContaining({ code: 'invalid_input', message: expect.stringContaining('its callId') }),
      )
    }
    play.run.approve(event, { to: 'Ann', amount: 6 })
    await play.end(2)
    expect(tools[0]?.inputs).toEqual([{ to: 'Ann', amount: 6 }])
  })

  it('can be edited before it runs, and the model reads the edit', async () => {
    const tools = [pay()]
    const theatre = await stage([call('pay', { to: 'Ann', amount: 500 }), done], { tools })
    const play = theatre.run()
    await play.rest()
    play.run.approve('call_1_1', { to: 'Ann', amount: 5 })
    await play.end(2)
    expect(tools[0]?.inputs).toEqual([{ to: 'Ann', amount: 5 }])
    expect(theatre.wire(1).at(-1)?.content).toMatch(/user changed the arguments.*"amount":5.*paid 5 to Ann/s)
  })

  it('is asked about three times when the same call is rejected, and then refused without asking', async () => {
    const asks = [1, 2, 3, 4].map(() => call('pay', { to: 'Ann', amount: 5 }))
    const theatre = await stage([...asks, done], { tools: [pay()] })
    const play = theatre.run()
    for (const n of [1, 2, 3]) {
      await play.rest()
      play.run.reject(`call_${n}_1`, 'no')
    }
    expect((await play.end(5)).state).toBe('COMPLETED')
    expect(play.of('approval_requested')).toHaveLength(3)
    expect(play.of('guardrail').map(({ action }) => action)).toEqual(['nudge', 'nudge', 'block'])
    expect(theatre.wire(2).at(-1)?.content).toMatch(/called pay again .* after it was refused/)
  })

  it('is not asked about if it cannot run', async () => {
    const theatre = await stage([call('pay', '{"to": '), done], { tools: [pay()] })
    const play = theatre.run()
    await play.end(2)
    expect(play.of('approval_requested')).toEqual([])
  })

  it('refuses an invalid answer: a wrong id, a second answer, invalid JSON, or a client call', async () => {
    const batch = calls([
      ['pay', { to: 'A', amount: 1 }],
      ['pay', { to: 'B', amount: 2 }],
    ])
    const theatre = await stage([batch, done], { tools: [pay()] })
    const play = theatre.run()
    const { run } = play
    expect(() => run.approve('call_1_1')).toThrow(UsageError)
    await play.rest()
    expect(() => run.approve('nowhere')).toThrow(/'nowhere' is not waiting.*call_1_1, call_1_2/)
    expect(() => run.approve('call_1_1', { amount: 1n })).toThrow(/JSON/)
    expect(() => run.addToolOutput('call_1_1', 'paid')).toThrow(UsageError)
    expect(() => run.reply('Hello?')).toThrow(UsageError)
    expect(() => run.resume()).toThrow(/not PAUSED/)
    run.approve('call_1_1')
    expect(() => run.reject('call_1_1')).toThrow(UsageError)
    run.approve('call_1_2')
    expect(() => run.approve('call_1_2')).toThrow(UsageError)
    await play.end(2)
    for (const late of [() => run.approve('call_1_1'), () => run.pause(), () => run.steer('Hm.')]) {
      expect(late).toThrow(UsageError)
    }
  })

  it('can be cancelled while it waits', async () => {
    const theatre = await stage([call('pay')], { tools: [pay()] })
    const play = theatre.run()
    await play.rest()
    play.run.cancel()
    expect(await play.end(1)).toMatchObject({ state: 'CANCELLED', reason: 'cancelled' })
    expect(play.of('tool_result')).toMatchObject([{ status: 'not_executed' }])
  })

  it('can wait without limit, because the deadline is suspended', async () => {
    const theatre = await stage([call('pay'), { hang: true }], {
      tools: [pay()],
      limits: { timeoutMs: 1_000 },
    })
    const play = theatre.run()
    await play.rest()
    theatre.clock.increment(7 * 86_400_000)
    await tick()
    expect((await play.rest()).state).toBe('WAITING_FOR_INPUT')
    play.run.approve('call_1_1')
    await theatre.arrival(2)
    theatre.clock.increment(999)
    expect(play.run.state).toBe('RUNNING')
    theatre.clock.increment(1)
    expect((await play.end(2)).state).toBe('TIMED_OUT')
  })
})

describe('a call that the client executes', () => {
  const pick = clientTool('pick')

  it('waits for its output', async () => {
    const theatre = await stage([calls([['pick', { of: 'colours' }], ['pick']]), done], { tools: [pick] })
    const play = theatre.run()
    expect(await play.rest()).toMatchObject({
      state: 'WAITING_FOR_INPUT',
      reason: 'tool_output',
      pending: [
        { name: 'pick', needs: 'client' },
        { name: 'pick', needs: 'client' },
      ],
    })
    play.run.addToolOutput('call_1_2', new Error('The window was closed.'))
    expect((await play.rest()).pending).toHaveLength(1)
    expect(() => play.run.addToolOutput('call_1_2', 'again')).toThrow(/Waiting: call_1_1/)
    expect(() => play.run.approve('call_1_1')).toThrow(UsageError)
    play.run.addToolOutput('call_1_1', { colour: 'red' })
    await play.end(2)
    expect(
      theatre
        .wire(1)
        .slice(-2)
        .map(({ content }) => content),
    ).toEqual(['{"colour":"red"}', 'The window was closed.'])
    expect(play.of('tool_result').map(({ status }) => status)).toEqual(['error', 'ok'])
  })

  it('can be answered while another call waits for approval', async () => {
    const theatre = await stage([calls([['pay', { to: 'A', amount: 1 }], ['pick']]), done], {
      tools: [pay(), pick],
    })
    const play = theatre.run()
    expect((await play.rest()).pending).toHaveLength(2)
    play.run.addToolOutput('call_1_2', 'red')
    expect((await play.rest()).pending).toMatchObject([{ callId: 'call_1_1' }])
    play.run.approve('call_1_1')
    await play.end(2)
    expect(
      theatre
        .wire(1)
        .slice(-2)
        .map(({ content }) => content),
    ).toEqual(['paid 1 to A', 'red'])
  })

  it('can be answered after the approvals, too', async () => {
    const theatre = await stage([calls([['pay', { to: 'A', amount: 1 }], ['pick']]), done], {
      tools: [pay(), pick],
    })
    const play = theatre.run()
    await play.rest()
    play.run.approve('call_1_1')
    await play.event('state_changed', ({ reason }) => reason === 'tool_output')
    play.run.addToolOutput('call_1_2', 'red')
    await play.end(2)
    expect(
      theatre
        .wire(1)
        .slice(-2)
        .map(({ content }) => content),
    ).toEqual(['paid 1 to A', 'red'])
  })

  it('accepts a result of any size and shape, truncated for the model', async () => {
    const theatre = await stage([call('pick'), done], { tools: [pick], toolCalls: { maxResultChars: 100 } })
    const play = theatre.run()
    await play.rest()
    play.run.addToolOutput('call_1_1', 'x'.repeat(5_000))
    await play.end(2)
    expect(textOf(theatre.wire(1).at(-1)).length).toBeLessThanOrEqual(100)
  })
})

describe('a pause requested while a person is asked', () => {
  it('is withdrawn by resume(): the answered call runs, and the run continues without a rest', async () => {
    const theatre = await stage([call('pay', { to: 'Ann', amount: 5 }), done], { tools: [pay()] })
    const play = theatre.run()
    await play.rest()
    play.run.pause()
    play.run.resume()
    expect(await play.rest()).toMatchObject({ state: 'WAITING_FOR_INPUT', pending: [{ callId: 'call_1_1' }] })
    expect(() => play.run.resume()).toThrow(/no pause was requested/)
    play.run.approve('call_1_1')
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
    expect(play.of('state_changed').map(({ to }) => to)).not.toContain('PAUSED')
  })

  it('takes effect if it is requested again', async () => {
    const theatre = await stage([call('pay', { to: 'Ann', amount: 5 }), done], { tools: [pay()] })
    const play = theatre.run()
    await play.rest()
    play.run.pause()
    play.run.resume()
    play.run.pause()
    play.run.approve('call_1_1')
    expect(await play.rest()).toMatchObject({ state: 'PAUSED' })
    play.run.resume()
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
  })

  it('can be withdrawn before the run has read its session, and while a tool runs', async () => {
    const gate = latch()
    const theatre = await stage([call('look'), done], { tools: [tool('look', () => gate.opened)] })
    const play = theatre.run()
    play.run.pause()
    play.run.resume()
    await until(() => play.run.state === 'WAITING_FOR_TOOL')
    play.run.pause()
    play.run.resume()
    gate.open()
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
  })
})
