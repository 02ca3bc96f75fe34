import { SimulatedClock } from 'xstate'
import { aguiHandler } from '../../src/agui/index.js'
import {
  type Agent,
  type AgentOptions,
  createAgent,
  memoryStore,
  patternShield,
  runSession,
  type SessionStore,
} from '../../src/index.js'
import { type Authorize, chatHandler, type ChatHandlerOptions } from '../../src/ui/index.js'
import { Chat, chunksOf, type Handler, protocol, textOf } from '../ui/client.js'
import { distant } from '../support/distant.js'
import { call, ManualModel, settled } from '../support/manual-model.js'
import { until } from '../support/play.js'
import { clientTool, tool } from '../support/tools.js'
import { sampledKinds } from '../support/extent.js'

const stores = [
  ['a store that answers at once', () => memoryStore()],
  ['a store that answers by promises', () => distant(memoryStore())],
] as const

type AnyOptions = Partial<AgentOptions>

/** An agent whose model the test answers, behind a handler; several of one store are several processes. */
function open(store: SessionStore, options: AnyOptions = {}, more: Partial<ChatHandlerOptions> = {}) {
  const model = new ManualModel()
  const clock = new SimulatedClock()
  const agent = createAgent({ model, store, clock, ...options }) as Agent
  const handler = chatHandler({ agent, authorize: 'none', protocol, ...more })
  const untilRequest = (): Promise<unknown> => until(() => model.pending !== null)
  const answer = (text: string): void => model.pending?.answer({ text })
  return { model, clock, agent, handler, untilRequest, answer }
}

const at = (path: string, init?: RequestInit): Request =>
  new Request(`http://chat.test/api/chat${path}`, init)
const json = { method: 'POST', headers: { 'content-type': 'application/json' } }
const messageRequest = (id: string, words: string): Request =>
  at('', {
    ...json,
    body: JSON.stringify({
      id: 'c',
      messages: [{ id, role: 'user', parts: [{ type: 'text', text: words }] }],
    }),
  })

interface Shown {
  id: string
  role: string
  metadata?: { queued?: true }
}

async function history(handler: Handler): Promise<(string | true)[][]> {
  const shown = (await (await handler(at('/c'))).json()) as Shown[]
  return shown.map((message) => [
    message.role,
    textOf(message as never),
    ...(message.metadata?.queued ? [true as const] : []),
  ])
}

/** Like `until`, for asynchronous conditions. */
async function untilLater(condition: () => Promise<boolean>): Promise<void> {
  for (let left = 200; !(await condition()); left -= 1) {
    if (left === 0) throw new Error(`It never came true: ${String(condition)}`)
    await settled()
  }
}

const wordsOf = (chat: Chat): string[] => chat.messages.map(textOf)

it('a queued message waits when a page reads its stream, because reading does not restart a stopped queue', async () => {
  const store = memoryStore()
  const { handler, untilRequest, model } = open(store)
  const first = handler(messageRequest('u1', 'One?')).then(chunksOf)
  await untilRequest()
  const second = handler(messageRequest('u2', 'Two?')).then(chunksOf)
  await untilLater(async () => (await history(handler)).length === 2)
  await handler(at('/c/stop', json))
  await Promise.all([first, second])
  for (const reader of [handler, open(store).handler]) {
    const streams = await reader(at('/c/stream?of=u2'))
    expect(await chunksOf(streams)).toEqual([])
    expect((await history(reader)).at(-1)).toEqual(['user', 'Two?', true])
  }
  expect(model.attempts).toHaveLength(1)
  expect((await handler(at('/c/stream?of='))).status).toBe(400)
  expect((await handler(at('/c/stream?of=u9'))).status).toBe(204)
})

describe.each(sampledKinds(stores))('a chat over %s', (_, createStore) => {
  it('answers an early message when its turn comes, and useChat shows both in order', async () => {
    const { handler, untilRequest, answer, model } = open(createStore())
    const chat = new Chat('c', handler)
    const first = chat.sendMessage({ text: 'One?' })
    await untilRequest()
    model.pending?.delta('First')
    await until(() => chat.lastMessage?.role === 'assistant')
    const second = chat.sendMessage({ text: 'Two?' })
    const third = chat.sendMessage({ text: 'Three?' })
    await untilLater(async () => (await history(handler)).length === 3)
    expect(await history(handler)).toEqual([
      ['user', 'One?'],
      ['user', 'Two?', true],
      ['user', 'Three?', true],
    ])
    answer('First.')
    await untilRequest()
    answer('Second.')
    await untilRequest()
    answer('Third.')
    await Promise.all([first, second, third])
    expect(chat.errors).toEqual([])
    expect(wordsOf(chat)).toEqual(['One?', 'First.', 'Two?', 'Three?', 'Second.', 'Third.'])
    expect((await history(handler)).map(([, words]) => words)).toEqual([
      'One?',
      'First.',
      'Two?',
      'Second.',
      'Three?',
      'Third.',
    ])
    expect(chat.status).toBe('ready')
  })

  it('answers a queued message once if it is sent again, and shows the queue to every page', async () => {
    const { handler, untilRequest, answer, model } = open(createStore())
    const responses = [handler(messageRequest('u1', 'One?'))]
    await untilRequest()
    responses.push(handler(messageRequest('u2', 'Two?')), handler(messageRequest('u2', 'Two?')))
    await untilLater(async () => (await history(handler)).length === 2)
    answer('First.')
    await untilRequest()
    // Both requests subscribe to the answer before it ends.
    await Promise.all(responses)
    await settled()
    answer('Second.')
    const chunks = await Promise.all((await Promise.all(responses)).map(chunksOf))
    expect(chunks[1]).toEqual(chunks[2])
    expect(model.attempts).toHaveLength(2)
  })

  it('pauses the queue after a stop until the user writes, then continues in order', async () => {
    const { handler, untilRequest, answer } = open(createStore())
    const first = handler(messageRequest('u1', 'One?'))
    await untilRequest()
    const second = await handler(messageRequest('u2', 'Two?'))
    expect((await handler(at('/c/stop', json))).status).toBe(204)
    await chunksOf(await first)
    expect(await chunksOf(second)).toEqual([])
    expect((await handler(at('/c/stream'))).status).toBe(204)
    expect((await history(handler)).at(-1)).toEqual(['user', 'Two?', true])
    const third = handler(messageRequest('u3', 'Three?'))
    await untilRequest()
    answer('Second.')
    await untilRequest()
    answer('Third.')
    expect(JSON.stringify(await chunksOf(await third))).toContain('Third.')
    expect((await history(handler)).slice(-4).map(([, words]) => words)).toEqual([
      'Two?',
      'Second.',
      'Three?',
      'Third.',
    ])
  })

  it('keeps a message while an approval is pending, and sends it after the run has ended', async () => {
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const { handler, untilRequest, answer, model } = open(createStore(), { tools: [pay] })
    const chat = new Chat('c', handler)
    const first = chat.sendMessage({ text: 'Pay.' })
    await untilRequest()
    const second = await handler(messageRequest('u2', 'Two?'))
    model.pending?.answer({ toolCalls: [call('a', 'pay', {})] })
    await first
    expect(await chunksOf(second)).toEqual([])
    expect((await history(handler)).at(-1)).toEqual(['user', 'Two?', true])
    const part = chat.lastMessage?.parts.find((each) => 'approval' in each) as { approval: { id: string } }
    await chat.addToolApprovalResponse({ id: part.approval.id, approved: true })
    await untilRequest()
    answer('Paid.')
    await untilRequest()
    answer('Second.')
    await untilLater(async () => (await history(handler)).at(-1)?.[1] === 'Second.')
  })

  it.each(['queue', 'steer'] as const)(
    'queues a message sent during an approval, with whenBusy: %s',
    async (whenBusy) => {
      const pay = tool('pay', () => 'paid', { needsApproval: true })
      const { handler, untilRequest, answer, model } = open(createStore(), { tools: [pay] }, { whenBusy })
      const chat = new Chat('c', handler)
      const first = chat.sendMessage({ text: 'Pay.' })
      await untilRequest()
      model.pending?.answer({ toolCalls: [call('a', 'pay', {})] })
      await first
      expect(await chunksOf(await handler(messageRequest('u2', 'Two?')))).toEqual([])
      expect(await chunksOf(await handler(messageRequest('u2', 'Two?')))).toEqual([])
      expect((await history(handler)).filter(([, words]) => words === 'Two?')).toEqual([
        ['user', 'Two?', true],
      ])
      expect(model.pending).toBeNull()
      const part = chat.lastMessage?.parts.find((each) => 'approval' in each) as { approval: { id: string } }
      await chat.addToolApprovalResponse({ id: part.approval.id, approved: true })
      await untilRequest()
      answer('Paid.')
      await untilRequest()
      answer('Second.')
      await untilLater(async () => (await history(handler)).at(-1)?.[1] === 'Second.')
      expect((await history(handler)).slice(-2)).toEqual([
        ['user', 'Two?'],
        ['assistant', 'Second.'],
      ])
    },
  )

  it('refuses a message while an approval is pending with whenBusy: refuse', async () => {
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const { handler, untilRequest, model } = open(createStore(), { tools: [pay] }, { whenBusy: 'refuse' })
    const first = handler(messageRequest('u1', 'Pay.'))
    await untilRequest()
    model.pending?.answer({ toolCalls: [call('a', 'pay', {})] })
    await chunksOf(await first)
    const refused = await handler(messageRequest('u2', 'Two?'))
    expect(refused.status).toBe(409)
    expect(await refused.json()).toMatchObject({ error: { code: 'waiting_for_answers' } })
  })

  it('sends queued messages of a dead process once a page may continue the chat', async () => {
    const store = createStore()
    const before = open(store)
    const first = before.handler(messageRequest('u1', 'One?'))
    await before.untilRequest()
    before.answer('First.')
    await chunksOf(await first)
    await before.agent.send('c', { type: 'message', when: 'next', input: 'Two?' })
    const { handler, untilRequest, answer } = open(store)
    const stream = handler(at('/c/stream'))
    await untilRequest()
    answer('Second.')
    expect(JSON.stringify(await chunksOf(await stream))).toContain('Second.')
  })
})

it('steers the active run with whenBusy: steer', async () => {
  const { handler, untilRequest, answer, model } = open(
    memoryStore(),
    { tools: [tool('look')] },
    { whenBusy: 'steer' },
  )
  const first = handler(messageRequest('u1', 'One?'))
  await untilRequest()
  const second = handler(messageRequest('u2', 'Mind the gap.'))
  await settled()
  model.pending?.answer({ toolCalls: [call('a', 'look')] })
  await untilRequest()
  expect(JSON.stringify(model.pending?.request.messages)).toContain('Mind the gap.')
  answer('Done.')
  await Promise.all([chunksOf(await first), chunksOf(await second)])
  expect((await history(handler)).map(([role]) => role)).toEqual(['user', 'assistant'])
})

it.each(['stopped', 'failed'])(
  'keeps a steering message of a run that is %s before its model receives it, for the next turn',
  async (how) => {
    const { handler, untilRequest, answer, model } = open(memoryStore(), {}, { whenBusy: 'steer' })
    const first = handler(messageRequest('u1', 'One?'))
    await untilRequest()
    const second = handler(messageRequest('u2', 'And in June?'))
    await settled()
    if (how === 'stopped') await handler(at('/c/stop', json))
    else model.pending?.fail({ kind: 'fatal', code: 'invalid_api_key', status: 401 })
    await Promise.all([chunksOf(await first), chunksOf(await second)])
    expect((await history(handler)).at(-1)).toEqual(['user', 'And in June?', true])
    const third = handler(messageRequest('u3', 'Three?'))
    await untilRequest()
    const asked = model.pending?.request.messages ?? []
    expect(asked.map(({ content }) => content)).toEqual(['One?', 'And in June?', 'Three?'])
    answer('Both.')
    await chunksOf(await third)
    const shown = (await history(handler)).filter(([role]) => role === 'user')
    expect(shown).toEqual([
      ['user', 'One?'],
      ['user', 'And in June?'],
      ['user', 'Three?'],
    ])
  },
)

it('queues an image with whenBusy: steer', async () => {
  const { handler, untilRequest, answer } = open(memoryStore(), {}, { whenBusy: 'steer' })
  const first = handler(messageRequest('u1', 'One?'))
  await untilRequest()
  const picture = { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,iVBORw0KGgo=' }
  const body = { id: 'c', messages: [{ id: 'u2', role: 'user', parts: [picture] }] }
  const second = await handler(at('', { ...json, body: JSON.stringify(body) }))
  answer('First.')
  await chunksOf(await first)
  await untilRequest()
  answer('Second.')
  expect(JSON.stringify(await chunksOf(second))).toContain('Second.')
})

describe('a queued message of a dead process', () => {
  /** A chat with a queued message u2, opened by another process. */
  async function abandoned(grant: { prefix: string; context?: unknown }) {
    const store = memoryStore()
    const before = open(store, {}, { authorize: () => grant })
    const first = before.handler(messageRequest('u1', 'One?'))
    await before.untilRequest()
    before.answer('First.')
    await chunksOf(await first)
    const message = { type: 'message', when: 'next', input: 'Two?', messageId: 'u2' } as const
    await before.agent.send('team:c', message)
    const after = open(store, {}, { authorize: () => grant })
    expect((await after.handler(at('/c/stream'))).status).toBe(204)
    /** Advances the clock until the next model request. */
    const untilRequest = () =>
      until(() => {
        after.clock.increment(1000)
        return after.model.pending !== null
      })
    return { ...after, untilRequest }
  }

  it('is sent before the next message if requests have no context', async () => {
    const { handler, untilRequest, answer } = await abandoned({ prefix: 'team' })
    const third = await handler(messageRequest('u3', 'Three?'))
    await untilRequest()
    answer('Second.')
    await untilRequest()
    answer('Third.')
    expect(JSON.stringify(await chunksOf(third))).toContain('Third.')
  })

  it('never uses the context of another message, and waits until its page sends it again', async () => {
    const { handler, untilRequest, answer, clock, model } = await abandoned({ prefix: 'team', context: {} })
    const third = await handler(messageRequest('u3', 'Three?'))
    let isOver = false
    const chunks = chunksOf(third).finally(() => (isOver = true))
    await until(() => {
      clock.increment(1000)
      return isOver
    })
    expect(await chunks).toEqual([])
    expect(model.pending).toBeNull()
    expect((await history(handler)).map((message) => message[1])).toEqual([
      'One?',
      'First.',
      'Two?',
      'Three?',
    ])
    const second = await handler(messageRequest('u2', 'Two?'))
    await untilRequest()
    answer('Second.')
    expect(JSON.stringify(await chunksOf(second))).toContain('Second.')
    await untilRequest()
    answer('Third.')
    await untilLater(async () => (await history(handler)).at(-1)?.[1] === 'Third.')
  })
})

it.each(['refuse', 'queue'] as const)(
  'a message that cannot be queued or started is refused, with whenBusy: %s',
  async (whenBusy) => {
    const interactive = whenBusy === 'queue'
    const { handler, untilRequest, answer } = open(memoryStore(), { interactive }, { whenBusy })
    const first = handler(messageRequest('u1', 'One?'))
    await untilRequest()
    const second = await handler(messageRequest('u2', 'Two?'))
    expect(second.status).toBe(409)
    expect(await second.json()).toMatchObject({ error: { code: 'run_in_progress' } })
    answer('First.')
    await chunksOf(await first)
  },
)

it('returns 429 when too many messages are queued', async () => {
  const { handler, untilRequest, agent } = open(memoryStore())
  const first = handler(messageRequest('u1', 'One?'))
  await untilRequest()
  for (let i = 0; i < 100; i += 1) await agent.send('c', { type: 'message', when: 'next', input: 'x' })
  const refused = await handler(messageRequest('u2', 'Two?'))
  expect([refused.status, await refused.json()]).toMatchObject([429, { error: { code: 'queue_full' } }])
  await handler(at('/c/stop', json))
  await chunksOf(await first)
})

it('passes tools the context of the request that sent the message', async () => {
  const users: unknown[] = []
  const pay = tool('pay', (_input, { context }) => {
    users.push((context as { user?: string } | undefined)?.user)
    return 'paid'
  })
  const authorize: Authorize = (request) => {
    const user = request.headers.get('x-user') ?? 'ann'
    return { prefix: 'team', context: { user } }
  }
  const { handler, untilRequest, answer, model } = open(memoryStore(), { tools: [pay] }, { authorize })
  const from = (user: string, request: Request): Request => {
    request.headers.set('x-user', user)
    return request
  }
  const first = handler(from('ann', messageRequest('u1', 'One?')))
  await untilRequest()
  const second = handler(from('ben', messageRequest('u2', 'Two?')))
  await second
  answer('First.')
  await untilRequest()
  model.pending?.answer({ toolCalls: [call('a', 'pay')] })
  await untilRequest()
  answer('Second.')
  await Promise.all([chunksOf(await first), chunksOf(await second)])
  expect(users).toEqual(['ben'])
})

describe('a queued message keeps its sender if another person sends its id', () => {
  const from = (user: string, request: Request): Request => {
    request.headers.set('x-user', user)
    return request
  }
  const picture = at('', {
    ...json,
    body: JSON.stringify({
      id: 'c',
      messages: [
        {
          id: 'u2',
          role: 'user',
          parts: [
            { type: 'text', text: 'Two?' },
            { type: 'file', url: 'data:x', mediaType: 'x' },
          ],
        },
      ],
    }),
  })

  it.each([
    ['with the same text', messageRequest('u2', 'Two?'), 200, undefined],
    ['with different text', messageRequest('u2', 'Three?'), 409, 'message_changed'],
    ['with an invalid file', picture, 400, 'invalid_input'],
  ])('%s', async (_, request, status, code) => {
    const users: unknown[] = []
    const pay = tool('pay', (_input, { context }) => {
      users.push((context as { user?: string } | undefined)?.user)
      return 'paid'
    })
    const authorize: Authorize = (asking) => ({
      prefix: 'team',
      context: { user: asking.headers.get('x-user') },
      mayContinue: false,
    })
    const { handler, untilRequest, answer, model } = open(memoryStore(), { tools: [pay] }, { authorize })
    const first = handler(from('ann', messageRequest('u1', 'One?')))
    await untilRequest()
    const second = await handler(from('ann', messageRequest('u2', 'Two?')))
    const again = await handler(from('ben', request))
    expect(again.status).toBe(status)
    const refusal = status === 200 ? {} : ((await again.json()) as { error?: { code?: string } })
    expect(refusal.error?.code).toBe(code)
    answer('First.')
    await untilRequest()
    model.pending?.answer({ toolCalls: [call('a', 'pay')] })
    await untilRequest()
    answer('Second.')
    await Promise.all([chunksOf(await first), chunksOf(second)])
    expect(users).toEqual(['ann'])
  })
})

it.each([
  ['queues the message of a person who may not continue the run', false, ['ben']],
  ['steers the run for a person who may continue it', true, ['ann']],
])('with whenBusy: steer it %s', async (_, mayContinue, expected) => {
  const users: unknown[] = []
  const pay = tool('pay', (_input, { context }) => {
    users.push((context as { user?: string } | undefined)?.user)
    return 'paid'
  })
  const authorize: Authorize = (asking) => ({
    prefix: 'team',
    context: { user: asking.headers.get('x-user') },
    mayContinue,
  })
  const options = { authorize, whenBusy: 'steer' } as const
  const { handler, untilRequest, answer, model } = open(
    memoryStore(),
    { tools: [pay, tool('look')] },
    options,
  )
  const from = (user: string, request: Request): Request => {
    request.headers.set('x-user', user)
    return request
  }
  const first = handler(from('ann', messageRequest('u1', 'One?')))
  await untilRequest()
  const second = handler(from('ben', messageRequest('u2', 'Pay me.')))
  await settled()
  model.pending?.answer({ toolCalls: [call('a', 'look')] })
  await untilRequest()
  // The model follows the message and confirms it.
  for (let asks = 0; users.length === 0 && asks < 3; asks += 1) {
    const isTold = JSON.stringify(model.pending?.request.messages).includes('Pay me.')
    model.pending?.answer(isTold ? { toolCalls: [call('b', 'pay')] } : { text: 'First.' })
    await untilRequest()
  }
  answer('Done.')
  await Promise.all([first, second].map(async (response) => chunksOf(await response)))
  expect(users).toEqual(expected)
})

it('refuses different text under the id of the message in progress', async () => {
  const { handler, untilRequest, answer } = open(memoryStore())
  const first = handler(messageRequest('u1', 'One?'))
  await untilRequest()
  const other = await handler(messageRequest('u1', 'Two?'))
  expect([other.status, await other.json()]).toMatchObject([409, { error: { code: 'message_changed' } }])
  answer('First.')
  await chunksOf(await first)
})

it('sends a repeated steering message once', async () => {
  const { agent, handler, untilRequest, answer, model } = open(
    memoryStore(),
    { tools: [tool('look')] },
    { whenBusy: 'steer' },
  )
  const first = handler(messageRequest('u1', 'One?'))
  await untilRequest()
  const second = handler(messageRequest('u2', 'Mind the gap.'))
  const again = handler(messageRequest('u2', 'Mind the gap.'))
  await settled()
  model.pending?.answer({ toolCalls: [call('a', 'look')] })
  await untilRequest()
  expect(JSON.stringify(model.pending?.request.messages).split('Mind the gap.')).toHaveLength(2)
  answer('Done.')
  await Promise.all([first, second, again].map(async (response) => chunksOf(await response)))
  expect(JSON.stringify(await chunksOf(await handler(messageRequest('u2', 'Mind the gap.'))))).toContain(
    'Done.',
  )
  expect(model.pending).toBeNull()
  const steering = { type: 'message', when: 'next', input: 'Mind the gap.', messageId: 'u2' } as const
  expect(await agent.send('c', steering)).toMatchObject({ status: 'applied' })
})

it('leaves a message to the process that received it, which sends it with its own context', async () => {
  const store = memoryStore()
  const users: unknown[] = []
  const pay = tool('pay', (_input, { context }) => {
    users.push((context as { user?: string } | undefined)?.user)
    return 'paid'
  })
  const person = (user: string): Partial<ChatHandlerOptions> => ({
    authorize: () => ({ prefix: 'team', context: { user } }),
  })
  const [ann, ben] = [
    open(store, { tools: [pay] }, person('ann')),
    open(store, { tools: [pay] }, person('ben')),
  ]
  const first = ann.handler(messageRequest('u1', 'One?'))
  await ann.untilRequest()
  const second = await ben.handler(messageRequest('u2', 'Two?'))
  ann.answer('First.')
  await chunksOf(await first)
  await settled()
  expect(ann.model.pending).toBeNull()
  await until(() => {
    ben.clock.increment(1000)
    return ben.model.pending !== null
  })
  ben.model.pending?.answer({ toolCalls: [call('a', 'pay')] })
  await ben.untilRequest()
  ben.answer('Second.')
  await chunksOf(second)
  expect(users).toEqual(['ben'])
})

it('reads a log that grows once for all requests that wait for a queued message', async () => {
  const store = memoryStore()
  let reads = 0
  const counted: SessionStore = {
    ...store,
    read: (...args) => {
      reads += 1
      return store.read(...args)
    },
  }
  const options = { tools: [tool('look', () => 'seen')] }
  const [ann, ben] = [open(store, options), open(counted, options)]
  const first = ann.handler(messageRequest('u1', 'One?'))
  await ann.untilRequest()
  const waiting = 6
  for (let i = 2; i < 2 + waiting; i += 1) await ben.handler(messageRequest(`u${i}`, 'Next?'))
  await settled()
  ann.model.pending?.answer({ toolCalls: [call('a', 'look')] })
  await ann.untilRequest()
  reads = 0
  ben.clock.increment(1000)
  await until(() => reads > 0)
  await settled()
  expect(reads).toBeLessThan(waiting)
  ann.answer('First.')
  await chunksOf(await first)
})

it('does not show text that input shields have not checked', async () => {
  const shields = { input: [patternShield({ patterns: [/secret/], action: 'redact' })] }
  const { handler, untilRequest, answer } = open(memoryStore(), { shields })
  const first = handler(messageRequest('u1', 'One?'))
  await untilRequest()
  const second = handler(messageRequest('u2', 'the secret'))
  await second
  expect(JSON.stringify(await history(handler))).not.toContain('secret')
  answer('First.')
  await untilRequest()
  answer('Second.')
  await Promise.all([chunksOf(await first), chunksOf(await second)])
  expect(JSON.stringify(await history(handler))).not.toContain('secret')
})

it('reports to the page and to onError when a queued message cannot be answered', async () => {
  const errors: unknown[] = []
  const onError = (error: unknown): unknown => errors.push((error as Error).message)
  const store = memoryStore()
  const { handler, untilRequest, answer, model } = open(store, {}, { onError })
  const first = handler(messageRequest('u1', 'One?'))
  await untilRequest()
  const second = await handler(messageRequest('u2', 'Two?'))
  Object.assign(model, {
    check: () => {
      throw new Error('The key of db.internal is missing.')
    },
  })
  answer('First.')
  await chunksOf(await first)
  const [chunk] = await chunksOf(second)
  expect(chunk).toMatchObject({
    type: 'error',
    errorText: expect.not.stringContaining('db.internal') as string,
  })
  expect(errors).toEqual(['The key of db.internal is missing.'])
})

it('also answers messages that agent.send queued', async () => {
  const { handler, untilRequest, answer, agent } = open(memoryStore())
  const first = handler(messageRequest('u1', 'One?'))
  await untilRequest()
  await agent.send('c', { type: 'message', when: 'next', input: 'Two?' })
  answer('First.')
  await chunksOf(await first)
  await untilRequest()
  answer('Second.')
  await untilLater(async () => (await history(handler)).at(-1)?.[1] === 'Second.')
  await settled()
  expect(await runSession(agent, { session: 'c' })).toMatchObject({ turn: 2 })
})

it('also answers in AG-UI', async () => {
  const model = new ManualModel()
  const agent = createAgent({
    model,
    store: memoryStore(),
    clock: new SimulatedClock(),
    tools: [clientTool('open')],
  })
  const handler = aguiHandler({ agent, authorize: 'none' })
  const post = (id: string, words: string) =>
    handler(
      new Request('http://chat.test/api/agui', {
        ...json,
        body: JSON.stringify({
          threadId: 'c',
          runId: id,
          messages: [{ id, role: 'user', content: words }],
        }),
      }),
    )
  const read = async () =>
    (await (await handler(new Request('http://chat.test/api/agui/c'))).json()) as Record<
      'messages' | 'queued',
      { content: string }[]
    >
  const first = post('u1', 'One?')
  await until(() => model.pending !== null)
  const second = post('u2', 'Two?')
  await second
  expect((await read()).queued.map(({ content }) => content)).toEqual(['Two?'])
  model.pending?.answer({ text: 'First.' })
  await until(() => model.pending !== null)
  model.pending?.answer({ text: 'Second.' })
  const texts = await Promise.all([(await first).text(), (await second).text()])
  expect(texts[1]).toContain('RUN_STARTED')
  expect(texts[1]).toContain('Second.')
  expect(texts[1]).toContain('RUN_FINISHED')
  expect((await read()).messages.map(({ content }) => content)).toEqual(['One?', 'First.', 'Two?', 'Second.'])
})
