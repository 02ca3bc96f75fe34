import { type AgentOptions, memoryStore, presets } from '../../src/index.js'
import type { TurnFunction } from '../../src/rehearsal/index.js'
import { latch, stage, textOf, tick } from '../support/play.js'
import { call, calls, text, times, tool } from '../support/tools.js'
import { ask, costing, pair, priced, research, type Turns } from '../support/sub-agents.js'

describe('the budget', () => {
  it('is the rest of the parent’s budget: a sub-agent that exhausts it ends the run', async () => {
    const { parent, child } = await pair([costing(ask(), 100)], times(9, costing(call('look'), 400)), {
      parent: { limits: { tokenBudget: 1_000 } },
      child: { tools: [tool('look', ({ n }) => n)] },
    })
    const play = parent.run()
    const result = await play.end(1)
    expect(result).toMatchObject({ state: 'BUDGET_EXCEEDED', reason: 'token_budget' })
    expect(result.usage.totalTokens).toBe(1_300)
    expect(child.requests).toHaveLength(3)
    expect(textOf(result.messages.at(-1))).toMatch(/did not finish: it used up its budget.*look \(3\)/s)
  })

  it('is shared: two sub-agents exceed it by at most one step each', async () => {
    const { parent, child } = await pair(
      [
        costing(
          calls([
            ['research', { task: 'A' }],
            ['research', { task: 'B' }],
          ]),
          100,
        ),
      ],
      times(20, costing(call('look'), 300)),
      { parent: { limits: { tokenBudget: 1_000 } }, child: { tools: [tool('look')] } },
    )
    const play = parent.run()
    const result = await play.end(1)
    expect(result).toMatchObject({ state: 'BUDGET_EXCEEDED' })
    expect(child.requests.length).toBeLessThanOrEqual(5)
    expect(result.usage.totalTokens).toBeLessThanOrEqual(1_000 + 2 * 300)
    expect(play.of('tool_result')).toHaveLength(2)
  })

  it('includes the cost of concurrent requests', async () => {
    const streamed = latch()
    const turn: TurnFunction = async ({ body }) => {
      if (textOf(body.messages[0]) === 'B') return text('Half an answer.', { chunkSize: 4, hang: 1 })
      await streamed.opened
      return priced('Much.', 2_000)
    }
    const { parent } = await pair(
      [
        costing(
          calls([
            ['research', { task: 'B' }],
            ['research', { task: 'A' }],
          ]),
          100,
        ),
      ],
      [turn, turn],
      { parent: { limits: { tokenBudget: 1_000 } } },
    )
    const play = parent.run()
    await play.event('child_event', ({ event }) => event.type === 'stream_chunk' && event.text !== '')
    streamed.open()
    const { usage, state } = await play.end(1)
    expect(state).toBe('BUDGET_EXCEEDED')
    expect(usage).toMatchObject({ estimated: true })
    expect(usage.totalTokens).toBeGreaterThan(2_100)
  })

  it('starts no sub-agent once it is spent', async () => {
    const { parent, child } = await pair([costing(ask(), 1_000)], [text('No.')], {
      parent: { limits: { tokenBudget: 1_000 }, budget: { finishBatch: true } },
    })
    expect((await parent.run().end(1)).state).toBe('BUDGET_EXCEEDED')
    expect(child.requests).toHaveLength(0)
  })
})

describe('an unfinished sub-agent', () => {
  it.each<[string, Partial<AgentOptions>, object, Turns, RegExp]>([
    [
      'its step limit',
      {},
      { maxSteps: 2 },
      times(2, call('look', {}, { text: 'I saw a bird.' })),
      /limit of 2 steps.*I saw a bird/s,
    ],
    [
      'its own budget',
      { limits: { tokenBudget: 10 } },
      {},
      [costing(call('look'), 20)],
      /used up its budget.*look \(1\)/s,
    ],
    [
      'a guard',
      { ...presets.openhuman },
      {},
      [...times(3, call('look')), text('I saw it three times.')],
      /a guardrail stopped it \(repeated_call\)/,
    ],
    [
      'its provider',
      { retry: { maxAttempts: 1 } },
      {},
      [{ status: 503 }],
      /it failed \(server_error\).*no output yet/s,
    ],
  ])(
    'that was stopped by %s is reported as unfinished, with its partial output',
    async (_, options, how, turns, words) => {
      const { parent, child } = await pair([ask(), text('Then I do it.')], turns, {
        child: { tools: [tool('look', () => 'seen', { readOnly: true })], ...options },
        tool: how,
      })
      const play = parent.run()
      expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
      expect(textOf(parent.wire(1).at(-1))).toMatch(/^The sub-agent did not finish: /)
      expect(textOf(parent.wire(1).at(-1))).toMatch(words)
      expect(play.of('tool_result')).toMatchObject([{ status: 'error' }])
      expect(child.requests).toHaveLength(turns.length)
    },
  )
})

describe('the lifted cap', () => {
  const stepwise = (steps: number): TurnFunction[] =>
    Array.from({ length: steps }, (_, n) => () => (n < steps - 1 ? call('look', { n }) : text('All seen.')))
  const look = () => tool('look', ({ n }) => `page ${n}`, { readOnly: true })

  it('is set by asTool({ maxSteps }): 60 steps instead of its own 10', async () => {
    const { parent, child } = await pair([ask(), text('Done.')], stepwise(60), {
      child: { tools: [look()], limits: { maxSteps: 10 } },
      tool: { maxSteps: 60 },
    })
    await parent.run().end(2)
    expect(child.requests).toHaveLength(60)
    expect(textOf(parent.wire(1).at(-1))).toBe('All seen.')
  })

  it('is set by presets.openhumanTask: 60 steps, where openhuman stops after 10', async () => {
    const task = await pair([ask(), text('Done.')], stepwise(60), {
      child: { ...presets.openhumanTask, tools: [look()] },
    })
    await task.parent.run().end(2)
    expect(textOf(task.parent.wire(1).at(-1))).toBe('All seen.')
    const chat = await pair([ask(), text('Done.')], stepwise(60), {
      child: { ...presets.openhuman, tools: [look()] },
    })
    await chat.parent.run().end(2)
    expect(textOf(chat.parent.wire(1).at(-1))).toMatch(/limit of 10 steps/)
    expect(chat.child.requests).toHaveLength(10)
  })
})

describe('cancelling', () => {
  it('interrupts the request of the sub-agent, counts its cost, and is logged', async () => {
    const store = memoryStore()
    const { parent } = await pair([ask()], [text('Half an answer.', { chunkSize: 4, hang: 1 })], {
      parent: { store },
    })
    const play = parent.run('Go.', { session: 's' })
    await play.event('child_event', ({ event }) => event.type === 'stream_chunk' && event.text !== '')
    const before = play.of('usage').at(-1)?.run.totalTokens ?? 0
    play.run.cancel()
    const result = await play.end(1)
    expect(result).toMatchObject({ state: 'CANCELLED' })
    expect(result.usage.totalTokens).toBeGreaterThan(before)
    const sessions = store.list({ children: true })
    expect(sessions.map(({ summary, holder }) => [summary?.state, holder])).toEqual([
      ['CANCELLED', null],
      ['CANCELLED', null],
    ])
  })

  it('leaves nothing running, at any depth', async () => {
    const leaf = await stage([{ hang: true }])
    const middle = await stage([ask()], { tools: [research(leaf)] })
    const top = await stage([ask()], { tools: [research(middle)] })
    const play = top.run()
    await leaf.arrival()
    play.run.cancel()
    await play.end(1)
    const ends = play.of('child_event').filter(({ event }) => event.type === 'run_ended')
    expect(ends.map(({ path, event }) => [path.length, 'state' in event && event.state])).toEqual([
      [2, 'CANCELLED'],
      [1, 'CANCELLED'],
    ])
  })

  it('also ends a sub-agent that waits for a person', async () => {
    const store = memoryStore()
    const { parent } = await pair([ask()], [call('pay')], {
      parent: { store },
      child: { tools: [tool('pay', () => 'paid', { needsApproval: true })] },
    })
    const play = parent.run()
    await play.rest()
    play.run.cancel()
    await play.end(1)
    await tick()
    expect(store.list({ children: true }).map(({ summary }) => summary?.state)).toEqual([
      'CANCELLED',
      'CANCELLED',
    ])
  })

  it('ends a waiting sub-agent in another process', async () => {
    const store = memoryStore()
    const { parent } = await pair([ask()], [call('pay')], {
      parent: { store },
      child: { tools: [tool('pay', () => 'paid', { needsApproval: true })] },
    })
    await parent.run('Go.', { session: 's' }).rest()
    const resumed = await parent.agent.resume('s')
    await resumed.result
    resumed.cancel()
    await resumed.result
    await tick()
    await tick()
    expect(store.list({ children: true }).map(({ summary }) => summary?.state)).toEqual([
      'CANCELLED',
      'CANCELLED',
    ])
  })
})

describe('the deadline', () => {
  it('applies to the sub-agent', async () => {
    const { parent, child } = await pair([ask()], [{ hang: true }], {
      parent: { limits: { timeoutMs: 1_000 } },
    })
    const play = parent.run()
    await child.arrival()
    parent.clock.increment(1_000)
    expect(await play.end(1)).toMatchObject({ state: 'TIMED_OUT' })
    expect(play.of('child_event').at(-1)?.event).toMatchObject({ type: 'run_ended', state: 'CANCELLED' })
  })

  it('can be set per sub-agent with asTool({ timeoutMs })', async () => {
    const { parent, child } = await pair([ask(), text('.')], [{ hang: true }], { tool: { timeoutMs: 500 } })
    const play = parent.run()
    await child.arrival()
    child.clock.increment(500)
    await play.end(2)
    expect(textOf(parent.wire(1).at(-1))).toMatch(/it timed out/)
  })
})
