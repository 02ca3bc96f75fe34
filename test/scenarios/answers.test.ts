import { z } from 'zod'
import {
  type AgentOptions,
  defineShield,
  defineTool,
  memoryStore,
  type PendingCall,
  type Run,
  type SessionStore,
  type Tool,
  UsageError,
} from '../../src/index.js'
import { distant } from '../support/distant.js'
import { again, latch, stage, textOf, until } from '../support/play.js'
import { call, calls, clientTool, text, tool } from '../support/tools.js'
import { sampledKinds } from '../support/extent.js'

const done = text('Done.')

const stores: [string, () => { store?: SessionStore }][] = [
  ['no store', () => ({})],
  ['a synchronous store', () => ({ store: memoryStore() })],
  ['an asynchronous store', () => ({ store: distant(memoryStore()) })],
]

/** One response with a call for a person and a call for a client. */
const mixed = calls([['pay', { to: 'Ann' }], ['pick']])

function pay() {
  return tool('pay', ({ to }) => `paid ${to}`, { needsApproval: true })
}

/** The batch results that the model received. */
const resultsOf = (messages: readonly { role: string; content?: unknown }[]): string[] =>
  messages.filter(({ role }) => role === 'tool').map(textOf)

describe.each(sampledKinds(stores))(
  'calls for a person and for the client in one response, with %s',
  (_, createStore) => {
    const opened = (more: Partial<AgentOptions> = {}) => {
      const paying = pay()
      const options = { ...createStore(), tools: [paying, clientTool('pick')] as Tool[], ...more }
      return { paying, theatre: stage([mixed, done], options) }
    }

    it('are answered in one loop, and the client executes its call once', async () => {
      const { paying, theatre } = opened()
      const play = (await theatre).run()
      let picked = 0
      let result = await play.rest()
      while (result.state === 'WAITING_FOR_INPUT') {
        for (const { callId, needs, fingerprint } of result.pending ?? []) {
          if (needs === 'client') play.run.addToolOutput(callId, `picked ${++picked}`, { fingerprint })
          else play.run.approve(callId, undefined, { fingerprint })
        }
        result = await play.run.result
      }
      expect(resultsOf((await play.end(2)).messages)).toEqual(['paid Ann', 'picked 1'])
      expect([picked, paying.inputs]).toEqual([1, [{ to: 'Ann' }]])
    })

    it('can be answered in reverse order, with a rejection', async () => {
      const { paying, theatre } = opened()
      const play = (await theatre).run()
      await play.rest()
      play.run.addToolOutput('call_1_2', 'picked')
      play.run.reject('call_1_1', 'No.')
      expect(resultsOf((await play.end(2)).messages)).toEqual(['Rejected by the user: No.', 'picked'])
      expect(paying.inputs).toEqual([])
    })

    it('are answered once: a second answer is refused, even with a slow store', async () => {
      const { theatre } = opened()
      const play = (await theatre).run()
      await play.rest()
      play.run.approve('call_1_1')
      play.run.addToolOutput('call_1_2', 'picked')
      const again = [
        () => play.run.approve('call_1_1'),
        () => play.run.reject('call_1_1'),
        () => play.run.addToolOutput('call_1_2', 'picked anew'),
      ]
      for (const answer of again) expect(answer).toThrow(/was already answered/)
      expect(resultsOf((await play.end(2)).messages)).toEqual(['paid Ann', 'picked'])
      for (const answer of again) expect(answer).toThrow(UsageError)
    })

    it("accept the client's output while the approved call runs", async () => {
      const paid = latch()
      const slow = tool('pay', () => paid.opened.then(() => 'paid'), { needsApproval: true })
      const { theatre } = opened({ tools: [slow, clientTool('pick')] })
      const play = (await theatre).run()
      await play.rest()
      play.run.approve('call_1_1')
      await until(() => slow.inputs.length === 1)
      play.run.addToolOutput('call_1_2', 'picked')
      expect(() => play.run.addToolOutput('call_1_2', 'picked')).toThrow(/was already answered/)
      paid.open()
      expect(resultsOf((await play.end(2)).messages)).toEqual(['paid', 'picked'])
      expect(play.of('state_changed').filter(({ to }) => to === 'WAITING_FOR_INPUT')).toHaveLength(1)
    })

    it('wait again for the client if it has not answered', async () => {
      const { theatre } = opened()
      const play = (await theatre).run()
      await play.rest()
      play.run.approve('call_1_1')
      const waiting = await play.rest()
      expect(waiting).toMatchObject({ reason: 'tool_output', pending: [{ callId: 'call_1_2' }] })
      play.run.addToolOutput('call_1_2', 'picked')
      expect(resultsOf((await play.end(2)).messages)).toEqual(['paid Ann', 'picked'])
      expect(play.of('approval_requested')).toHaveLength(1)
    })

    it('accept answers while another call runs, before any question is asked', async () => {
      const looked = latch()
      const slow = tool('look', () => looked.opened.then(() => 'seen'))
      const batch = calls([['look'], ['pay', { to: 'Ann' }], ['pay', { to: 'Bob' }], ['pick']])
      const play = (
        await stage([batch, done], { ...createStore(), tools: [slow, pay(), clientTool('pick')] })
      ).run()
      await until(() => slow.inputs.length === 1)
      play.run.addToolOutput('call_1_4', 'picked')
      play.run.approve('call_1_2')
      play.run.reject('call_1_3', 'No.')
      expect(() => play.run.approve('call_1_1')).toThrow(UsageError)
      looked.open()
      const { messages } = await play.end(2)
      expect(resultsOf(messages)).toEqual(['seen', 'paid Ann', 'Rejected by the user: No.', 'picked'])
      expect(play.of('approval_requested')).toEqual([])
    })

    it("accept the client's output while shields check other results, and shields check it, too", async () => {
      const looking = latch()
      const shown: string[] = []
      const shield = defineShield({
        name: 'slow',
        check: async (content) => {
          shown.push(content)
          await looking.opened
          return { action: 'allow' }
        },
      })
      const { theatre } = opened({ shields: { toolOutput: [shield] } })
      const play = (await theatre).run()
      await play.rest()
      play.run.approve('call_1_1')
      await until(() => shown.length > 0)
      play.run.addToolOutput('call_1_2', 'picked')
      looking.open()
      expect(resultsOf((await play.end(2)).messages)).toEqual(['paid Ann', 'picked'])
      expect(shown).toContain('picked')
    })
  },
)

describe.each(stores.slice(1))(
  'questions of a batch that another process continues, with %s',
  (_, createStore) => {
    it('can be answered in any order, immediately after the takeover', async () => {
      const options = { ...createStore(), tools: [pay(), clientTool('pick')] }
      const theatre = await stage([mixed, done], options)
      await theatre.run('Go.', { session: 's' }).rest()
      const run = await again(theatre, options).resume('s')
      run.approve('call_1_1')
      run.addToolOutput('call_1_2', 'picked')
      expect(() => run.addToolOutput('call_1_2', 'picked')).toThrow(/was already answered/)
      expect(resultsOf((await run.result).messages)).toEqual(['paid Ann', 'picked'])
    })

    it("accept the client's output while the approved call is repeated", async () => {
      const paid = latch()
      const calm = { needsApproval: true, idempotent: true }
      const dying = {
        ...createStore(),
        tools: [tool('pay', () => new Promise(() => {}), calm), clientTool('pick')],
      }
      const theatre = await stage([mixed, done], dying)
      const play = theatre.run('Go.', { session: 's' })
      await play.rest()
      play.run.approve('call_1_1')
      await play.event('step_started', ({ stepType }) => stepType === 'tool_execution')
      // Another process sees only the records written so far.
      const from = await theatre.agent.fork('s')
      const slow = tool('pay', () => paid.opened.then(() => 'paid'), calm)
      const run = await again(theatre, { ...dying, tools: [slow, clientTool('pick')] }).resume(from)
      await until(() => slow.inputs.length === 1)
      run.addToolOutput('call_1_2', 'picked')
      paid.open()
      expect(resultsOf((await run.result).messages)).toEqual(['paid', 'picked'])
    })
  },
)

describe.each(sampledKinds(stores))('questions of a sub-agent, with %s', (_, createStore) => {
  const team = async (childTurns: Parameters<typeof stage>[0], more: Tool[] = []) => {
    const paying = pay()
    const child = await stage(childTurns, { tools: [paying, clientTool('pick')] })
    const research = child.agent.asTool({ name: 'research', description: 'Finds out.' }) as Tool
    const options = { ...createStore(), tools: [research, paying, clientTool('pick'), ...more] }
    return { options, paying }
  }
  const answered = (run: Run, { callId, needs }: PendingCall) => {
    if (needs === 'client') run.addToolOutput(callId, 'picked')
    else run.approve(callId)
  }

  it('can be answered in any order, mixed with questions of the run', async () => {
    for (const order of [
      [0, 1, 2, 3],
      [3, 2, 1, 0],
      [1, 3, 0, 2],
    ]) {
      const { options, paying } = await team([mixed, text('Found.')])
      const batch = calls([['research', { task: 'Look.' }], ['pay', { to: 'Bob' }], ['pick']])
      const play = (await stage([batch, done], options)).run()
      const { pending = [] } = await play.rest()
      expect(pending).toHaveLength(4)
      for (const i of order) answered(play.run, pending[i] as PendingCall)
      expect(resultsOf((await play.end(2)).messages)).toEqual(['Found.', 'paid Bob', 'picked'])
      expect(paying.inputs).toHaveLength(2)
    }
  })

  it('can be answered while the run executes a call', async () => {
    const looked = latch()
    const slow = tool('look', () => looked.opened.then(() => 'seen'))
    const { options } = await team([mixed, text('Found.')], [slow])
    const batch = calls([['research', { task: 'Look.' }], ['look']])
    const play = (await stage([batch, done], options)).run()
    await play.event('child_event', ({ event }) => event.type === 'approval_requested')
    await until(() => {
      try {
        play.run.approve('call_1_1/call_1_1')
        return true
      } catch {
        return false
      }
    })
    play.run.addToolOutput('call_1_1/call_1_2', 'picked')
    expect(() => play.run.approve('call_1_1/call_1_1')).toThrow(/was already answered/)
    looked.open()
    expect(resultsOf((await play.end(2)).messages)).toEqual(['Found.', 'seen'])
  })
})

describe("an edit that does not match the tool's schema", () => {
  const amount = z.object({ amount: z.number() })
  const transfer = (input: z.ZodType<{ amount: number }, { amount: number }> = amount) =>
    defineTool({
      name: 'transfer',
      description: 'Moves money.',
      input,
      needsApproval: true,
      execute: ({ amount: sum }) => `moved ${sum}`,
    }) as Tool

  it.each(stores)('is refused to the person, and the call stays open, with %s', async (_, createStore) => {
    const turns = [call('transfer', { amount: 99 }), done]
    const play = (await stage(turns, { ...createStore(), tools: [transfer()] })).run()
    await play.rest()
    for (const edit of [{ amount: 'all' }, { sum: 1 }, 7, [{ amount: 1 }], '{"amount":1}']) {
      expect(() => play.run.approve('call_1_1', edit)).toThrow(
        expect.objectContaining({ name: 'UsageError', code: 'invalid_input', subject: 'call_1_1' }),
      )
    }
    expect(() => play.run.approve('call_1_1', { amount: 'all' })).toThrow(
      /still waiting\.[^]*- amount: .*number/,
    )
    play.run.approve('call_1_1', { amount: 1 })
    const { messages } = await play.end(2)
    expect(resultsOf(messages)).toEqual([expect.stringContaining('moved 1')])
  })

  it('is refused if it is null, although the tool needs no arguments', async () => {
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const play = (await stage([call('pay', { to: 'Ann' }), done], { tools: [pay] })).run()
    await play.rest()
    expect(() => play.run.approve('call_1_1', null as never)).toThrow(
      /still waiting\. The arguments of call '.*' are null/,
    )
    play.run.approve('call_1_1')
    await play.end(2)
    expect(pay.inputs).toEqual([{ to: 'Ann' }])
  })

  it('is also refused for a call of a sub-agent', async () => {
    const child = await stage([call('transfer', { amount: 99 }), text('Moved.')], { tools: [transfer()] })
    const research = child.agent.asTool({ name: 'research', description: 'Finds out.' }) as Tool
    const play = (await stage([call('research', { task: 'Move.' }), done], { tools: [research] })).run()
    const { pending = [] } = await play.rest()
    const callId = pending[0]?.callId ?? ''
    expect(() => play.run.approve(callId, { amount: 'all' })).toThrow(/- amount: .*number/)
    play.run.approve(callId, { amount: 2 })
    await play.end(2)
    expect(textOf(child.wire(1).at(-1))).toContain('moved 2')
  })

  it('is refused with a warning if the schema is asynchronous', async () => {
    const slow = amount.refine(async ({ amount: sum }) => sum < 10, 'at most 9')
    const play = (await stage([call('transfer', { amount: 1 }), done], { tools: [transfer(slow)] })).run()
    await play.rest()
    play.run.approve('call_1_1', { amount: 99 })
    expect(await play.event('warning')).toMatchObject({
      code: 'answer_refused',
      message: expect.stringContaining('at most 9') as string,
    })
    play.run.approve('call_1_1', { amount: 2 })
    expect(resultsOf((await play.end(2)).messages)).toEqual([expect.stringContaining('moved 2')])
  })
})

test('an output of the client for outdated arguments is refused', async () => {
  const theatre = await stage([call('pick', { n: 1 }), done], { tools: [clientTool('pick')] })
  const play = theatre.run()
  const { pending = [] } = await play.rest()
  expect(() => play.run.addToolOutput('call_1_1', 'picked', { fingerprint: 'another' })).toThrow(
    /outdated arguments/,
  )
  play.run.addToolOutput('call_1_1', 'picked', { fingerprint: pending[0]?.fingerprint })
  expect((await play.end(2)).output).toBe('Done.')
})
