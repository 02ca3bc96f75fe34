import { type AgentOptions, defineShield, patternShield } from '../../src/index.js'
import type { Turn, TurnFunction } from '../../src/rehearsal/index.js'
import { openRecord, type RecordContent, sealRecord } from '../../src/core/sessions/log/log-record.js'
import { foldRecords } from '../../src/core/sessions/fold-session.js'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import { placesOf } from '../support/places.js'
import { type Play, type Stage, stage } from '../support/play.js'
import { call, calls, text, tool } from '../support/tools.js'
import { sampledRows } from '../support/extent.js'

const secret = 'falcon-4711'

const block = () => patternShield({ name: 'block', patterns: [/falcon-\d+/], action: 'block' })
const redact = () => patternShield({ name: 'redact', patterns: [/falcon-\d+/g], action: 'redact' })
const hangs = () => defineShield({ name: 'hangs', check: () => new Promise(() => undefined) })
const note = () => tool('note', ({ text: words }) => `Noted ${words?.toString().length ?? 0} characters.`)
const paid = () => tool('pay', () => 'Paid.', { needsApproval: true })

/** An agent with a store, so that the test can search its events and records. */
async function createScene(turns: readonly (Turn | TurnFunction)[], options: Partial<AgentOptions>) {
  const store = memoryStore()
  const play = await stage(turns, { store, ...options })
  return { play, store }
}

/** The places where the secret appears in session views. Excludes the log's records. */
async function leaks(play: Stage, { events, run }: Play): Promise<string[]> {
  const { messages, run: last } = await play.agent.replay('s')
  const { requests } = play
  return placesOf(secret, { events, result: await run.result, messages, last, requests })
}

describe.each(sampledRows([true, false]))('arguments, streamed: %p', (stream) => {
  test.each([
    ['refused', block, 'blocked'],
    ['redacted', redact, 'ok'],
  ])('that are %s appear nowhere unchanged', async (_, shield, status) => {
    const used = note()
    const { play, store } = await createScene([call('note', { text: `It is ${secret}.` }), text('Done.')], {
      tools: [used],
      shields: { toolInput: [shield()] },
      stream,
    })
    const run = play.run('Go.', { session: 's' })
    const result = await run.end(2)
    expect(result.state).toBe('COMPLETED')
    expect(await leaks(play, run)).toEqual([])
    expect(JSON.stringify(used.inputs)).not.toContain(secret)
    expect(run.of('tool_result')).toMatchObject([{ status }])
    const marked = store.read('s').filter(({ data }) => data.includes(secret))
    expect(marked.map(({ data }) => (JSON.parse(data) as { event: object }).event)).toMatchObject([
      { type: 'xstate.done.actor.model', withheld: true },
    ])
  })

  test('are emitted after the shields: the answer, then its calls, then results', async () => {
    const { play } = await createScene(
      [
        calls([
          ['note', { text: secret }],
          ['note', { text: 'plain' }],
        ]),
        text('Done.'),
      ],
      { tools: [note()], shields: { toolInput: [block()] }, stream },
    )
    const run = play.run('Go.', { session: 's' })
    await run.end(2)
    const order = run.events
      .map(({ type }) => type)
      .filter((type) => /^(assistant_message|tool_call|shield|tool_result)$/.test(type))
    expect(order.slice(0, 6)).toEqual([
      'assistant_message',
      'tool_call',
      'tool_call',
      'shield',
      'tool_result',
      'tool_result',
    ])
    expect(run.of('tool_call').map(({ call: { function: fn } }) => fn.arguments)).toEqual([
      '{}',
      '{"text":"plain"}',
    ])
  })
})

test('arguments that a redaction makes invalid JSON do not enter the transcript', async () => {
  const number = patternShield({ name: 'number', patterns: [/4711/g], action: 'redact' })
  const { play } = await createScene([call('note', { text: 4711 }), text('Done.')], {
    tools: [note()],
    shields: { toolInput: [number] },
  })
  const run = play.run('Go.', { session: 's' })
  const { messages } = await run.end(2)
  const turn = messages.flatMap((message) => (message.role === 'assistant' && message.tool_calls) || [])
  expect(turn.map(({ function: { arguments: input } }) => input)).toEqual(['{}'])
  expect(run.of('tool_result')).toMatchObject([{ status: 'invalid_arguments' }])
})

test('a question to a person shows the screened arguments', async () => {
  const { play } = await createScene([call('pay', { text: secret }), text('Done.')], {
    tools: [paid()],
    shields: { toolInput: [redact()] },
  })
  const run = play.run('Go.', { session: 's' })
  const { pending } = await run.rest()
  expect(JSON.stringify([pending, run.of('approval_requested')])).not.toContain(secret)
  expect(await leaks(play, run)).toEqual([])
  expect(pending).toMatchObject([{ arguments: '{"text":"[redacted pattern 1]"}' }])
})

describe('arguments that a person edits on approval', () => {
  const turns = [call('pay', { text: 'little' }), text('Done.')]

  test.each([
    ['refused', block, []],
    ['redacted', redact, [{ text: 'Pay [redacted pattern 1].' }]],
  ])('are %s like the model’s arguments', async (_, shield, inputs) => {
    const used = paid()
    const { play } = await createScene(turns, { tools: [used], shields: { toolInput: [shield()] } })
    const run = play.run('Go.', { session: 's' })
    await run.rest()
    run.run.approve('call_1_1', { text: `Pay ${secret}.` })
    expect((await run.end(2)).state).toBe('COMPLETED')
    expect(used.inputs).toEqual(inputs)
    expect(await leaks(play, run)).toEqual([])
    expect(run.of('tool_call')).toHaveLength(1)
    expect(run.of('tool_result')).toHaveLength(1)
  })

  test('are screened in another process, too', async () => {
    const used = paid()
    const options = { tools: [used], shields: { toolInput: [block()] } }
    const { play, store } = await createScene(turns, options)
    await play.run('Go.', { session: 's' }).rest()
    const other = await stage([text('Done.')], { ...options, store })
    const run = await other.agent.resume('s')
    run.approve('call_1_1', { text: secret })
    const result = await run.result
    expect(result.state).toBe('COMPLETED')
    expect(used.inputs).toEqual([])
    const { messages } = await other.agent.replay('s')
    expect(placesOf(secret, { result, requests: other.requests, messages })).toEqual([])
    const marked = store.read('s').filter(({ data }) => data.includes(secret))
    expect(marked.map(({ data }) => (JSON.parse(data) as { event: object }).event)).toMatchObject([
      { type: 'APPROVE', withheld: true },
    ])
  })

  test('are withheld if the run is cancelled before the shields have checked them', async () => {
    let isOpen = true
    const shield = defineShield({
      name: 'door',
      check: () => {
        if (isOpen) return { action: 'allow' }
        run.run.cancel()
        return new Promise(() => undefined)
      },
    })
    const { play } = await createScene(turns, { tools: [paid()], shields: { toolInput: [shield] } })
    const run = play.run('Go.', { session: 's' })
    await run.rest()
    isOpen = false
    run.run.approve('call_1_1', { text: secret })
    const result = await run.end(1)
    expect(result.state).toBe('CANCELLED')
    expect(await leaks(play, run)).toEqual([])
    expect(run.of('tool_result')).toHaveLength(1)
  })

  test('of a log without such checks count as they did', async () => {
    const { play, store } = await createScene(turns, { tools: [paid()], shields: { toolInput: [redact()] } })
    const run = play.run('Go.', { session: 's' })
    await run.rest()
    run.run.approve('call_1_1', { text: 'much' })
    await run.end(2)
    const entries = store.read('s').map((record, i) => openRecord(record, i, 's'))
    const approved = entries.findIndex((entry) => entry.type === 'event' && entry.event.type === 'APPROVE')
    const old = entries.flatMap((entry, i): RecordContent[] => {
      if (entry.type !== 'event' || i < approved) return [entry]
      const { withheld: _withheld, ...event } = entry.event
      return event.type === 'xstate.done.actor.callShields' ? [] : [{ ...entry, event }]
    })
    expect(old).toHaveLength(entries.length - 1)
    const { run: folded } = foldRecords(
      old.map((entry, i) => sealRecord(i + 1, 0, entry)),
      's',
    )
    expect(folded?.context).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  })
})

describe('a run that stops before shields have checked the calls does not reveal them', () => {
  const cases: [what: string, turns: Turn[], options: Partial<AgentOptions>, state: string][] = [
    [
      'cancelled during the check',
      [call('note', { text: secret })],
      { shields: { toolInput: [hangs()] } },
      'CANCELLED',
    ],
    [
      'the budget is used up',
      [call('note', { text: secret }, { usage: { input: 500, output: 600 } })],
      { limits: { tokenBudget: 1000 } },
      'BUDGET_EXCEEDED',
    ],
    [
      'the call was truncated',
      [call('note', `{"text":"${secret}`, { finishReason: 'length' }), text('Done.')],
      {},
      'COMPLETED',
    ],
    [
      'the provider filtered the answer',
      [call('note', { text: secret }, { finishReason: 'content_filter' })],
      {},
      'COMPLETED',
    ],
    [
      'a guard halts it',
      [call('note', { text: secret }), call('note', { text: secret }), call('note', { text: secret })],
      { guardrails: { repeatedCall: { haltAt: 'reached' }, maxRepeatedToolSteps: 2 } },
      'ERROR',
    ],
  ]

  test.each(cases)('%s', async (_, turns, options, state) => {
    const shields = { toolInput: [block()] }
    const { play } = await createScene(turns, { tools: [note()], shields, ...options })
    const run = play.run('Go.', { session: 's' })
    if (state === 'CANCELLED') {
      await run.event('step_started', ({ stepType }) => stepType === 'shield_call')
      run.run.cancel()
    }
    expect((await run.run.result).state).toBe(state)
    expect(await leaks(play, run)).toEqual([])
    expect(run.of('tool_call')).toHaveLength(run.of('tool_result').length)
  })
})

test('an unknown tool name is model output, and is screened', async () => {
  const { play } = await createScene([call(secret, { text: 'plain' }), text('Done.')], {
    tools: [note()],
    shields: { toolInput: [redact()] },
  })
  const run = play.run('Go.', { session: 's' })
  const { messages } = await run.end(2)
  expect(await leaks(play, run)).toEqual([])
  expect(JSON.stringify(messages)).toContain('withheld')
})

test('calls next to a blocked answer are withheld with it', async () => {
  const { play } = await createScene([call('note', { text: secret }, { text: `It is ${secret}.` })], {
    tools: [note()],
    shields: { output: [block()] },
  })
  const run = play.run('Go.', { session: 's' })
  expect((await run.end(1)).state).toBe('BLOCKED')
  expect(await leaks(play, run)).toEqual([])
  expect(run.of('tool_call')).toHaveLength(1)
})
