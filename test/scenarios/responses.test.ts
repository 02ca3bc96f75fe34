import {
  type AgentEvent,
  type AgentOptions,
  createAgent,
  type HistoryMessage,
  memoryStore,
  type Message,
  openaiResponses,
  patternShield,
} from '../../src/index.js'
import type { JsonObject } from '../../machines/agent/json.js'
import { call, usage, words as message } from '../core/models/responses-support.js'
import { events, json, serve } from '../core/models/server.js'
import { tool } from '../support/tools.js'
import { sampledRows } from '../support/extent.js'

const thought = (id: string) => ({
  id,
  type: 'reasoning',
  summary: [{ type: 'summary_text', text: `I think, says ${id}.` }],
  encrypted_content: `gAAA${id}`,
})
const words = (text: string, more: object = {}) => message(text, { id: `msg_${text.length}`, ...more })
const result = (call_id: string, output: string) => ({ type: 'function_call_output', call_id, output })
const userItem = (content: string) => ({ role: 'user', content })

/** A model that answers each request with the next items, as a document or as the equivalent stream. */
async function theatre(answers: readonly object[][], options: Partial<AgentOptions> = {}) {
  const turns = [...answers]
  const server = await serve((response, seen) => {
    const output = turns.shift() ?? []
    const whole = { object: 'response', status: 'completed', model: 'm', output, usage }
    const streamed = [
      ...output.flatMap((item, output_index) => [
        { type: 'response.output_item.added', output_index, item: { ...item, content: [] } },
        { type: 'response.output_item.done', output_index, item },
      ]),
      { type: 'response.completed', response: { ...whole, output: [] } },
    ]
    const answer = seen.body['stream'] === true ? events(...streamed) : json(200, whole)
    answer(response, seen)
  })
  const model = openaiResponses({ model: 'm', baseURL: server.baseURL, apiKey: 'none', provider: 'p' })
  const agent = () => createAgent({ model, tools: [tool('look', () => 'seen')], ...options })
  const input = (n: number) => server.requests.at(n)?.body['input'] as JsonObject[]
  return { agent, input, server, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

describe.each(sampledRows([true, false]))('in the Responses API (stream: %s)', (stream) => {
  it('a loop calls its tools and ends with its answer', async () => {
    await using stage = await theatre([[thought('a'), call('c1'), call('c2')], [words('It is 4.')]], {
      stream,
    })
    const run = stage.agent().run('How many?')
    let reasoning = ''
    let text = ''
    for await (const event of run) {
      if (event.type !== 'stream_chunk') continue
      text += event.text
      reasoning += event.reasoning ?? ''
    }
    expect(await run.result).toMatchObject({
      state: 'COMPLETED',
      reason: 'end_turn',
      output: 'It is 4.',
      steps: 2,
    })
    expect([text, reasoning]).toEqual(['It is 4.', 'I think, says a.'])
    expect((await run.result).usage).toMatchObject({ inputTokens: 6, outputTokens: 4 })
    expect(stage.input(1)).toEqual([
      userItem('How many?'),
      thought('a'),
      call('c1'),
      call('c2'),
      result('c1', 'seen'),
      result('c2', 'seen'),
    ])
  })

  it('reasoning for other arguments is not sent with edited ones of a fork', async () => {
    const turns = [[thought('a'), call('c1', '{"at":1}')], [words('Done.')]]
    const tools = [tool('look', () => 'seen', { needsApproval: true })]
    await using stage = await theatre(turns, { stream, store: memoryStore(), tools })
    const agent = stage.agent()
    await agent.run('Look.', { session: 's' }).result
    const id = await agent.fork('s', undefined, { edit: { call: 'c1', arguments: { at: 2 } } })
    const run = await agent.resume(id)
    for (const each of (await run.result).pending ?? []) run.approve(each)
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(JSON.stringify(stage.input(-1))).toContain('{\\"at\\":2}')
    expect(JSON.stringify(stage.input(-1))).not.toContain('gAAA')
    expect(JSON.stringify((await agent.replay('s')).messages)).toContain('gAAA')
  })

  it('reasoning is sent back complete, in a session, after a resume and in a fork', async () => {
    const store = memoryStore()
    const first = [thought('a'), call('c1')]
    const second = [thought('b'), words('It is 4.')]
    const approved = [thought('c'), call('c2')]
    const last = [words('Done.')]
    await using stage = await theatre([first, second, approved, last, last], {
      stream,
      store,
      tools: [
        tool('look', () => 'seen', { needsApproval: (input) => (input as { ask?: true }).ask === true }),
      ],
    })
    approved[1] = call('c2', '{"ask":true}')
    await stage.agent().run('How many?', { session: 's' }).result
    const earlier = [userItem('How many?'), ...first, result('c1', 'seen'), ...second]
    const waiting = await stage.agent().run('Again.', { session: 's' }).result
    expect(stage.input(-1)).toEqual([...earlier, userItem('Again.')])
    expect(waiting.state).toBe('WAITING_FOR_INPUT')
    const resumed = await stage.agent().resume('s')
    for (const pending of (await resumed.result).pending ?? []) resumed.approve(pending)
    expect((await resumed.result).output).toBe('Done.')
    const whole = [...earlier, userItem('Again.'), ...approved, result('c2', 'seen')]
    expect(stage.input(-1)).toEqual(whole)
    const fork = await stage.agent().fork('s')
    await stage.agent().run('And?', { session: fork }).result
    expect(stage.input(-1)).toEqual([...whole, ...last, userItem('And?')])
  })

  it('a custom history includes them', async () => {
    await using stage = await theatre([[thought('a'), words('It is 4.')], [words('Done.')]], { stream })
    const { messages } = await stage.agent().run('How many?').result
    const stored = JSON.parse(JSON.stringify(messages)) as HistoryMessage[]
    await stage.agent().run([...stored, { role: 'user', content: 'And?' }]).result
    expect(stage.input(1)).toEqual([userItem('How many?'), thought('a'), words('It is 4.'), userItem('And?')])
  })

  it('content beyond the window is omitted with all of its items', async () => {
    const turns = Array.from({ length: 6 }, (_, i) => [thought(`t${i}`), call(`c${i}`)])
    await using stage = await theatre([...turns, [words('Done.')]], {
      stream,
      tools: [tool('look', () => 'word '.repeat(60))],
      context: { window: 400, strategy: 'sliding_window' },
      tokenizer: { count: (text) => Math.ceil(text.length / 4) },
      guardrails: { progress: null },
    })
    expect(await stage.agent().run('Go.').result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    const sent = stage.input(-1)
    const kinds = sent.slice(1).map(({ type }) => type)
    expect(sent.length).toBeLessThan(19)
    expect(kinds.length % 3).toBe(0)
    for (let at = 0; at < kinds.length; at += 3)
      expect(kinds.slice(at, at + 3)).toEqual(['reasoning', 'function_call', 'function_call_output'])
  })

  it('tools that the provider runs are emitted as steps, and sent back', async () => {
    const searched = { id: 'ws_1', type: 'web_search_call', status: 'completed', action: { query: 'fours' } }
    const linked = { id: 'mcp_1', type: 'mcp_call', server_label: 'zip', name: 'shorten', output: 'x.yz' }
    const answers = [[searched, linked, words('It is 4.')], [words('Done.')]]
    for (const isShielded of [false, true]) {
      const shields = { output: [patternShield({ name: 'numbers', patterns: [/4711/], action: 'redact' })] }
      await using stage = await theatre(answers, {
        stream,
        store: memoryStore(),
        ...(isShielded && { shields }),
      })
      const agent = stage.agent()
      const run = agent.run('How many?', { session: 's' })
      const events: AgentEvent[] = []
      run.events$.subscribe((event) => void events.push(event))
      expect((await run.result).output).toBe('It is 4.')
      const steps = events.flatMap((event) =>
        'stepType' in event && event.stepType === 'hosted' ? [event] : [],
      )
      expect(steps.map(({ type, name }) => `${type} ${name}`)).toEqual([
        'step_started web_search',
        'step_completed web_search',
        'step_started zip.shorten',
        'step_completed zip.shorten',
      ])
      const [, done] = steps
      expect(done).toMatchObject({
        outcome: 'ok',
        payload: { item: isShielded ? null : { action: { query: 'fours' } } },
      })
      await agent.run('And?', { session: 's' }).result
      expect(stage.input(1).slice(1, 4)).toEqual([searched, linked, words('It is 4.')])
    }
  })

  it('commentary is streamed, and the output is the final answer', async () => {
    const items = [
      words('Let me see.', { phase: 'commentary' }),
      words('It is 4.', { phase: 'final_answer' }),
    ]
    await using stage = await theatre([items, [words('Done.')]], { stream })
    const run = stage.agent().run('How many?', { session: 's' })
    let text = ''
    run.text$.subscribe((piece) => (text += piece))
    expect((await run.result).output).toBe('It is 4.')
    expect(text).toBe(stream ? 'Let me see.\n\nIt is 4.' : 'It is 4.')
  })

  it('content that a shield changed or refused is sent back without its items', async () => {
    const secret = 'Ada’s number'
    const revealing = { ...thought('a'), summary: [{ type: 'summary_text', text: `It is ${secret}.` }] }
    const commentary = words(`I looked up ${secret}.`, { phase: 'commentary' })
    for (const first of [
      [revealing, words('It is 4.')],
      [thought('a'), words(`It is ${secret}.`)],
      [commentary, words('It is 4.', { phase: 'final_answer' })],
    ]) {
      const shield = patternShield({ name: 'numbers', patterns: [/Ada’s number/], action: 'redact' })
      const store = memoryStore()
      await using stage = await theatre([first, [words('Done.')]], {
        stream,
        store,
        shields: { output: [shield] },
      })
      const agent = stage.agent()
      const run = agent.run('How many?', { session: 's' })
      const received: unknown[] = []
      run.events$.subscribe((event) => void received.push(event))
      const { messages } = await run.result
      await agent.run('And?', { session: 's' }).result
      expect(stage.input(1).map(({ type }) => type)).toEqual([undefined, undefined, undefined])
      expect(
        JSON.stringify([messages, received, stage.input(1), await agent.readSession('s')]),
      ).not.toContain(secret)
    }
  })

  it('a provider’s items that are not a list are refused, by the message that has them', () => {
    const message = { role: 'assistant', content: 'Hi', provider_items: { from: 'x' } }
    const agent = createAgent({
      model: openaiResponses({ model: 'm', baseURL: 'http://127.0.0.1:9', apiKey: 'none' }),
    })
    const history = [message, { role: 'user', content: 'And?' }] as unknown as Message[]
    expect(() => agent.run(history)).toThrow(/input\[0\]\.provider_items must be/)
  })
})
