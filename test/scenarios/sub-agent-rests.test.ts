import { createActor, toPromise } from 'xstate'
import { createAgent, type LogRecord, memoryStore, openaiChat, type SessionStore } from '../../src/index.js'
import type { Turn, TurnFunction } from '../../src/rehearsal/index.js'
import { latch, stage, textOf, tick, until } from '../support/play.js'
import { findHistoryProblem } from '../support/history.js'
import { call, calls, clientTool, text, times, tool } from '../support/tools.js'
import { ask, costing, pair, research } from '../support/sub-agents.js'

type Pair = Awaited<ReturnType<typeof pair>>

describe('a pause', () => {
  it('reaches the sub-agent, which rests at its next safe point and continues from there', async () => {
    const gate = latch()
    const look = tool('look', () => gate.opened)
    const { parent, child } = await pair([ask(), text('Done.')], [call('look'), text('Seen.')], {
      child: { tools: [look] },
    })
    const play = parent.run()
    await until(() => look.inputs.length === 1)
    play.run.pause()
    gate.open()
    const resting = await play.run.result
    expect(resting).toMatchObject({ state: 'PAUSED', reason: 'paused', resumable: true })
    expect(findHistoryProblem(resting.messages, ['call_1_1'])).toBeNull()
    expect(child.requests).toHaveLength(1)
    play.run.resume()
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
    expect(child.requests).toHaveLength(2)
    expect(look.inputs).toHaveLength(1)
    expect(textOf(parent.wire(1).at(-1))).toBe('Seen.')
  })

  it('ends with steering for the sub-agent as well, and the model reads the message after the batch', async () => {
    const gate = latch()
    const look = tool('look', () => gate.opened)
    const { parent } = await pair([ask(), text('Done.')], [call('look'), text('Seen.')], {
      child: { tools: [look] },
    })
    const play = parent.run()
    await until(() => look.inputs.length === 1)
    play.run.pause()
    gate.open()
    await play.run.result
    play.run.steer('Hurry.')
    await play.end(2)
    expect(parent.wire(1).slice(-2).map(textOf)).toEqual(['Seen.', 'Hurry.'])
  })

  it('that is withdrawn in time causes no rest', async () => {
    const gate = latch()
    const look = tool('look', () => gate.opened)
    const { parent, child } = await pair([ask(), text('Done.')], [call('look'), text('Seen.')], {
      child: { tools: [look] },
    })
    const play = parent.run()
    await until(() => look.inputs.length === 1)
    play.run.pause()
    await tick()
    play.run.resume()
    gate.open()
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
    expect(child.requests).toHaveLength(2)
    expect(play.of('state_changed').map(({ to }) => to)).not.toContain('PAUSED')
  })

  it('that is withdrawn after one sub-agent has rested lets it continue, next to another that works', async () => {
    const [early, gate] = [latch(), latch()]
    const quick = tool('quick', () => early.opened)
    const slow = tool('slow', () => gate.opened)
    const turns: TurnFunction = ({ body }) =>
      body.messages.some(({ role }) => role === 'tool')
        ? text('Seen.')
        : call(JSON.stringify(body.messages).includes('Slowly') ? 'slow' : 'quick')
    const { parent } = await pair(
      [
        calls([
          ['research', { task: 'Slowly.' }],
          ['research', { task: 'Look.' }],
        ]),
        text('Done.'),
      ],
      times(4, turns),
      { child: { tools: [quick, slow] } },
    )
    const play = parent.run()
    await until(() => slow.inputs.length === 1 && quick.inputs.length === 1)
    play.run.pause()
    early.open()
    await until(() =>
      play.of('child_event').some(({ event }) => event.type === 'state_changed' && event.to === 'PAUSED'),
    )
    play.run.resume()
    gate.open()
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
    expect(quick.inputs).toHaveLength(1)
    expect(slow.inputs).toHaveLength(1)
  })

  it('that is withdrawn while the sub-agent asks a person is withdrawn there, too', async () => {
    const gate = latch()
    const tools = [tool('pay', () => 'paid', { needsApproval: true }), tool('look', () => gate.opened)]
    const { parent } = await pair([ask(), text('Done.')], [calls([['look'], ['pay']]), text('Paid.')], {
      child: { tools },
    })
    const play = parent.run()
    await until(() => tools[1]?.inputs.length === 1)
    play.run.pause()
    await tick()
    gate.open()
    expect(await play.rest()).toMatchObject({ state: 'WAITING_FOR_INPUT', reason: 'approval' })
    play.run.resume()
    play.run.approve('call_1_1/call_1_2')
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
    expect(play.of('state_changed').map(({ to }) => to)).not.toContain('PAUSED')
  })

  it('ends with a cancellation', async () => {
    const gate = latch()
    const look = tool('look', () => gate.opened)
    const { parent } = await pair([ask()], [call('look')], { child: { tools: [look] } })
    const play = parent.run()
    await until(() => look.inputs.length === 1)
    play.run.pause()
    gate.open()
    await play.run.result
    play.run.cancel()
    expect(await play.end(1)).toMatchObject({ state: 'CANCELLED' })
    expect(play.of('tool_result')).toMatchObject([{ status: 'interrupted' }])
  })
})

describe('an approval of a sub-agent', () => {
  const pay = () => tool('pay', ({ amount }) => `paid ${amount}`, { needsApproval: true })

  it('appears in the parent run with its path, and is answered there', async () => {
    const tools = [pay()]
    const { parent, child } = await pair(
      [ask(), text('Done.')],
      [
        calls([
          ['pay', { amount: 1 }],
          ['pay', { amount: 2 }],
          ['pay', { amount: 3 }],
        ]),
        text('Paid.'),
      ],
      { child: { tools } },
    )
    const play = parent.run()
    const resting = await play.rest()
    expect(resting).toMatchObject({ state: 'WAITING_FOR_INPUT', reason: 'approval' })
    expect(resting.pending).toMatchObject([
      {
        callId: 'call_1_1/call_1_1',
        name: 'pay',
        arguments: '{"amount":1}',
        needs: 'approval',
        path: ['research'],
      },
      { callId: 'call_1_1/call_1_2' },
      { callId: 'call_1_1/call_1_3' },
    ])
    expect(play.of('approval_requested')).toMatchObject(
      (resting.pending ?? []).map(({ callId, fingerprint, path }) => ({ callId, fingerprint, path })),
    )
    play.run.approve('call_1_1/call_1_2', { amount: 20 })
    expect((await play.rest()).pending).toHaveLength(2)
    play.run.reject('call_1_1/call_1_1', 'Too little.')
    expect(() => play.run.approve('call_1_1/call_1_1')).toThrow(/Waiting: call_1_1\/call_1_3/)
    expect(() => play.run.approve('call_1_1')).toThrow(/is not waiting/)
    play.run.approve('call_1_1/call_1_3', undefined, { fingerprint: resting.pending?.[2]?.fingerprint })
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
    expect(tools[0]?.inputs).toEqual([{ amount: 20 }, { amount: 3 }])
    expect(child.wire(1).slice(-3).map(textOf)).toEqual([
      'Rejected by the user: Too little.',
      expect.stringContaining('paid 20'),
      'paid 3',
    ])
  })

  it('waits until the other calls have ended, next to approvals of the parent run', async () => {
    const own = pay()
    const { parent } = await pair(
      [calls([['research', { task: 'Pay.' }], ['pay', { amount: 7 }], ['look']]), text('Done.')],
      [call('pay', { amount: 1 }), text('Paid.')],
      { parent: { tools: [own, tool('look')] }, child: { tools: [pay()] } },
    )
    const play = parent.run()
    const { pending } = await play.rest()
    expect(pending?.map(({ callId, path }) => [callId, path])).toEqual([
      ['call_1_1/call_1_1', ['research']],
      ['call_1_2', undefined],
    ])
    play.run.approve('call_1_2')
    play.run.approve('call_1_1/call_1_1')
    await play.end(2)
    expect(parent.wire(1).slice(-3).map(textOf)).toEqual(['Paid.', 'paid 7', 'ok'])
  })

  it('passes through two levels, and so does a client call', async () => {
    const leaf = await stage([calls([['pay', { amount: 1 }], ['pick']]), text('Paid.')], {
      tools: [pay(), clientTool('pick')],
    })
    const middle = await stage([ask(), text('All paid.')], { tools: [research(leaf)] })
    const top = await stage([ask(), text('Done.')], { tools: [research(middle)] })
    const play = top.run()
    const { pending } = await play.rest()
    expect(pending).toMatchObject([
      { callId: 'call_1_1/call_1_1/call_1_1', path: ['research', 'research'], needs: 'approval' },
      { callId: 'call_1_1/call_1_1/call_1_2', path: ['research', 'research'], needs: 'client' },
    ])
    play.run.addToolOutput('call_1_1/call_1_1/call_1_2', { colour: 'red' })
    play.run.approve('call_1_1/call_1_1/call_1_1')
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
    expect(leaf.wire(1).slice(-2).map(textOf)).toEqual(['paid 1', '{"colour":"red"}'])
  })

  it('can be answered in another process with the same outcome', async () => {
    const store = memoryStore()
    const { parent, child } = await pair(
      [ask(), text('Done.')],
      [call('pay', { amount: 1 }), text('Paid.')],
      {
        parent: { store },
        child: { tools: [pay()] },
      },
    )
    await parent.run('Go.', { session: 's' }).rest()
    const later = createAgent({
      model: openaiChat({ model: 'gpt-test', baseURL: parent.rehearsal.url, apiKey: 'none' }),
      tools: [research(child)],
      store,
    })
    const run = await later.resume('s')
    const { pending } = await run.result
    expect(pending).toMatchObject([{ callId: 'call_1_1/call_1_1', path: ['research'] }])
    run.approve('call_1_1/call_1_1')
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(child.requests).toHaveLength(2)
  })

  it('cannot be answered if its process has died and nothing was stored, and the model reads that', async () => {
    const { parent } = await pair([ask(), text('Done.')], [call('pay', { amount: 1 })], {
      child: { tools: [pay()] },
    })
    const play = parent.run()
    await play.rest()
    const snapshot = play.run.snapshot() as never
    play.run.cancel()
    const actor = createActor(parent.agent.machine, { snapshot, input: undefined as never })
    actor.start()
    actor.send({ type: 'APPROVE', callId: 'call_1_1/call_1_1' })
    expect(await toPromise(actor)).toMatchObject({ state: 'COMPLETED' })
    expect(textOf(parent.wire(1).at(-1))).toMatch(/^Interrupted: .*outcome is unknown/)
  })
})

/** The parent as each process creates it on the given store. */
function inProcess({ rehearsal }: Pair['parent'], child: Pair['child']) {
  const model = openaiChat({ model: 'gpt-test', baseURL: rehearsal.url, apiKey: 'none' })
  return (store: SessionStore) => createAgent({ model, tools: [research(child)], store })
}

describe('a run whose process is killed', () => {
  interface Moment {
    logs: [sessionId: string, records: LogRecord[]][]
    isDone: boolean
  }

  /** A store that records its state after each write. */
  function witnessed(isDone: () => boolean): { store: SessionStore; moments: Moment[] } {
    const inner = memoryStore()
    const logs = new Map<string, LogRecord[]>()
    const moments: Moment[] = []
    const append: SessionStore['append'] = (lease, records, summary) => {
      inner.append(lease, records, summary)
      logs.set(lease.sessionId, [...(logs.get(lease.sessionId) ?? []), ...records])
      moments.push({ logs: [...logs], isDone: isDone() })
    }
    return { store: { ...inner, append }, moments }
  }

  /** The records after a crash, without leases. */
  function leftOf({ logs }: Moment): SessionStore {
    const store = memoryStore()
    for (const [id, records] of logs) {
      const lease = store.acquire(id, { holder: 'the past', ttlMs: 1_000 })
      store.append(lease, records)
      store.release(lease)
    }
    return store
  }

  const after = (words: string, first: Turn): TurnFunction => {
    return ({ body }) => costing(body.messages.at(-1)?.role === 'tool' ? text(words) : first, 100)
  }

  it('resumes with its sub-agent from any point, repeats nothing, and counts everything once', async () => {
    const work = tool('work', () => 'worked')
    const { parent, child } = await pair(
      times(500, after('Done.', ask())),
      times(500, after('Seen.', call('work'))),
      { child: { tools: [work] } },
    )
    const { store, moments } = witnessed(() => work.inputs.length > 0)
    const again = inProcess(parent, child)
    await again(store).run('Go.', { session: 's' }).result
    expect(work.inputs).toHaveLength(1)
    expect(moments.length).toBeGreaterThan(8)
    expect(new Set(moments.map(({ isDone }) => isDone)).size).toBe(2)

    const outcomes: string[] = []
    for (const moment of moments) {
      if (!moment.logs.some(([id, records]) => id === 's' && records.length > 1)) continue
      work.inputs.length = 0
      const store = leftOf(moment)
      const run = await again(store).resume('s')
      const result = await run.result
      expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
      expect(findHistoryProblem(result.messages)).toBeNull()
      expect(work.inputs.length + (moment.isDone ? 1 : 0)).toBeLessThanOrEqual(1)
      const sessions = await store.list({ children: true })
      expect(sessions).toHaveLength(2)
      const { id = '' } = sessions.find((session) => session.id !== 's') ?? {}
      expect(result.usage.totalTokens).toBe(200 + (await again(store).replay(id)).usage.totalTokens)
      expect(textOf(result.messages.at(-2))).toBe('Seen.')
      outcomes.push(`${work.inputs.length}`)
    }
    expect(new Set(outcomes)).toEqual(new Set(['0', '1']))
  })

  it('resumes with a sub-agent that was paused or had received its answer', async () => {
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const { parent, child } = await pair(
      times(500, after('Done.', ask())),
      times(500, after('Paid.', call('pay'))),
      {
        child: { tools: [pay] },
      },
    )
    const { store, moments } = witnessed(() => pay.inputs.length > 0)
    const again = inProcess(parent, child)
    const first = again(store).run('Go.', { session: 's' })
    const [question] = (await first.result).pending ?? []
    first.approve(question?.callId ?? '')
    expect((await first.result).state).toBe('COMPLETED')

    for (const moment of moments) {
      if (!moment.logs.some(([id, records]) => id === 's' && records.length > 1)) continue
      pay.inputs.length = 0
      const run = await again(leftOf(moment)).resume('s')
      const rest = await run.result
      if (rest.state === 'WAITING_FOR_INPUT') run.approve(rest.pending?.[0]?.callId ?? '')
      expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
      expect(pay.inputs.length + (moment.isDone ? 1 : 0)).toBeLessThanOrEqual(1)
    }
  })
})
