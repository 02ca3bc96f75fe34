import type { AgentOptions, UserInput } from '../../src/index.js'
import { latch, type Play, played, stage } from '../support/play.js'
import { call, calls, text, tool } from '../support/tools.js'

describe('the loop over the wire', () => {
  it('completes with the text of an answer', async () => {
    const { result, stage, of } = await played([text('Hello there.')])
    expect(result).toMatchObject({
      state: 'COMPLETED',
      reason: 'end_turn',
      output: 'Hello there.',
      steps: 1,
    })
    expect(stage.wire(0)).toEqual([{ role: 'user', content: 'Go.' }])
    expect(
      of('stream_chunk')
        .map((chunk) => chunk.text)
        .join(''),
    ).toBe('Hello there.')
    expect(of('state_changed').map(({ to }) => to)).toEqual(['RUNNING', 'COMPLETED'])
  })

  it('executes a call and returns its result', async () => {
    const add = tool('add', ({ a, b }) => Number(a) + Number(b))
    const turns = [
      call('add', { a: 19, b: 23 }),
      text('It is 42.', { expect: { toolResultsInclude: ['42'] } }),
    ]
    const { result, of } = await played(turns, { tools: [add], instructions: 'Be exact.' })
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'It is 42.', steps: 2 })
    expect(add.inputs).toEqual([{ a: 19, b: 23 }])
    expect(result.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
    expect(of('tool_result')).toMatchObject([{ name: 'add', status: 'ok', content: '42' }])
    expect(of('state_changed').map(({ to }) => to)).toEqual([
      'RUNNING',
      'WAITING_FOR_TOOL',
      'RUNNING',
      'COMPLETED',
    ])
  })

  it('runs the calls of a batch concurrently and keeps their results in call order', async () => {
    // Each call waits for the end of the next one.
    const ends = Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [name, latch()]))
    ends.d?.open()
    const slow = tool('slow', async ({ name, after }) => {
      await ends[String(after)]?.opened
      setImmediate(() => ends[String(name)]?.open())
      return `did ${name}`
    })
    const batch = calls([
      ['slow', { name: 'a', after: 'b' }],
      ['slow', { name: 'b', after: 'c' }],
      ['slow', { name: 'c', after: 'd' }],
    ])
    const { stage, of } = await played([batch, text('All done.')], { tools: [slow] })
    expect(of('tool_result').map(({ content }) => content)).toEqual(['did c', 'did b', 'did a'])
    expect(
      stage
        .wire(1)
        .slice(-3)
        .map(({ content }) => content),
    ).toEqual(['did a', 'did b', 'did c'])
  })

  it('sends the model the error in its arguments, and the names of its tools', async () => {
    const read = tool('read')
    const turns = [calls([['read', '{"path": '], ['raed']]), text('Sorry.')]
    const { result, stage } = await played(turns, { tools: [read] })
    expect(result.state).toBe('COMPLETED')
    expect(read.inputs).toEqual([])
    const [, broken, unknown] = stage.wire(1).slice(-3)
    expect(broken?.content).toMatch(/not valid JSON.*position 9/s)
    expect(unknown?.content).toMatch(/no tool 'raed'.*read/s)
  })

  it('sends neither tools nor loop messages to a model without tools', async () => {
    const { stage } = await played([text('Hi.')])
    expect(Object.keys(stage.requests[0]?.body ?? {}).sort()).toEqual([
      'messages',
      'model',
      'stream',
      'stream_options',
    ])
  })

  it('produces the same result streamed and unstreamed', async () => {
    const turns = [
      call('look', { at: 'ä🙂' }, { text: 'Let me see.', reasoning: 'Hm.' }),
      text('Grüße 🙂 and more.', { reasoning: 'So be it.', chunkSize: 1 }),
    ]
    const look = tool('look', ({ at }) => `saw ${at}`)
    const runs = await Promise.all(
      [true, false].map(async (stream) => played(turns, { tools: [look], stream })),
    )
    const [streamed, whole] = runs.map(({ result }) => ({ ...result, runId: '', sessionId: '' }))
    expect(streamed).toEqual(whole)
    const [shown, shownWhole] = runs.map(({ events }) => words(events))
    expect(shown).toEqual(shownWhole)
    expect(runs.map(({ stage }) => stage.requests[0]?.body.stream)).toEqual([true, false])
  })

  it('separates reasoning from the text', async () => {
    const { result, of } = await played([
      text('<think>or this way</think>Yes.', { reasoning: 'Let me think.' }),
    ])
    expect(result.output).toBe('Yes.')
    expect(result.messages.at(-1)).toMatchObject({ content: 'Yes.', reasoning: 'Let me think.or this way' })
    const chunks = of('stream_chunk')
    expect(chunks.map((chunk) => chunk.text).join('')).toBe('Yes.')
    expect(chunks.map((chunk) => chunk.reasoning ?? '').join('')).toBe('Let me think.or this way')
  })

  it('sends images unchanged', async () => {
    const content = [
      { type: 'text' as const, text: 'What is this?' },
      {
        type: 'image_url' as const,
        image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' as const },
      },
    ]
    const input: UserInput = [{ role: 'user', content }]
    const theatre = await stage([text('A dot.')])
    const play = theatre.run(input)
    expect((await play.end(1)).output).toBe('A dot.')
    expect(theatre.wire(0)).toEqual([{ role: 'user', content }])
    expect(play.of('user_message')[0]?.message).toMatchObject({ content })
  })

  it('sends sampling, tool choice and extra body keys to the provider', async () => {
    const options: Partial<AgentOptions> = {
      tools: [tool('read')],
      sampling: { temperature: 0, maxTokens: 99, stop: ['END'] },
      toolChoice: { name: 'read' },
      extraBody: { service_tier: 'flex', stream_options: null },
    }
    const { stage } = await played([text('Hi.')], options)
    expect(stage.requests[0]?.body).toMatchObject({
      temperature: 0,
      max_tokens: 99,
      stop: ['END'],
      tool_choice: { type: 'function', function: { name: 'read' } },
      service_tier: 'flex',
    })
    expect(stage.requests[0]?.body).not.toHaveProperty('stream_options')
  })

  it("passes the call's id, the run, the app's context and a progress function to a tool", async () => {
    const seen: object[] = []
    const work = tool('work', (_input, { callId, runId, sessionId, context, progress }) => {
      progress({ percent: 50 })
      seen.push({ callId, runId, sessionId, context })
    })
    const theatre = await stage([call('work'), text('Done.')], { tools: [work] })
    const app = { user: 7 }
    const play = theatre.run('Go.', { context: app, session: 'mine' })
    await play.end(2)
    expect(seen).toEqual([{ callId: 'call_1_1', runId: play.run.id, sessionId: 'mine', context: app }])
    expect(play.of('tool_progress')).toMatchObject([{ callId: 'call_1_1', progress: { percent: 50 } }])
    expect(JSON.stringify(theatre.wire(1))).not.toContain('"user":7')
  })
})

function words(events: Play['events']): string[] {
  const values = new Map<string, string>()
  for (const event of events) {
    if (event.type !== 'stream_chunk') continue
    const { text, reasoning = '', stepId } = event
    const step = stepId.slice(stepId.indexOf('.'))
    values.set(`${step} text`, (values.get(`${step} text`) ?? '') + text)
    values.set(`${step} reasoning`, (values.get(`${step} reasoning`) ?? '') + reasoning)
  }
  return [...values.values()]
}
