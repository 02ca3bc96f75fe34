import {
  type Agent,
  defineAgents,
  memoryStore,
  runSession,
  type SessionMessage,
  type SessionStore,
} from '../../src/index.js'
import { aguiHandler } from '../../src/agui/index.js'
import { chatHandler } from '../../src/ui/index.js'
import { stage } from '../support/play.js'
import { call, calls, text, tool } from '../support/tools.js'

const pay = () => tool('pay', () => 'paid', { needsApproval: true })
const bob = { id: 'bob', roles: ['finance'] }

/** The control events of a log, and who sent each. */
async function listSenders(store: SessionStore, id: string) {
  return (await store.read(id)).flatMap(({ type, data }) => {
    const { event, input } = JSON.parse(data)
    if (type === 'start') return [['start', input.requesters]]
    if (type !== 'event' || !/^[A-Z_]+$/.test(event.type) || !('by' in event || 'why' in event)) return []
    return [[event.type, event.by, ...(event.why === undefined ? [] : [event.why])]]
  })
}

const pendingOf = async (agent: Pick<Agent, 'replay'>, id: string) =>
  (await agent.replay(id)).run!.pending![0]!

describe('the sender of a message to a run', () => {
  it('is logged for the start, steering, and the approval with its reason', async () => {
    const store = memoryStore()
    const { agent } = await stage([call('pay'), text('Paid.')], { store, tools: [pay()] })
    const run = agent.run('Pay.', { session: 's', by: 'ann' })
    const { pending = [] } = await run.result
    run.approve(pending[0]!, undefined, { by: bob, why: 'Checked.' })
    expect((await run.result).state).toBe('COMPLETED')
    expect(await listSenders(store, 's')).toEqual([
      ['start', [{ id: 'ann' }]],
      ['APPROVE', bob, 'Checked.'],
    ])
    // The model does not read it.
    expect(JSON.stringify((await agent.replay('s')).messages)).not.toContain('Checked.')
  })

  it('is logged for each kind of message, from any process', async () => {
    const store = memoryStore()
    const { agent } = await stage([calls([['pay'], ['pay'], ['pay']]), text('Paid.')], {
      store,
      tools: [pay()],
    })
    await agent.run('Pay.', { session: 's' }).result
    const [first, second, third] = (await agent.replay('s')).run?.pending ?? []
    const messages: SessionMessage[] = [
      { type: 'steer', text: 'Hurry.', by: 'dee' },
      { type: 'approve', ...first!, by: bob, why: 'Fine.' },
      { type: 'reject', ...second!, by: 'cyd', why: 'No.' },
      { type: 'approve', ...third!, by: 'cyd' },
    ]
    for (const message of messages) await agent.send('s', message)
    expect((await (await agent.resume('s')).result).state).toBe('COMPLETED')
    expect(await listSenders(store, 's')).toEqual([
      ['start', undefined],
      ['STEER', { id: 'dee' }],
      ['APPROVE', bob, 'Fine.'],
      ['REJECT', { id: 'cyd' }, 'No.'],
      ['APPROVE', { id: 'cyd' }],
    ])
  })

  it('is passed to a sub-agent with its question, and back with the answer', async () => {
    const store = memoryStore()
    const inner = await stage([call('pay'), text('Paid.')], { tools: [pay()] })
    const clerk = inner.agent.asTool({ name: 'clerk', description: 'Pays.' }) as never
    const { agent } = await stage([call('clerk', { task: 'Pay.' }), text('Done.')], {
      store,
      tools: [clerk],
    })
    const run = agent.run('Pay.', { session: 's', by: 'ann' })
    const { pending = [] } = await run.result
    run.approve(pending[0]!, undefined, { by: bob, why: 'Checked.' })
    expect((await run.result).state).toBe('COMPLETED')
    const child = store.list({ children: true }).find(({ id }) => id !== 's')
    expect(await listSenders(store, child!.id)).toEqual([
      ['start', [{ id: 'ann' }]],
      ['APPROVE', bob, 'Checked.'],
    ])
  })

  it('is passed on by an engine; a queued message has its own sender', async () => {
    const store = memoryStore()
    const { agent } = await stage([text('One.'), text('Two.')], { store })
    const agents = defineAgents({ clerk: agent })
    await runSession(agents, { session: 's', input: 'Hello.', by: 'ann' })
    await agent.send('s', { type: 'message', when: 'next', input: 'And?', by: 'eve' })
    await runSession(agents, { session: 's' })
    expect(await listSenders(store, 's')).toEqual([
      ['start', [{ id: 'ann' }]],
      ['start', [{ id: 'eve' }]],
    ])
  })

  it.each([
    ['', 'empty'],
    [' ', 'blank'],
    ['x'.repeat(201), 'long'],
    [7, 'a number'],
    [null, 'null'],
    [{ id: '' }, 'id'],
    [{ id: 'a', roles: 'x' }, 'roles'],
    [{ id: 'a', roles: [1] }, 'role'],
    [{ id: 'a', name: 'b' }, 'key'],
  ])('is refused: %j (%s)', async (by, _why) => {
    const store = memoryStore()
    const { agent } = await stage([call('pay'), text('Paid.')], { store, tools: [pay()] })
    const invalid = expect.objectContaining({ code: 'invalid_input', subject: 'by' })
    expect(() => agent.run('Pay.', { by: by as never })).toThrow(invalid)
    const run = agent.run('Pay.', { session: 's' })
    const { pending = [] } = await run.result
    const before = store.read('s').length
    const options = { by: by as never }
    expect(() => run.approve(pending[0]!, undefined, options)).toThrow(invalid)
    expect(() => run.reject(pending[0]!, 'no', options)).toThrow(invalid)
    expect(() => run.cancel('no', options)).toThrow(invalid)
    expect(() => run.steer('no', options)).toThrow(invalid)
    await expect(agent.send('s', { type: 'approve', ...pending[0]!, ...options })).rejects.toThrow(invalid)
    await expect(agent.send('s', { type: 'message', when: 'next', input: 'x', ...options })).rejects.toThrow(
      invalid,
    )
    await expect(runSession(agent, { session: 't', input: 'x', ...options })).rejects.toThrow(invalid)
    expect([store.read('s').length, store.inbox?.read('s')]).toEqual([before, []])
  })
})

const json = (url: string, body: object): Request =>
  new Request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-user': 'bob' },
    body: JSON.stringify(body),
  })

const authorize = (request: Request) => ({
  prefix: 'team',
  by: { id: request.headers.get('x-user') ?? '', roles: ['finance'] },
})

describe('a page', () => {
  it('of useChat sends as the person that authorize returns, and cannot name another', async () => {
    const store = memoryStore()
    const { agent } = await stage([call('pay'), text('Paid.')], { store, tools: [pay()] })
    const handler = chatHandler({ agent, authorize })
    const user = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Pay.' }] }
    const post = (messages: object[], more = {}) =>
      handler(json('http://chat.test/api/chat', { id: 'c', messages, ...more }))
    const forged = await post([user], { by: 'eve' })
    expect([forged.status, (await forged.json()).error.code]).toEqual([400, 'invalid_input'])
    await (await post([user])).text()
    const question = await pendingOf(agent, 'team:c')
    const approval = { id: `${question.callId}~${question.fingerprint}`, approved: true, reason: 'Checked.' }
    const answer = (more = {}) => [
      {
        id: 'a',
        role: 'assistant',
        parts: [
          {
            type: 'tool-pay',
            toolCallId: question.callId,
            state: 'approval-responded',
            input: {},
            approval: { ...approval, ...more },
          },
        ],
      },
    ]
    expect((await post(answer({ by: 'eve' }))).status).toBe(400)
    await (await post(answer())).text()
    expect(await listSenders(store, 'team:c')).toEqual([
      ['start', [bob]],
      ['APPROVE', bob, 'Checked.'],
    ])
  })

  it('of AG-UI does the same', async () => {
    const store = memoryStore()
    const { agent } = await stage([call('pay'), text('Paid.')], { store, tools: [pay()] })
    const handler = aguiHandler({ agent, authorize })
    const post = (more: object) =>
      handler(json('http://chat.test/api/agui', { threadId: 'c', runId: 'r', messages: [], ...more }))
    const messages = [{ id: 'u1', role: 'user', content: 'Pay.' }]
    expect((await post({ messages, forwardedProps: { by: 'eve' } })).status).toBe(400)
    await (await post({ messages })).text()
    const { interrupts } = await (
      await handler(new Request('http://chat.test/api/agui/c', { headers: { 'x-user': 'bob' } }))
    ).json()
    const entry = (payload: object) => ({
      resume: [{ interruptId: interrupts[0].id, status: 'resolved', payload }],
    })
    expect((await post(entry({ approved: true, by: 'eve' }))).status).toBe(400)
    await (await post(entry({ approved: true, reason: 'Checked.' }))).text()
    expect(await listSenders(store, 'team:c')).toEqual([
      ['start', [bob]],
      ['APPROVE', bob, 'Checked.'],
    ])
  })

  it.each([[{ id: 7 }], [''], [{ id: 'a', admin: true }]])(
    'is refused if authorize returns by: %j',
    async (by) => {
      const { agent } = await stage([text('Hello.')], { store: memoryStore() })
      const handler = chatHandler({
        agent,
        authorize: () => ({ prefix: 'a', by: by as never }),
        onError: () => undefined,
      })
      const response = await handler(new Request('http://chat.test/api/chat/c'))
      expect(response.status).toBe(500)
    },
  )
})

it('an agent without a store records who started a run in its machine input', async () => {
  const { agent } = await stage([text('Hello.')])
  expect(agent.createInput('Hello.', { by: 'ann' })).toMatchObject({ requesters: [{ id: 'ann' }] })
  expect(agent.createInput('Hello.')).not.toHaveProperty('requesters')
})
