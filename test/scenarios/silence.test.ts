import type { ServerResponse } from 'node:http'
import { SimulatedClock } from 'xstate'
import {
  type AgentOptions,
  createAgent,
  type ModelProvider,
  openaiChat,
  patternShield,
} from '../../src/index.js'
import { type Answer, serve } from '../core/models/server.js'
import { stage, tick, until } from '../support/play.js'
import { call, clientTool, text, tool } from '../support/tools.js'

const piece = (delta: object) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`
const comment = ': keep-alive\n\n'
const blank = '\n'

/** A run whose model output the test controls. The run receives it before the clock advances. */
async function listening(options: Partial<AgentOptions> = {}) {
  const streams: ServerResponse[] = []
  const keep: Answer = (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    streams.push(response)
  }
  const server = await serve(keep)
  const chat = openaiChat({ model: 'm', baseURL: server.baseURL, apiKey: 'none' })
  let received = 0
  const model: ModelProvider = {
    ...chat,
    request: (request, callbacks) =>
      chat.request(request, {
        ...callbacks,
        onActivity: (kind) => {
          callbacks.onActivity(kind)
          received += 1
        },
      }),
  }
  const clock = new SimulatedClock()
  const run = createAgent({ model, clock, retry: { maxAttempts: 1 }, ...options }).run('Go.')
  await until(() => received > 0)
  return {
    clock,
    run,
    async say(words: string) {
      const before = received
      streams.at(-1)?.write(words)
      await until(() => received > before)
    },
    end: (words: string) => streams.at(-1)?.end(words),
    async [Symbol.asyncDispose]() {
      run.cancel()
      await server[Symbol.asyncDispose]()
    },
  }
}

const minute = 60_000

describe('an interrupted answer', () => {
  it('is paid for up to that point, cleared by a shield or not', async () => {
    const spent = async (options: Partial<AgentOptions>) => {
      await using it = await listening(options)
      await it.say(piece({ content: 'word '.repeat(200) }))
      it.clock.increment(2 * minute)
      const { state, error, usage } = await it.run.result
      expect({ state, code: error?.code }).toEqual({ state: 'ERROR', code: 'idle_timeout' })
      return usage
    }
    const shield = patternShield({ name: 'numbers', patterns: [/4711/], action: 'block' })
    const shielded = await spent({ shields: { output: [shield] } })
    expect(shielded).toEqual(await spent({}))
    expect(shielded).toMatchObject({ estimated: true })
    expect(shielded.outputTokens).toBeGreaterThan(100)
  })
})

describe('an answer without content', () => {
  it.each([
    ['comments', comment],
    ['empty chunks', piece({})],
    ['empty texts', piece({ role: 'assistant', content: '', reasoning_content: null })],
    ['empty calls', piece({ tool_calls: [] })],
  ])('is kept alive by %s for contentIdleMs, and no longer', async (_name, empty) => {
    await using it = await listening()
    for (let at = 0; at < 9; at += 1) {
      it.clock.increment(minute)
      await it.say(empty)
    }
    expect(it.run.snapshot()).toMatchObject({ status: 'active' })
    it.clock.increment(minute)
    const result = await it.run.result
    expect(result).toMatchObject({ state: 'ERROR', error: { code: 'idle_timeout' } })
    expect(result.error?.message).toMatch(
      /nothing but comments or empty chunks for 600000 ms \(contentIdleMs\)/,
    )
  })

  it.each([
    ['text', piece({ content: 'Hel' })],
    ['reasoning', piece({ reasoning_content: 'Hm.' })],
    ['a part of a call', piece({ tool_calls: [{ index: 0, function: { name: 'f', arguments: '{' } }] })],
  ])('has its time limit reset by %s', async (_name, content) => {
    await using it = await listening()
    for (const words of [comment, content, comment, comment, comment]) {
      // Less than streamIdleMs apart.
      for (let at = 0; at < 2; at += 1) {
        it.clock.increment(1.5 * minute)
        await it.say(words)
      }
    }
    it.clock.increment(minute - 1)
    await tick()
    expect(it.run.snapshot()).toMatchObject({ status: 'active' })
  })

  it('ends after streamIdleMs without a byte', async () => {
    await using it = await listening()
    await it.say(comment)
    it.clock.increment(2 * minute)
    const result = await it.run.result
    expect(result.error?.message).toMatch(/nothing for 120000 ms \(streamIdleMs\)/)
  })

  it('can be awaited without a limit', async () => {
    await using it = await listening({ streamIdleMs: null, contentIdleMs: null })
    it.clock.increment(1000 * minute)
    it.end(`${piece({ content: 'At last.' })}data: [DONE]\n\n`)
    expect(await it.run.result).toMatchObject({ state: 'COMPLETED', output: 'At last.' })
  })
})

describe('an unstreamed answer', () => {
  it('must start within contentIdleMs, for any whitespace', async () => {
    await using it = await listening({ stream: false })
    for (let at = 0; at < 2; at += 1) {
      it.clock.increment(4.9 * minute)
      await it.say(blank)
    }
    expect(it.run.snapshot()).toMatchObject({ status: 'active' })
    it.clock.increment(0.2 * minute)
    const result = await it.run.result
    expect(result.error?.message).toMatch(/no content for 600000 ms \(contentIdleMs\)/)
  })

  it('that has started may be silent for streamIdleMs', async () => {
    await using it = await listening({ stream: false })
    it.clock.increment(9 * minute)
    await it.say('{"choices":[{"message":')
    it.clock.increment(2 * minute - 1)
    await tick()
    expect(it.run.snapshot()).toMatchObject({ status: 'active' })
    it.clock.increment(1)
    const result = await it.run.result
    expect(result.error?.message).toMatch(/nothing for 120000 ms \(streamIdleMs\)/)
  })

  it('that falls silent is requested again', async () => {
    const theatre = await stage([{ hang: true }, text('Once.', { hang: 1 }), text('Twice.')], {
      stream: false,
    })
    const play = theatre.run().skipBackOff()
    await theatre.arrival()
    theatre.clock.increment(10 * minute)
    await theatre.arrival(2)
    theatre.clock.increment(10 * minute)
    expect((await play.end(3)).output).toBe('Twice.')
  })
})

describe('a tool that hangs', () => {
  const stuck = () => tool('wait', () => new Promise(() => undefined))

  it('becomes an error result after ten minutes', async () => {
    const theatre = await stage([call('wait'), text('It hangs.')], { tools: [stuck()] })
    const play = theatre.run()
    await play.event('step_started', ({ stepType }) => stepType === 'tool_execution')
    theatre.clock.increment(10 * minute)
    expect(await play.event('tool_result')).toMatchObject({
      status: 'timeout',
      content: expect.stringContaining('600000 ms'),
    })
    expect((await play.end(2)).output).toBe('It hangs.')
  })

  it.each([null, 0])('is awaited with toolCalls.timeoutMs: %j', async (timeoutMs) => {
    const theatre = await stage([call('wait')], { tools: [stuck()], toolCalls: { timeoutMs } })
    const play = theatre.run()
    await play.event('step_started', ({ stepType }) => stepType === 'tool_execution')
    theatre.clock.increment(1000 * minute)
    await tick()
    expect(play.of('tool_result')).toEqual([])
    play.run.cancel()
    await play.end(1)
  })
})

describe('the time limit of tools', () => {
  it('does not end the wait for a client or a person', async () => {
    const tools = [clientTool('ask'), tool('pay', () => 'Paid.', { needsApproval: true })]
    const theatre = await stage([call('ask'), call('pay'), text('Done.')], { tools })
    const play = theatre.run()
    const [question] = (await play.rest()).pending ?? []
    theatre.clock.increment(1000 * minute)
    play.run.addToolOutput(question?.callId ?? '', 'Blue.')
    const [pay] = (await play.rest()).pending ?? []
    theatre.clock.increment(1000 * minute)
    play.run.approve(pay?.callId ?? '')
    expect((await play.end(3)).output).toBe('Done.')
  })

  it('does not end the work of a sub-agent', async () => {
    const theatre = await stage([call('helper', { task: 'Look.' }), { hang: true }])
    const model = openaiChat({ model: 'm', baseURL: theatre.rehearsal.url, apiKey: 'none' })
    const { clock } = theatre
    const helper = createAgent({ model, clock, contentIdleMs: null, streamIdleMs: null })
    const lead = createAgent({
      model,
      clock,
      tools: [helper.asTool({ name: 'helper', description: 'Helps.' })],
    })
    const run = lead.run('Go.')
    await theatre.arrival(2)
    clock.increment(1000 * minute)
    await tick()
    expect(run.snapshot()).toMatchObject({ context: { state: 'WAITING_FOR_TOOL' } })
    run.cancel()
    expect((await run.result).state).toBe('CANCELLED')
  })
})

it('a server that falls silent after its finish reason has answered, and the answer is not requested twice', async () => {
  const finish = `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\n`
  const spent = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } })}\n\n`
  await using server = await serve((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(piece({ content: 'Hi.' }) + finish + spent)
    // Keep-alive signals are not part of the answer.
    const comments = setInterval(() => response.write(comment), 100)
    response.on('close', () => clearInterval(comments))
  })
  const overNode = openaiChat({ model: 'm', baseURL: server.baseURL, apiKey: 'none' })
  const overFetch = openaiChat({
    model: 'm',
    baseURL: server.baseURL,
    apiKey: 'none',
    fetch: (...request) => fetch(...request),
  })
  const results = await Promise.all(
    [overNode, overFetch].map((model) => createAgent({ model, streamIdleMs: 30_000 }).run('Go.').result),
  )
  for (const result of results) {
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Hi.', steps: 1 })
    expect(result.usage).toMatchObject({ totalTokens: 5, estimated: false })
  }
  expect(server.requests).toHaveLength(2)
})
