import { memoryStore, UsageError } from '../../src/index.js'
import { distant } from '../support/distant.js'
import { latch, stage, tick } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'

const done = text('Done.')

describe('steering', () => {
  it('reaches the model at the next safe point, after the running batch', async () => {
    const release = latch()
    const slow = tool('slow', () => release.opened.then(() => 'slow result'))
    const theatre = await stage([call('slow'), done], { tools: [slow] })
    const play = theatre.run('Go.')
    await play.event('tool_call')
    play.run.steer('Be brief.')
    expect(play.of('user_message')).toHaveLength(1)
    release.open()
    await play.end(2)
    expect(theatre.wire(1).slice(-2)).toMatchObject([
      { role: 'tool', content: 'slow result' },
      { role: 'user', content: 'Be brief.' },
    ])
    expect(play.of('user_message').at(-1)?.message.data).toEqual({ reason: 'steering' })
  })

  it('during the final answer gets its own answer', async () => {
    const theatre = await stage([text('One moment please.', { chunkSize: 4 }), text('Oui.')])
    const play = theatre.run()
    await play.event('stream_chunk')
    play.run.steer('In French.')
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED', output: 'Oui.' })
    expect(
      theatre
        .wire(1)
        .slice(-2)
        .map(({ content }) => content),
    ).toEqual(['One moment please.', 'In French.'])
  })

  it('resets no counter', async () => {
    const theatre = await stage([call('work', { n: 1 }), call('work', { n: 2 })], {
      tools: [tool('work')],
      limits: { maxSteps: 2 },
    })
    const play = theatre.run()
    await play.event('tool_result')
    play.run.steer('Go on.')
    expect(await play.end(2)).toMatchObject({ state: 'MAX_STEPS', steps: 2 })
  })

  it('needs text', async () => {
    const theatre = await stage([{ hang: true }])
    const play = theatre.run()
    await theatre.arrival()
    expect(() => play.run.steer('  ')).toThrow(UsageError)
  })
})

describe('a pause', () => {
  it('takes effect at the next safe point, and resume continues', async () => {
    const work = tool('work')
    const theatre = await stage([call('work'), done], { tools: [work] })
    const play = theatre.run()
    await play.event('tool_call')
    play.run.pause()
    expect(await play.rest()).toMatchObject({ state: 'PAUSED', reason: 'paused', resumable: true })
    expect(theatre.requests).toHaveLength(1)
    expect(work.inputs).toHaveLength(1)
    play.run.resume()
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  })

  it('takes effect immediately during a back-off', async () => {
    const theatre = await stage([{ status: 503 }, done])
    const play = theatre.run()
    await play.event('retry')
    play.run.pause()
    expect((await play.rest()).state).toBe('PAUSED')
    theatre.clock.increment(1_000_000)
    await tick()
    expect(theatre.requests).toHaveLength(1)
    play.run.resume()
    expect((await play.end(2)).output).toBe('Done.')
  })

  it('yields to a natural end', async () => {
    const theatre = await stage([text('All of it is here.', { chunkSize: 4 })])
    const play = theatre.run()
    await play.event('stream_chunk')
    play.run.pause()
    expect((await play.end(1)).state).toBe('COMPLETED')
  })

  it('is ended by steering, too', async () => {
    const theatre = await stage([call('work'), done], { tools: [tool('work')] })
    const play = theatre.run()
    await play.event('tool_call')
    play.run.pause()
    await play.rest()
    play.run.steer('Another way.')
    await play.end(2)
    expect(theatre.wire(1).at(-1)).toMatchObject({ role: 'user', content: 'Another way.' })
  })

  it('suspends the deadline, and can end in a cancellation', async () => {
    const theatre = await stage([call('work'), { hang: true }], {
      tools: [tool('work')],
      limits: { timeoutMs: 1_000 },
    })
    const play = theatre.run()
    await play.event('tool_call')
    play.run.pause()
    await play.rest()
    theatre.clock.increment(1_000_000)
    expect((await play.rest()).state).toBe('PAUSED')
    play.run.resume()
    await theatre.arrival(2)
    play.run.pause()
    play.run.cancel()
    expect((await play.end(2)).state).toBe('CANCELLED')
  })
})

describe('an interactive run', () => {
  it('waits for the next message instead of ending, with new steps for each', async () => {
    const theatre = await stage([call('work'), text('First.'), call('work', { n: 2 }), text('Second.')], {
      tools: [tool('work')],
      interactive: true,
      limits: { maxSteps: 2 },
    })
    const play = theatre.run('One.')
    expect(() => play.run.reply('Too early.')).toThrow(UsageError)
    await play.event('state_changed', ({ reason }) => reason === 'message')
    expect(play.run.state).toBe('WAITING_FOR_INPUT')
    play.run.reply('Two.')
    await play.event('assistant_message', ({ message }) => message.content === 'Second.')
    expect(play.of('user_message').map(({ message }) => message.content)).toEqual(['One.', 'Two.'])
    play.run.cancel()
    expect(await play.end(4)).toMatchObject({ state: 'CANCELLED', output: 'Second.' })
  })

  it('settles at each rest, as does its iteration, and result then belongs to the next rest', async () => {
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const theatre = await stage([call('pay'), text('Paid.'), text('Bye.')], {
      tools: [pay],
      interactive: true,
    })
    const { run } = theatre.run()
    const readSettled = async (): Promise<string[]> => {
      const types: string[] = []
      for await (const { type } of run) types.push(type)
      return types
    }
    expect(await readSettled()).toContain('approval_requested')
    expect(await run.result).toMatchObject({ state: 'WAITING_FOR_INPUT', reason: 'approval' })
    run.approve('call_1_1')
    expect(await readSettled()).toContain('assistant_message')
    expect(await run.result).toMatchObject({ state: 'WAITING_FOR_INPUT', reason: 'message', output: 'Paid.' })
    run.reply('Good night.')
    expect(await run.result).toMatchObject({ reason: 'message', output: 'Bye.', resumable: true })
    run.reply('And on.')
    const last = readSettled()
    run.cancel()
    expect(await last).toContain('run_ended')
    expect(await run.result).toMatchObject({ state: 'CANCELLED', resumable: false })
  })

  it.each(['memory', 'asynchronous'])(
    'settles, and releases its session, with a store: %s',
    async (which) => {
      const store = memoryStore()
      const theatre = await stage([text('Hi.'), text('Ho.')], {
        interactive: true,
        store: which === 'memory' ? store : distant(store),
      })
      const { run } = theatre.run('Hello.', { session: 's' })
      expect(await run.result).toMatchObject({ reason: 'message', output: 'Hi.' })
      expect(store.list()).toMatchObject([{ holder: null, summary: { state: 'WAITING_FOR_INPUT' } }])
      const elsewhere = await theatre.agent.resume('s')
      expect(await elsewhere.result).toMatchObject({ reason: 'message', output: 'Hi.' })
      elsewhere.reply('And now?')
      expect(await elsewhere.result).toMatchObject({ reason: 'message', output: 'Ho.' })
    },
  )

  it('ends by its deadline, which is suspended between messages', async () => {
    const theatre = await stage([text('Hi.'), { hang: true }], {
      interactive: true,
      limits: { timeoutMs: 1_000 },
    })
    const play = theatre.run()
    await play.event('state_changed', ({ reason }) => reason === 'message')
    theatre.clock.increment(1_000_000)
    play.run.reply('Still there?')
    await theatre.arrival(2)
    theatre.clock.increment(1_000)
    expect((await play.end(2)).state).toBe('TIMED_OUT')
  })

  it('accepts steering as a message while it waits', async () => {
    const theatre = await stage([text('Hi.'), text('Ho.')], { interactive: true })
    const play = theatre.run()
    await play.event('state_changed', ({ reason }) => reason === 'message')
    play.run.steer('Sing on.')
    await play.event('assistant_message', ({ message }) => message.content === 'Ho.')
    play.run.cancel()
    await play.end(2)
    expect(theatre.wire(1).at(-1)?.content).toBe('Sing on.')
  })
})
