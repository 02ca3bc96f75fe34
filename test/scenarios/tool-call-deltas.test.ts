import type { Observable } from 'rxjs'
import { z } from 'zod'
import {
  type AgentEvent,
  createAgent,
  memoryStore,
  type ModelProvider,
  patternShield,
} from '../../src/index.js'
import { type Play, played, type StageOptions, stage, until } from '../support/play.js'
import { call, calls, text, tool } from '../support/tools.js'

const poem = { path: 'poem.txt', text: 'The heron stands. '.repeat(110) }
const shield = patternShield({ name: 'words', patterns: [/zebra/], action: 'block' })

/** The streamed text of each call, after retractions. */
function streamed(
  events: readonly AgentEvent[],
): { callId: string; name: string; index: number; text: string }[] {
  let shown: { callId: string; name: string; index: number; text: string }[] = []
  for (const event of events) {
    if (event.type === 'stream_chunk' && event.reset) shown = []
    if (event.type !== 'tool_call_delta') continue
    const { callId, name, index, delta } = event
    const known = shown.find((one) => one.callId === callId)
    if (known) known.text += delta
    else shown.push({ callId, name, index, text: delta })
  }
  return shown
}

const called = (play: Play) =>
  play.of('tool_call').map(({ call: { id, function: args } }) => ({ callId: id, ...args }))

describe.each(['chat', 'responses'] as const)('over the API %s', (api) => {
  const options: StageOptions = { api, tools: [tool('write'), tool('look')] }

  it('the arguments of a call are emitted as the model writes them, and whole in tool_call', async () => {
    const play = await played([call('write', poem, { text: 'I write.' }), text('Done.')], options)
    const deltas = play.of('tool_call_delta')
    expect(deltas[0]).toMatchObject({ name: 'write', index: 0, delta: '', attempt: 1 })
    expect(deltas.length).toBeGreaterThan(100)
    expect(deltas[1]?.delta.length).toBeLessThanOrEqual(16)
    const [whole] = called(play)
    expect(streamed(play.events)).toMatchObject([{ callId: whole?.callId, text: whole?.arguments }])
    expect(play.events.indexOf(deltas.at(-1) as AgentEvent)).toBeLessThan(
      play.events.findIndex(({ type }) => type === 'tool_call'),
    )
  })

  it('several calls have their positions in the answer', async () => {
    const turn = calls([['write', { n: 1 }], ['look'], ['write', { n: 2 }]])
    const play = await played([turn, text('Done.')], options)
    const whole = called(play).map(({ callId, name }, index) => ({ callId, name, index }))
    expect(streamed(play.events)).toMatchObject(whole)
    expect(streamed(play.events).map((one) => one.text)).toEqual(['{"n":1}', '', '{"n":2}'])
  })

  it('a retry retracts streamed arguments', async () => {
    const opened = await stage(
      [call('write', poem, { cutAfter: 6 }), call('look', { at: 1 }), text('Done.')],
      options,
    )
    const play = opened.run().skipBackOff()
    await play.end(3)
    const first = play.of('tool_call_delta').filter(({ attempt }) => attempt === 1)
    expect(first.length).toBeGreaterThan(2)
    const [whole] = called(play)
    const delta = { callId: whole?.callId, name: 'look', text: '{"at":1}' }
    expect(streamed(play.events)).toMatchObject([delta])
    const reset = play.events.findIndex((event) => event.type === 'stream_chunk' && event.reset === true)
    const next = play.events.findIndex((event) => event.type === 'tool_call_delta' && event.attempt === 2)
    expect(reset).toBeLessThan(next)
  })

  it.each(['toolInput', 'output'] as const)(
    'nothing is streamed if %s shields may withhold it',
    async (point) => {
      const play = await played([call('write', poem), text('Done.')], {
        ...options,
        shields: { [point]: [shield] },
      })
      expect(play.of('tool_call_delta')).toEqual([])
      expect(called(play)).toHaveLength(1)
    },
  )

  it('the call that gives the final answer has no deltas', async () => {
    const play = await played([call('write', { n: 1 }), call('final_answer', { done: true })], {
      ...options,
      output: { schema: z.object({ done: z.boolean() }), mode: 'tool', name: 'final_answer' },
    })
    expect(play.result.object).toEqual({ done: true })
    expect(streamed(play.events)).toMatchObject([{ name: 'write' }])
  })

  it('an unstreamed response has no deltas', async () => {
    const play = await played([call('write', poem), text('Done.')], { ...options, stream: false })
    expect(play.of('tool_call_delta')).toEqual([])
  })

  it('no record contains deltas', async () => {
    const store = memoryStore()
    const opened = await stage([call('write', poem), text('Done.')], { ...options, store })
    const play = opened.run('Go.', { session: 's' })
    await play.end(2)
    expect(play.of('tool_call_delta').length).toBeGreaterThan(100)
    const records = store.read('s')
    expect(JSON.stringify(records)).toContain('poem.txt')
    expect(JSON.stringify(records)).not.toContain('tool_call_delta')
  })
})

/** A provider that streams the scripted output and records its requests. */
function scripted(
  write: (tell: NonNullable<Parameters<ModelProvider['request']>[1]['onToolCallDelta']>) => void,
) {
  const subscriptions: boolean[] = []
  const model: ModelProvider = {
    provider: 'p',
    model: 'm',
    request: (_request, { onToolCallDelta }) => {
      subscriptions.push(onToolCallDelta !== undefined)
      if (onToolCallDelta) write(onToolCallDelta)
      const rest = { text: 'Done.', reasoning: '', refusal: null, usage: null, model: null }
      return Promise.resolve({ ...rest, toolCalls: [], finishReason: 'stop', complete: true })
    },
  }
  return { agent: createAgent({ model, budget: { onMissingUsage: 'estimate' } }), subscriptions }
}

it('a provider is asked for deltas only if someone subscribes to them', async () => {
  const { agent, subscriptions } = scripted(() => undefined)
  await agent.run('Go.').result
  for (const name of ['text$', 'state$', 'events$'] as const) {
    const run = agent.run('Go.')
    const values: Observable<unknown> = run[name]
    values.subscribe(() => undefined)
    await run.result
  }
  expect(subscriptions).toEqual([false, false, false, true])
})

it('a call without an id or a name waits for it, and a call whose id may change arrives whole', async () => {
  const { agent } = scripted((tell) => {
    tell({ index: 0, id: '', name: '', arguments: '{"a"' })
    tell({ index: 0, id: 'c1', name: 'look', arguments: ':1}' })
    tell({ index: 1, id: 'c1', name: 'look', arguments: '{"b":1}' })
    tell({ index: 2, id: 'c1/x', name: 'look', arguments: '{"c":1}' })
    tell({ index: 3, id: 'c2', name: 'look', arguments: '{}' })
    tell({ index: 3, id: 'c2', name: 'look', arguments: '{"d":1}' })
  })
  const run = agent.run('Go.')
  const events: AgentEvent[] = []
  run.events$.subscribe((event) => events.push(event))
  await run.result
  expect(streamed(events)).toEqual([
    { callId: 'c1', name: 'look', index: 0, text: '{"a":1}' },
    { callId: 'c2', name: 'look', index: 3, text: '{"d":1}' },
  ])
})

/** The streamed calls as the agent's events report them. */
async function streamedFrom(write: Parameters<typeof scripted>[0]) {
  const run = scripted(write).agent.run('Go.')
  const events: AgentEvent[] = []
  run.events$.subscribe((event) => events.push(event))
  const { state } = await run.result
  return { state, calls: streamed(events) }
}

it('blanks before the arguments are removed', async () => {
  const { calls: streamed } = await streamedFrom((tell) => {
    tell({ index: 0, id: 'c1', name: 'look', arguments: ' \n{} ' })
    tell({ index: 0, id: '', name: '', arguments: '\n' })
    tell({ index: 0, id: '', name: '', arguments: ' {"a":1}' })
  })
  expect(streamed).toEqual([{ callId: 'c1', name: 'look', index: 0, text: '{"a":1}' }])
})

it('deltas that lack required fields fail no run', async () => {
  const { state, calls: streamed } = await streamedFrom((tell) => {
    tell({ index: 0 } as never)
    tell({ index: 0, id: 'c1', name: 'look' } as never)
    tell({ index: 'x', id: 'c2', name: 'look', arguments: '{}' } as never)
    tell({ index: 0, id: null, name: 7, arguments: '{"a":1}' } as never)
  })
  expect(state).toBe('COMPLETED')
  expect(streamed).toEqual([{ callId: 'c1', name: 'look', index: 0, text: '{"a":1}' }])
})

it('a watch receives deltas, but the calls of an answer in progress arrive whole', async () => {
  const opened = await stage([call('write', poem, { hang: 8 })], {
    store: memoryStore(),
    tools: [tool('write')],
  })
  const early: AgentEvent[] = []
  const late: AgentEvent[] = []
  const follow = async (seen: AgentEvent[]): Promise<void> => {
    for await (const event of opened.agent.watch('s', { until: 'end' })) seen.push(event)
  }
  const play = opened.run('Go.', { session: 's' })
  await play.run.started
  const first = follow(early)
  await play.event('tool_call_delta')
  const second = follow(late)
  await until(() => late.length > 0 && streamed(early)[0]?.text === streamed(play.events)[0]?.text)
  play.run.cancel()
  await Promise.all([first, second])
  expect(streamed(early)).toMatchObject([{ name: 'write' }])
  expect(late.filter(({ type }) => type === 'tool_call_delta')).toEqual([])
})
