import type { JsonObject } from '../../../machines/agent/json.js'
import {
  ask,
  failing,
  added,
  done,
  delta,
  words,
  call,
  thought,
  whole,
  completed,
  both,
} from './responses-support.js'
import { events, json } from './server.js'
import { overTransport, transports } from './transports.js'
import { sampledKinds } from '../../support/extent.js'

describe.each(sampledKinds(transports))('over %s,', (transport) => {
  overTransport(transport)

  test('a stream is shown as it arrives', async () => {
    const { response, shown } = await ask(
      events(
        { type: 'response.created', response: { status: 'in_progress', output: [] } },
        added(0, { type: 'message', role: 'assistant', content: [] }),
        delta(0, 'Hel'),
        delta(0, 'lo'),
        done(0, words('Hello')),
        completed([words('Hello')]),
      ),
    )
    expect(shown.text).toBe('Hello')
    expect(response).toMatchObject({ text: 'Hello', finishReason: 'completed', complete: true, model: 'm-1' })
    expect(response.usage).toMatchObject({ inputTokens: 3, outputTokens: 2 })
  })

  test.each(both)('an answer that arrives whole (%s) is shown at once', async (_how, answer) => {
    const { response, shown } = await ask(answer([words('Hello')]))
    expect([shown.text, response.text]).toEqual(['Hello', 'Hello'])
  })

  test('a status is an error with the provider’s message', async () => {
    const answer = json(429, { error: { message: 'Slow down.', code: 'rate_limit_exceeded' } })
    expect(await failing(answer)).toMatchObject({
      kind: 'rate_limit',
      code: 'rate_limit_exceeded',
      status: 429,
    })
  })
})

describe('the items of a stream', () => {
  test('are matched by position, not by id, which may change in between', async () => {
    const { response, shown } = await ask(
      events(
        added(0, { type: 'message', id: 'a' }),
        added(1, { type: 'function_call', id: 'b', call_id: 'c1', name: 'look', arguments: '' }),
        { type: 'response.function_call_arguments.delta', output_index: 1, item_id: 'x', delta: '{"q"' },
        delta(0, 'One', 'y'),
        { type: 'response.function_call_arguments.delta', output_index: 1, item_id: 'z', delta: ':1}' },
        delta(0, ' two', 'w'),
        completed(),
      ),
    )
    expect(shown.text).toBe('One two')
    expect(response.text).toBe('One two')
    expect(response.toolCalls).toEqual([
      { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"q":1}' } },
    ])
  })

  test.each([
    ['in many deltas', ['{"q"', ':1}'], ''],
    ['only at its end', [], '{"q":1}'],
    ['from its start', [], 'added'],
  ])('have arguments %s', async (_how, deltas, last) => {
    const { response } = await ask(
      events(
        added(0, call('c1', last === 'added' ? '{"q":1}' : '')),
        ...deltas.map((text) => ({
          type: 'response.function_call_arguments.delta',
          output_index: 0,
          delta: text,
        })),
        ...(last === '{"q":1}' ? [done(0, call('c1', last))] : []),
        completed(),
      ),
    )
    expect(response.toolCalls[0]?.function).toEqual({ name: 'look', arguments: '{"q":1}' })
  })

  test('are those of the last event if it lists any, otherwise the completed ones', async () => {
    const listed = await ask(
      events(added(0, words('')), delta(0, 'Hi'), completed([thought(), words('Hi there')])),
    )
    expect(listed.response.text).toBe('Hi there')
    expect(listed.shown.text).toBe('Hi there')
    const unlisted = await ask(events(done(0, thought()), done(1, words('Hi')), completed([])))
    expect(unlisted.response.text).toBe('Hi')
    expect(unlisted.response.providerItems?.items).toHaveLength(2)
  })

  test('that have ended are part of the answer even if the last event omits them', async () => {
    const { response, shown } = await ask(
      events(
        done(0, words('Hello', { id: 'msg_0' })),
        done(1, thought()),
        done(2, call('c1', '{"q":1}')),
        done(3, call('c2')),
        completed([{ ...thought(), id: 'other' }, call('c2')]),
      ),
    )
    expect(response).toMatchObject({ text: 'Hello', complete: true })
    expect(response.toolCalls.map(({ id, function: { arguments: input } }) => [id, input])).toEqual([
      ['c1', '{"q":1}'],
      ['c2', '{}'],
    ])
    const kinds = ((response.providerItems?.items ?? []) as JsonObject[]).map(({ type }) => type)
    expect(kinds).toEqual(['message', 'reasoning', 'function_call', 'function_call'])
    expect(shown).toMatchObject({ text: 'Hello', warnings: [] })
  })

  test('a call that never ended and is not in the last event is shown and not executed', async () => {
    const { response, shown } = await ask(
      events(
        added(0, call('c1', '')),
        { type: 'response.function_call_arguments.delta', output_index: 0, delta: '{"path":"/"}' },
        completed([words('Hi')]),
      ),
    )
    expect(response).toMatchObject({ text: 'Hi', toolCalls: [] })
    expect(shown.warnings).toEqual([expect.stringMatching(/^calls_dropped: .*look \(c1\)/)])
  })

  test.each([
    ['ends without them', (item: object) => [done(0, item), completed()]],
    ['is listed without them', (item: object) => [done(0, item), completed([item])]],
  ])('text and arguments that arrived in pieces are kept if the item %s', async (_how, ending) => {
    const input = { type: 'response.function_call_arguments.delta', output_index: 0, delta: '{"q":1}' }
    const called = await ask(events(added(0, call('c1', '')), input, ...ending(call('c1', ''))))
    expect(called.response.toolCalls[0]?.function.arguments).toBe('{"q":1}')
    const answer = await ask(
      events(added(0, words('')), delta(0, 'Hi'), ...ending(words('', { content: [] }))),
    )
    expect([answer.response.text, answer.shown.text]).toEqual(['Hi', 'Hi'])
  })

  test('without a type in the last list do not replace streamed items', async () => {
    const { content } = words('Hi')
    for (const [item, text] of [
      [{}, 'Hi'],
      [{ id: 'x', status: 'completed' }, 'Hi'],
      [{ role: 'assistant', content: [{ type: 'output_text', text: 'Hi there' }] }, 'Hi there'],
    ] as const) {
      const { response, shown } = await ask(events(added(0, words('')), delta(0, 'Hi'), completed([item])))
      expect([response.text, shown.text]).toEqual([text, text])
    }
    const untyped = await ask(
      events(added(0, { type: 'message', role: 'assistant' }), done(0, { content }), completed()),
    )
    expect(untyped.response.text).toBe('Hi')
  })

  test('without an event that ends the answer are an incomplete answer', async () => {
    const { response } = await ask(events(added(0, words('')), delta(0, 'Hi'), '[DONE]'))
    expect(response).toMatchObject({ text: 'Hi', complete: false, finishReason: null })
    expect(response.providerItems).toBeUndefined()
  })

  test('and unknown events are ignored', async () => {
    const { response } = await ask(
      events(
        { type: 'response.dream.delta', output_index: 0, delta: 'x' },
        { type: 'response.output_item.added' },
        added(0, { type: 'dream', id: 'd' }),
        { type: 'keepalive' },
        completed([{ type: 'dream', id: 'd' }, words('Hi')]),
      ),
    )
    expect(response.text).toBe('Hi')
    expect(response.providerItems?.items[0]).toEqual({ type: 'dream', id: 'd' })
  })
})

describe('the end of an answer', () => {
  test.each(both)('%s: at the token limit it is truncated, with any reason', async (_how, answer) => {
    for (const reason of ['max_output_tokens', 'something_else']) {
      const { response } = await ask(
        answer([call('c1', '{"q')], { status: 'incomplete', incomplete_details: { reason } }),
      )
      expect(response).toMatchObject({ finishReason: 'max_output_tokens', complete: true })
    }
  })

  test.each(both)('%s: by a filter it is filtered', async (_how, answer) => {
    const incomplete_details = { reason: 'content_filter' }
    const { response } = await ask(answer([words('Hm')], { status: 'incomplete', incomplete_details }))
    expect(response.finishReason).toBe('content_filter')
  })

  test.each(both)('%s: an unknown or missing status is an end', async (_how, answer) => {
    for (const status of ['complete', undefined])
      expect((await ask(answer([words('Hi')], { status }))).response.complete).toBe(true)
  })

  test('a failure is an error, whatever else is sent', async () => {
    const error = { code: 'server_error', message: 'It broke.' }
    const failed = { type: 'response.failed', response: whole([], { status: 'failed', error }) }
    const top = { type: 'error', code: 'rate_limit_exceeded', message: 'Slow down.' }
    const nested = { type: 'error', error: { code: 'insufficient_quota', message: 'Pay.' } }
    const begun = [added(0, words('')), delta(0, 'Half')]
    expect(await failing(events(...begun, failed, top))).toMatchObject({
      kind: 'transient',
      code: 'server_error',
      partialText: 'Half',
      usage: { inputTokens: 3 },
    })
    expect(await failing(events(top, failed))).toMatchObject({ kind: 'rate_limit' })
    expect(await failing(events(nested))).toMatchObject({ kind: 'fatal', code: 'insufficient_quota' })
    expect(await failing(json(200, whole([], { status: 'failed', error })))).toMatchObject({
      code: 'server_error',
    })
  })

  test('an empty error is ignored, in any event', async () => {
    const nothing = { error: {} }
    for (const error of [{}, { code: null, message: '' }]) {
      const { response } = await ask(
        events(
          { ...added(0, words('')), error },
          { ...delta(0, 'Hi'), ...nothing },
          { ...completed(), error },
        ),
      )
      expect(response).toMatchObject({ text: 'Hi', complete: true })
    }
    expect(await failing(events(delta(0, 'Hi'), { error: { message: 'No.' } }))).toMatchObject({
      partialText: 'Hi',
    })
    expect(await failing(events(delta(0, 'Hi'), { type: 'error', error: {} }))).toMatchObject({
      partialText: 'Hi',
    })
  })

  test('a background response is refused', async () => {
    const failure = await failing(json(200, whole([], { status: 'queued' })))
    expect(failure).toMatchObject({ kind: 'fatal', code: 'unfinished_response' })
    expect(failure.message).toContain('background')
  })

  test('JSON that is not a response is refused', async () => {
    expect(await failing(json(200, { choices: [] }))).toMatchObject({ code: 'invalid_response' })
  })

  test.each([
    [{ type: 'custom_tool_call', call_id: 'c1', name: 'sql' }, 'custom_tool_call (sql, c1)'],
    [{ type: 'local_shell_call', call_id: 'c1' }, 'local_shell_call (c1)'],
    [{ type: 'computer_call', call_id: 'c1' }, 'computer_call (c1)'],
  ])('an item whose output is not that of a function is refused by name', async (item, named) => {
    const failure = await failing(events(completed([item])))
    expect(failure).toMatchObject({ kind: 'fatal', code: 'unsupported_output' })
    expect(failure.message).toContain(named)
  })
})

describe('the text of an answer', () => {
  const commentary = words('Let me see.', { phase: 'commentary' })
  const final = words('It is 4.', { phase: 'final_answer', id: 'msg_2' })

  test.each(both)(
    '%s: the final answer is the text, and commentary is shown before it',
    async (_how, answer) => {
      const { response, shown } = await ask(answer([commentary, final]))
      expect(response.text).toBe('It is 4.')
      expect(shown.text).toBe('Let me see.\n\nIt is 4.')
    },
  )

  test.each(both)('%s: commentary is the text next to calls', async (_how, answer) => {
    const { response } = await ask(answer([commentary, call('c1')]))
    expect([response.text, response.toolCalls.length]).toEqual(['Let me see.', 1])
  })

  test('a refusal is recognized, streamed or whole', async () => {
    const refused = words('', { content: [{ type: 'refusal', refusal: 'I will not.' }] })
    const streamed = events(
      added(0, { type: 'message' }),
      { type: 'response.refusal.delta', output_index: 0, content_index: 0, delta: 'I will not.' },
      completed(),
    )
    for (const answer of [json(200, whole([refused])), streamed])
      expect((await ask(answer)).response).toMatchObject({ text: '', refusal: 'I will not.' })
  })

  test('reasoning arrives as summaries or in full, streamed or whole', async () => {
    const parts = [
      { summary: ['One.', 'Two.'].map((text) => ({ type: 'summary_text', text })) },
      { content: [{ type: 'reasoning_text', text: 'One.\n\nTwo.' }] },
    ]
    for (const part of parts)
      expect((await ask(json(200, whole([thought('x', part), words('Hi')])))).response.reasoning).toBe(
        'One.\n\nTwo.',
      )
    const { response, shown } = await ask(
      events(
        added(0, thought()),
        ...['One.', 'Two.'].map((text, summary_index) => ({
          type: 'response.reasoning_summary_text.delta',
          output_index: 0,
          summary_index,
          delta: text,
        })),
        completed(),
      ),
    )
    expect([response.reasoning, shown.reasoning]).toEqual(['One.\n\nTwo.', 'One.\n\nTwo.'])
  })
})

describe('reasoning inside a message', () => {
  const mixed = {
    type: 'message',
    id: 'm',
    role: 'assistant',
    content: [
      { type: 'reasoning_text', text: 'Hm. ' },
      { type: 'output_text', text: '<think>Yes.</think>So.', annotations: [] },
    ],
  }

  test.each(both)('(%s) is not text', async (_how, answer) => {
    const { response, shown } = await ask(answer([mixed]))
    expect([response.text, response.reasoning]).toEqual(['So.', 'Hm. \n\nYes.'])
    expect([shown.text, shown.reasoning]).toEqual(['So.', 'Hm. \n\nYes.'])
  })

  test('is not text in a stream, whether the end repeats it or not', async () => {
    const pieces = [
      added(0, { type: 'message', id: 'm', role: 'assistant', content: [] }),
      {
        type: 'response.reasoning_text.delta',
        output_index: 0,
        content_index: 0,
        item_id: 'm',
        delta: 'Hm. ',
      },
      ...['<th', 'ink>Yes.</thi', 'nk>', 'So', '.'].map((text) => delta(0, text, 'm')),
    ]
    for (const end of [
      [done(0, mixed), completed([mixed])],
      [done(0, mixed), completed([])],
      [completed([])],
    ]) {
      const { response, shown } = await ask(events(...pieces, ...end))
      expect([response.text, response.reasoning]).toEqual(['So.', 'Hm. \n\nYes.'])
      expect([shown.text, shown.reasoning]).toEqual(['So.', 'Hm. \n\nYes.'])
    }
  })

  test('is shown if an unended message contains nothing else', async () => {
    const { response, shown } = await ask(
      events(added(0, { type: 'message' }), delta(0, 'ends in <thi'), completed([])),
    )
    expect([response.text, shown.text]).toEqual(['ends in <thi', 'ends in <thi'])
  })
})
