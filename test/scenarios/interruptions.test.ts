import { latch, type Play, type Stage, stage, tick, until } from '../support/play.js'
import { call, calls, text, tool } from '../support/tools.js'

/** External interruptions of a run. */
const stops: [what: string, stop: (theatre: Stage, play: Play) => void, end: object][] = [
  ['cancel', (_theatre, play) => play.run.cancel(), { state: 'CANCELLED', reason: 'cancelled' }],
  ['the deadline', ({ clock }) => clock.increment(60_000), { state: 'TIMED_OUT', reason: 'timeout' }],
]
const limits = { timeoutMs: 60_000 }

describe.each(stops)('%s', (_what, stop, end) => {
  it('ends a back-off immediately', async () => {
    const theatre = await stage([{ status: 503, retryAfter: 120 }], { limits })
    const play = theatre.run()
    await play.event('retry')
    await tick()
    stop(theatre, play)
    expect(await play.end(1)).toMatchObject(end)
    theatre.clock.increment(1_000_000)
    await tick()
    expect(theatre.requests).toHaveLength(1)
  })

  it('ends an active request immediately: the text so far is kept, marked and paid for', async () => {
    const theatre = await stage([text('One two three four', { chunkSize: 4, hang: 2 })], { limits })
    const play = theatre.run('Count.')
    await play.event('stream_chunk', (chunk) => chunk.text === 'two ')
    stop(theatre, play)
    const result = await play.end(1)
    expect(result).toMatchObject({ ...end, output: 'One two ', steps: 0 })
    expect(result.messages.at(-1)).toMatchObject({ content: 'One two ', data: { partial: true } })
    expect(play.of('assistant_message')).toMatchObject([{ partial: true }])
    expect(result.usage).toMatchObject({ estimated: true, outputTokens: 2 })
    expect(result.usage.inputTokens).toBeGreaterThan(0)
  })

  it('ends a request without an answer', async () => {
    const theatre = await stage([{ hang: true }], { limits })
    const play = theatre.run()
    await theatre.arrival()
    stop(theatre, play)
    const result = await play.end(1)
    expect(result).toMatchObject({ ...end, output: '' })
    expect(result.messages).toHaveLength(1)
  })

  it('aborts the signal of a hanging tool, closes its call and ignores later results', async () => {
    const late = latch()
    let aborted = false
    const hang = tool('hang', async (_input, { signal }) => {
      signal.addEventListener('abort', () => (aborted = true))
      await late.opened
      return 'too late'
    })
    const quick = tool('quick', () => 'quick result')
    const theatre = await stage([calls([['quick'], ['hang'], ['quick', { n: 2 }]])], {
      limits,
      tools: [hang, quick],
      toolCalls: { concurrency: 2 },
    })
    const play = theatre.run()
    await play.event('tool_result', ({ callId }) => callId === 'call_1_3')
    stop(theatre, play)
    const result = await play.end(1)
    expect(aborted).toBe(true)
    expect(result).toMatchObject(end)
    expect(result.messages.slice(2)).toMatchObject([
      { tool_call_id: 'call_1_1', content: 'quick result' },
      {
        tool_call_id: 'call_1_2',
        content: expect.stringContaining('unknown'),
        data: { status: 'interrupted' },
      },
      { tool_call_id: 'call_1_3', content: 'quick result' },
    ])
    late.open()
    await tick()
    expect(await play.run.result).toEqual(result)
    expect(play.events.at(-1)?.type).toBe('run_ended')
  })
})

describe('cancel', () => {
  it('takes precedence before the first request, by signal or method', async () => {
    const theatre = await stage([text('Never asked for.')])
    const aborted = theatre.run('Go.', { signal: AbortSignal.abort() })
    const cancelled = theatre.run()
    cancelled.run.cancel()
    await aborted.run.result
    expect(await cancelled.end(0, 2)).toMatchObject({ state: 'CANCELLED' })
    expect(await aborted.end(0, 2)).toMatchObject({ state: 'CANCELLED' })
  })

  it('can come from the signal during a request', async () => {
    const theatre = await stage([{ hang: true }])
    const controller = new AbortController()
    const play = theatre.run('Go.', { signal: controller.signal })
    await theatre.arrival()
    controller.abort()
    expect(await play.end(1)).toMatchObject({ state: 'CANCELLED' })
    play.run.cancel()
    expect(play.of('run_ended')).toHaveLength(1)
  })

  it('closes the connection of the request that it ends', async () => {
    const theatre = await stage([{ hang: true }, text('Hi.')])
    const play = theatre.run()
    await theatre.arrival()
    play.run.cancel()
    await play.end(1)
    expect((await theatre.run().end(2)).output).toBe('Hi.')
  })
})

describe('the deadline', () => {
  it('applies to the run, not to a step', async () => {
    const theatre = await stage([call('wait'), call('wait'), text('Never.')], {
      limits: { timeoutMs: 1_000 },
      tools: [tool('wait', () => theatre.clock.increment(600))],
    })
    expect(await theatre.run().end(2)).toMatchObject({
      state: 'TIMED_OUT',
      error: { code: 'timeout', message: expect.stringContaining('limits.timeoutMs') },
    })
  })

  it('is off by default: a run may take days', async () => {
    const theatre = await stage([call('wait'), text('Done.')], {
      tools: [tool('wait', () => theatre.clock.increment(5 * 86_400_000))],
    })
    expect((await theatre.run().end(2)).state).toBe('COMPLETED')
  })

  it('does not end a run whose tool only exceeds its own timeout', async () => {
    const hang = tool('hang', () => new Promise(() => undefined), { timeoutMs: 100 })
    const theatre = await stage([call('hang'), text('It hangs.')], { limits, tools: [hang] })
    const play = theatre.run()
    await play.event('state_changed', ({ to }) => to === 'WAITING_FOR_TOOL')
    await until(() => hang.inputs.length > 0)
    theatre.clock.increment(100)
    expect((await play.end(2)).output).toBe('It hangs.')
    expect(play.of('tool_result')).toMatchObject([{ status: 'timeout' }])
  })
})
