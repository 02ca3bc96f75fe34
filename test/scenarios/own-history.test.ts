import { createActor } from 'xstate'
import {
  createSession,
  defineShield,
  type HistoryMessage,
  memoryStore,
  type RunInput,
  type RunResult,
  UsageError,
} from '../../src/index.js'
import { call, text, tool } from '../support/tools.js'
import { stage } from '../support/play.js'

const callMessage = (...ids: string[]) => ({
  role: 'assistant' as const,
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'look', arguments: '{"a":1}' } })),
})
const result = (id: string, content = 'seen') => ({ role: 'tool' as const, tool_call_id: id, content })
const user = (content: string) => ({ role: 'user' as const, content })

const history: HistoryMessage[] = [
  user('What is in a.txt?'),
  callMessage('c1'),
  result('c1'),
  { role: 'assistant', content: 'A letter.' },
  user('From whom?'),
]

describe('a custom message history', () => {
  it('is used unchanged: the model reads it, and the run answers its last message', async () => {
    const opened = await stage([text('From Ada.')])
    const play = opened.run(history)
    const { messages, output } = await play.end(1)
    expect(opened.wire(0)).toEqual(history)
    expect(output).toBe('From Ada.')
    expect(messages.map(({ id }) => id)).toEqual(['m1', 'm2', 'm3', 'm4', 'm5', 'm6'])
    expect(messages.every(({ createdAt }) => createdAt === opened.clock.now())).toBe(true)
    // Earlier messages are not repeated.
    expect(play.of('user_message').map(({ message }) => message.content)).toEqual(['From whom?'])
  })

  it('keeps the timestamps of messages', async () => {
    const opened = await stage([text('Hi.')])
    const message = { role: 'user' as const, content: 'Hello.', createdAt: 5 }
    const answered = { role: 'assistant' as const, content: 'Yes?' }
    const { messages } = await opened.run([message, answered, user('Well.')]).end(1)
    expect(messages.map(({ createdAt }) => createdAt)).toEqual([
      5,
      ...Array<number>(3).fill(opened.clock.now()),
    ])
  })

  it('becomes the history of its session', async () => {
    const opened = await stage([text('From Ada.'), text('Yes.')])
    const session = createSession()
    await opened.run(history, { session }).run.result
    expect(session.messages).toHaveLength(6)
    await opened.run('Sure?', { session }).run.result
    expect(opened.wire(1).slice(0, 5)).toEqual(history)
  })

  it('can be the history of a run with a new message', async () => {
    const opened = await stage([call('look'), text('A letter.'), text('From Ada.')], {
      tools: [tool('look')],
    })
    const { messages } = await opened.run().run.result
    const next = await opened.run([...messages, user('From whom?')]).run.result
    expect(next.messages.slice(0, messages.length)).toEqual(messages)
    expect(opened.wire(-1)).toMatchObject([{ role: 'user' }, { role: 'assistant' }, { role: 'tool' }, {}, {}])
  })

  it('can be the format of providers and their clients', async () => {
    const opened = await stage([text('Yes.')])
    const rows: unknown = [
      { role: 'developer', content: [{ type: 'text', text: 'Be brief.' }], created_at: '2026-01-01' },
      user('Look twice.'),
      { ...callMessage('c1', 'c2'), refusal: null, audio: null, function_call: null, annotations: [] },
      // In arrival order.
      result('c2', 'second'),
      { ...result('c1'), content: [{ type: 'text', text: 'first' }] },
      {
        role: 'assistant',
        content: [{ type: 'text', text: 'Done.' }],
        tool_calls: null,
        reasoning_content: 'Hm.',
      },
      { content: 'Really?' },
      user('Tell me.'),
    ]
    const { messages } = await opened.run(rows as RunInput, { session: 'mine' }).end(1)
    expect(messages[5]).toMatchObject({ role: 'assistant', content: 'Done.', reasoning: 'Hm.' })
    expect(opened.wire(0)).toEqual([
      { role: 'system', content: 'Be brief.' },
      user('Look twice.'),
      callMessage('c1', 'c2'),
      result('c1', 'first'),
      result('c2', 'second'),
      { role: 'assistant', content: 'Done.' },
      user('Really?\n\nTell me.'),
    ])
  })

  it.each([
    ['memory', memoryStore],
    ['asynchronous memory', () => asynchronous(memoryStore())],
  ])('is accepted by a session of a store (%s), but only by a new one', async (_, make) => {
    const store = make()
    const opened = await stage([text('From Ada.'), text('Sure.')], { store })
    await opened.run(history, { session: 'letters' }).run.result
    const other = await stage([text('Yes.')], { store })
    await other.run('Sure?', { session: 'letters' }).run.result
    expect(other.wire(0).slice(0, 5)).toEqual(history)
    expect((await other.agent.replay('letters')).messages).toHaveLength(8)
    await expect(other.run(history, { session: 'letters' }).run.result).rejects.toMatchObject({
      code: 'session_not_empty',
      subject: 'letters',
    })
  })

  it('is refused by a session with a history, before anything happens', async () => {
    const opened = await stage([text('Hi.')])
    const session = createSession()
    await opened.run('Go.', { session }).run.result
    await expect(opened.agent.run(history, { session }).started).rejects.toThrow(/already has a history/)
    expect(session.messages).toHaveLength(2)
  })

  it('was screened by its app, and shields check the current user message', async () => {
    const seen: string[] = []
    const look = defineShield({
      name: 'look',
      check: (content) => {
        seen.push(content)
        return { action: 'allow' }
      },
    })
    const opened = await stage([text('From Ada.')], { shields: { input: [look] } })
    await opened.run(history).end(1)
    expect(seen).toEqual(['From whom?'])
  })

  it('is accepted by an actor of the machine, too', async () => {
    const opened = await stage([text('From Ada.'), text('From Ada.')])
    for (const input of [history, opened.agent.createInput(history)]) {
      const actor = createActor(opened.agent.machine, { input })
      const done = new Promise<RunResult>((resolve) => {
        actor.subscribe({ complete: () => resolve(actor.getSnapshot().output as RunResult) })
      })
      actor.start()
      expect((await done).messages).toHaveLength(6)
    }
    expect(opened.requests.map(({ body }) => body.messages)).toEqual([history, history])
  })
})

const cycle: Record<string, unknown> = {}
cycle['self'] = cycle

const wrong: [what: string, messages: unknown[], at: string, sentence: RegExp][] = [
  [
    'an open call',
    [user('a'), callMessage('c1'), user('b')],
    'input[1].tool_calls[0]',
    /call 'c1', which has no result/,
  ],
  [
    'one open call of two',
    [user('a'), callMessage('c1', 'c2'), result('c1'), user('b')],
    'input[1].tool_calls[1]',
    /'c2'/,
  ],
  ['an open call at the end', [user('a'), callMessage('c1')], 'input[1].tool_calls[0]', /no result/],
  [
    'a result without a call',
    [user('a'), result('c1'), user('b')],
    'input[1]',
    /result for call 'c1', but no such call/,
  ],
  ['a result of another call', [callMessage('c1'), result('c2'), user('b')], 'input[1]', /'c2'/],
  [
    'a second result',
    [callMessage('c1'), result('c1'), result('c1'), user('b')],
    'input[2]',
    /no such call is waiting/,
  ],
  [
    'a late result',
    [callMessage('c1'), user('a'), result('c1'), user('b')],
    'input[0].tool_calls[0]',
    /no result/,
  ],
  [
    'a legacy role',
    [user('a'), { role: 'function', name: 'f', content: 'x' }, user('b')],
    'input[1].role',
    /'function': it must be/,
  ],
  ['a mistyped role', [{ role: 'assitant', content: 'x' }, user('b')], 'input[0].role', /'assitant'/],
  [
    'not a message',
    [user('a'), null, { role: 'assistant', content: 'x' }, user('b')],
    'input[1]',
    /message object/,
  ],
  [
    'an empty answer',
    [{ role: 'assistant' }, user('b')],
    'input[0].content',
    /missing, and there are no tool_calls/,
  ],
  [
    'a legacy call',
    [{ role: 'assistant', content: null, function_call: { name: 'f' } }, user('b')],
    'input[0].function_call',
    /tool_calls/,
  ],
  [
    'calls that are not a list',
    [{ role: 'assistant', tool_calls: {} }, user('b')],
    'input[0].tool_calls',
    /list/,
  ],
  [
    'a call without an id',
    [{ role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: '' } }] }, user('b')],
    'input[0].tool_calls[0].id',
    /id/,
  ],
  [
    'two calls with one id',
    [callMessage('c1', 'c1'), user('b')],
    'input[0].tool_calls[1].id',
    /another call/,
  ],
  [
    'a call of another type',
    [{ role: 'assistant', tool_calls: [{ id: 'c', type: 'custom' }] }, user('b')],
    'input[0].tool_calls[0]',
    /'custom'/,
  ],
  [
    'a call without a name',
    [{ role: 'assistant', tool_calls: [{ id: 'c', function: {} }] }, user('b')],
    'input[0].tool_calls[0].function.name',
    /function\.name must be a string/,
  ],
  [
    'arguments that are an object',
    [{ role: 'assistant', tool_calls: [{ id: 'c', function: { name: 'f', arguments: {} } }] }, user('b')],
    'input[0].tool_calls[0].function.arguments',
    /JSON\.stringify/,
  ],
  [
    'a result without an id',
    [callMessage('c1'), { role: 'tool', content: 'x' }, user('b')],
    'input[1].tool_call_id',
    /a call's id/,
  ],
  [
    'a result without content',
    [callMessage('c1'), { role: 'tool', tool_call_id: 'c1' }, user('b')],
    'input[1].content',
    /text/,
  ],
  [
    'a system message with parts that are not text',
    [{ role: 'system', content: [{ type: 'image_url' }] }, user('b')],
    'input[0].content',
    /text parts/,
  ],
  [
    'a user’s message without content',
    [{ role: 'user' }, { role: 'assistant', content: 'x' }, user('b')],
    'input[0].content',
    /string or a non-empty list/,
  ],
  [
    'an empty current user message',
    [{ role: 'assistant', content: 'x' }, user(' ')],
    'input[1].content',
    /empty/,
  ],
  ['a BigInt', [{ role: 'assistant', content: 'x', reasoning_details: [1n] }, user('b')], 'input[0]', /JSON/],
  ['a cycle', [{ role: 'assistant', content: 'x', data: cycle }, user('b')], 'input[0]', /JSON/],
  [
    'an answer at the end',
    [user('a'), { role: 'assistant', content: 'x' }],
    'input[1]',
    /End with the message that the model should answer/,
  ],
]

it('refuses values of the user that JSON cannot represent', async () => {
  const opened = await stage([text('Never asked.')])
  const content = [{ type: 'text', text: 'Hi.', odd: 1n }]
  expect(() => opened.run([{ content }] as never)).toThrow(
    expect.objectContaining({ code: 'invalid_input', subject: 'input[0]' }),
  )
})

it.each(wrong)('refuses %s, naming the message', async (_, messages, subject, sentence) => {
  const opened = await stage([text('Never asked.')])
  const begin = () => opened.run(messages as RunInput)
  expect(begin).toThrow(UsageError)
  expect(begin).toThrow(
    expect.objectContaining({ code: 'invalid_input', subject, message: expect.stringMatching(sentence) }),
  )
  expect(opened.requests).toEqual([])
})

/** The same store with promise-based answers. */
function asynchronous<Store extends object>(store: Store): Store {
  return new Proxy(store, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function'
        ? async (...args: unknown[]) => (value as (...all: unknown[]) => unknown).apply(target, args)
        : value
    },
  })
}
