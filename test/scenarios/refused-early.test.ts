import { createActor, waitFor } from 'xstate'
import { ConfigError, createAgent, memoryStore, presets, UsageError } from '../../src/index.js'
import { ManualModel } from '../support/manual-model.js'
import { latch, stage, textOf, tick } from '../support/play.js'
import { call, calls, clientTool, text, tool } from '../support/tools.js'

const done = text('Done.')
const never = new Promise<never>(() => undefined)

describe('context.window', () => {
  test('counts with a custom tokenizer; a tokenizer that cannot count is refused immediately', async () => {
    const tokenizer = { count: (words: string) => words.length }
    const play = await stage([done], { context: { window: 1_000 }, tokenizer })
    expect((await play.run().end(1)).state).toBe('COMPLETED')
    const wrong = { count: 7 } as unknown as typeof tokenizer
    expect(() => createAgent({ model: new ManualModel(), tokenizer: wrong })).toThrow(ConfigError)
  })
})

test('an unknown preset is refused by name', () => {
  const loose = presets as unknown as Record<string, object>
  expect(() => ({ ...loose['openHuman'] })).toThrow(/no preset 'openHuman'. Did you mean 'openhuman'\?/)
  expect(() => ({ ...loose['zzz'] })).toThrow(
    /no preset 'zzz'. The presets are aar, openhuman, openhumanTask, llamaStack, strands/,
  )
  expect(Object.keys({ ...loose['aar'] })).toContain('limits')
  expect(JSON.parse(JSON.stringify(presets))).toEqual({ ...presets })
  expect('nothing' in presets).toBe(false)
})

describe('needsApproval that never settles', () => {
  const hanging = (timeoutMs?: number) => {
    const called = latch()
    const needsApproval = () => {
      called.open()
      return never
    }
    const options = { needsApproval, ...(timeoutMs !== undefined && { timeoutMs }) }
    return { called: called.opened, pay: tool('pay', () => 'paid', options as object) }
  }

  test.each([
    ['the time limit of its tool', { timeoutMs: 5_000 }, 5_000],
    ['the time limit of all tools', {}, 9_000],
  ])(
    'ends with %s as an error result, and the call does not run',
    async (_, { timeoutMs }: { timeoutMs?: number }, ends) => {
      const { pay, called } = hanging(timeoutMs)
      const look = tool('look')
      const theatre = await stage([calls([['pay'], ['look']]), done], {
        tools: [pay, look],
        toolCalls: { timeoutMs: 9_000 },
      })
      const play = theatre.run()
      await called
      theatre.clock.increment(ends)
      expect((await play.end(2)).state).toBe('COMPLETED')
      expect(pay.inputs).toEqual([])
      expect(look.inputs).toHaveLength(1)
      expect(play.of('approval_requested')).toEqual([])
      expect(play.of('tool_result')).toMatchObject([
        { status: 'timeout', durationMs: ends },
        { status: 'ok' },
      ])
      expect(textOf(theatre.wire(1).at(-2))).toMatch(/was not called: needsApproval did not return/)
    },
  )

  test('can be cancelled', async () => {
    const { pay, called } = hanging()
    const theatre = await stage([call('pay')], { tools: [pay] })
    const play = theatre.run()
    await called
    await tick()
    play.run.cancel()
    expect((await play.end(1)).state).toBe('CANCELLED')
    expect(pay.inputs).toEqual([])
  })

  test('is neither called again nor skipped when the run continues in another process', async () => {
    const store = memoryStore()
    const { pay, called } = hanging(5_000)
    const theatre = await stage([calls([['pay'], ['there']]), done], {
      tools: [pay, clientTool('there')],
      store,
    })
    const play = theatre.run('Go.', { session: 's' })
    await called
    await tick()
    theatre.clock.increment(5_000)
    expect((await play.rest()).pending).toMatchObject([{ name: 'there' }])
    const run = await theatre.agent.resume('s')
    run.addToolOutput('call_1_2', 'seen')
    expect((await run.result).state).toBe('COMPLETED')
    expect(pay.inputs).toEqual([])
  })
})

describe('a session of a store, for a custom actor', () => {
  test('is refused by its id, and accepted with readSession', async () => {
    const store = memoryStore()
    const theatre = await stage([text('One.'), text('Two.')], { store })
    const { agent } = theatre
    await theatre.run('Count.', { session: 's' }).end(1)
    expect(() => agent.createInput('Go on.', { session: 's' })).toThrow(UsageError)
    expect(() => agent.createInput('Go on.', { session: 's' })).toThrow(
      /await agent\.readSession\('s'\).*agent\.run\(/,
    )
    const session = await agent.readSession('s')
    const actor = createActor(agent.machine, {
      input: agent.createInput('Go on.', { session }),
      clock: theatre.clock,
    }).start()
    const { output } = await waitFor(actor, ({ status }) => status === 'done')
    expect(output?.messages.map(({ content }) => content)).toEqual(['Count.', 'One.', 'Go on.', 'Two.'])
    expect((await agent.replay('s')).messages).toHaveLength(2)
    await expect(agent.readSession('nobody')).rejects.toMatchObject({ code: 'unknown_session' })
  })

  test('has its waiting calls closed, and stays unchanged', async () => {
    const store = memoryStore()
    const theatre = await stage([call('there'), done], { store, tools: [clientTool('there')] })
    await theatre.run('Go.', { session: 's' }).rest()
    const session = await theatre.agent.readSession('s')
    expect(session.messages.at(-1)).toMatchObject({ role: 'tool', data: { status: 'not_executed' } })
    expect((await theatre.agent.replay('s')).run).toMatchObject({ state: 'WAITING_FOR_INPUT' })
  })

  test('needs a store; without one, the agent’s sessions are found by their ids', async () => {
    const theatre = await stage([text('One.')])
    await theatre.run('Count.', { session: 's' }).end(1)
    expect(theatre.agent.createInput('Go on.', { session: 's' }).messages).toHaveLength(2)
    await expect(theatre.agent.readSession('s')).rejects.toMatchObject({ code: 'no_store' })
  })
})

describe('a forgotten session', () => {
  test.each([
    ['without a store', undefined],
    ['with a store', memoryStore()],
  ])('starts again %s, but not while a run uses it', async (_, store) => {
    const theatre = await stage([text('One.'), call('there'), text('Anew.')], {
      tools: [clientTool('there')],
      ...(store && { store }),
    })
    const { agent } = theatre
    expect(await agent.deleteSession('s')).toBe(false)
    await theatre.run('Count.', { session: 's' }).run.result
    const waiting = theatre.run('Ask.', { session: 's' })
    await waiting.run.result
    if (!store) await expect(agent.deleteSession('s')).rejects.toMatchObject({ code: 'session_busy' })
    waiting.run.cancel()
    await waiting.run.result
    expect(await agent.deleteSession('s')).toBe(true)
    expect(await agent.deleteSession('s')).toBe(false)
    const { messages } = await theatre.run('Hello?', { session: 's' }).run.result
    expect(messages.map(({ content }) => content)).toEqual(['Hello?', 'Anew.'])
    await expect(agent.deleteSession('../s')).rejects.toMatchObject({ code: 'invalid_session' })
  })
})
