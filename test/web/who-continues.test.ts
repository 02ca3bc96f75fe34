import { SimulatedClock } from 'xstate'
import { aguiHandler } from '../../src/agui/index.js'
import { type Agent, memoryStore } from '../../src/index.js'
import { type Authorize, chatHandler, type HandlerHooks } from '../../src/ui/index.js'
import { passing } from '../support/passing.js'
import { again, type Stage, stage } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'

type Handler = (request: Request) => Promise<Response>

/** How pages of both protocols send a message and read a stream. */
const protocols = [
  {
    name: 'useChat',
    path: '/api/chat',
    serve: (agent: Agent, authorize: Authorize, hooks: HandlerHooks = {}): Handler =>
      chatHandler({ agent, authorize, ...hooks }),
    body: (id: string, words: string) => ({
      id: 'c1',
      messages: [{ id, role: 'user', parts: [{ type: 'text', text: words }] }],
    }),
  },
  {
    name: 'AG-UI',
    path: '/api/agui',
    serve: (agent: Agent, authorize: Authorize, hooks: HandlerHooks = {}): Handler =>
      aguiHandler({ agent, authorize, ...hooks }),
    body: (id: string, words: string) => ({
      threadId: 'c1',
      runId: 'r1',
      messages: [{ id, role: 'user', content: words }],
    }),
  },
] as const

const person = (name: string, mayContinue?: boolean): Authorize => {
  const grant = { prefix: 'team', context: { user: name } }
  return () => (mayContinue === undefined ? grant : { ...grant, mayContinue })
}

interface Left {
  theatre: Stage
  agent: Agent
  clock: SimulatedClock
  /** The `context` of each tool call. */
  users: unknown[]
}

/** A run whose process died during a model request, then another process without requests. */
async function interrupted(): Promise<Left> {
  const users: unknown[] = []
  const pay = tool('pay', (_input, { context }) => {
    users.push((context as { user?: string } | undefined)?.user)
    return 'paid'
  })
  const store = memoryStore()
  const theatre = await stage([text('Never', { hang: 2 }), call('pay'), text('Done.')], {
    store,
    tools: [pay],
  })
  const run = theatre.run([{ role: 'user', content: 'Pay.', clientId: 'u1' } as never], {
    session: 'team:c1',
    context: { user: 'ann' },
  })
  await theatre.arrival()
  const copy = memoryStore()
  const lease = copy.acquire('team:c1', { holder: 'test', ttlMs: 1000 })
  copy.append(lease, store.read('team:c1'))
  copy.release(lease)
  run.run.cancel()
  const clock = new SimulatedClock()
  return { theatre, agent: again(theatre, { store: copy, tools: [pay], clock }), clock, users }
}

describe.each(protocols)('a run whose process has died, over $name', ({ path, serve, body }) => {
  const at = (to = '', init?: RequestInit): Request => new Request(`http://chat.test${path}${to}`, init)
  const post = (to: string, value: unknown, type = 'application/json'): Request =>
    at(to, { method: 'POST', headers: { 'content-type': type }, body: JSON.stringify(value) })

  it('is not continued by a reader who opens its history and its stream', async () => {
    const { theatre, agent, clock, users } = await interrupted()
    const reader = serve(agent, person('bob'))
    expect((await reader(at('/c1'))).status).toBe(200)
    const opened = await reader(at('/c1/stream'))
    expect(opened.status).toBe(200)
    const stream = opened.text()
    for (let second = 0; second < 60; second += 1) {
      clock.increment(1000)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect([theatre.requests.length, users]).toEqual([1, []])
    // The message, repeated by its sender, continues the run with the sender's context.
    const owner = serve(agent, person('ann'))
    await (await owner(post('', body('u1', 'Pay.')))).text()
    expect([theatre.requests.length, users]).toEqual([3, ['ann']])
    expect(await passing(clock, stream)).toContain('Done.')
  })

  it('is continued by a stream whose grant sets mayContinue, with the context of that grant', async () => {
    const { theatre, agent, users } = await interrupted()
    const owner = serve(agent, person('ann', true))
    expect(await (await owner(at('/c1/stream'))).text()).toContain('Done.')
    expect([theatre.requests.length, users]).toEqual([3, ['ann']])
  })

  it('calls the hooks of the handler that continues it', async () => {
    const { agent } = await interrupted()
    const lines: string[] = []
    const hooks: HandlerHooks = {
      onStart: () => lines.push('onStart'),
      onSettle: ({ state }) => lines.push(state),
    }
    const owner = serve(agent, person('ann', true), hooks)
    expect(await (await owner(at('/c1/stream'))).text()).toContain('Done.')
    expect(lines).toEqual(['onStart', 'COMPLETED'])
  })

  it.each([
    ['a prefix alone', () => 'team'],
    ['mayContinue: false', person('bob', false)],
  ] as const)('waits if the grant is %s', async (_, authorize) => {
    const { theatre, agent, clock } = await interrupted()
    const opened = await serve(agent, authorize)(at('/c1/stream'))
    clock.increment(60_000)
    await new Promise((resolve) => setImmediate(resolve))
    await opened.body?.cancel()
    expect(theatre.requests).toHaveLength(1)
  })

  it('can be stopped while a reader watches it, and the reader sees the end', async () => {
    const { theatre, agent, clock } = await interrupted()
    const stream = (await serve(agent, person('bob'))(at('/c1/stream'))).text()
    expect((await serve(agent, person('ann'))(post('/c1/stop', {}))).status).toBe(204)
    expect(await passing(clock, stream)).toMatch(/"abort"|"cancelled"/)
    expect(theatre.requests).toHaveLength(1)
  })

  it('causes a server error if mayContinue is neither true nor false', async () => {
    const { agent } = await interrupted()
    const errors: unknown[] = []
    const authorize = (() => ({ prefix: 'team', mayContinue: 'yes' })) as unknown as Authorize
    const handler =
      path === '/api/chat'
        ? chatHandler({ agent, authorize, onError: (error) => errors.push(error) })
        : aguiHandler({ agent, authorize, onError: (error) => errors.push(error) })
    expect((await handler(at('/c1/stream'))).status).toBe(500)
    expect(errors).toMatchObject([{ code: 'authorize_failed' }])
  })

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'])(
    'is neither stopped nor answered by a form of another origin: %s',
    async (type) => {
      const { theatre, agent } = await interrupted()
      const handler = serve(agent, person('ann'))
      for (const to of ['/c1/stop', '']) {
        const refused = await handler(post(to, body('u2', 'Again.'), type))
        expect([refused.status, await refused.json()]).toMatchObject([
          415,
          { error: { code: 'wrong_content_type' } },
        ])
      }
      expect((await handler(at('/c1/stop', { method: 'POST' }))).status).toBe(415)
      expect((await agent.replay('team:c1')).run?.state).toBe('RUNNING')
      expect(theatre.requests).toHaveLength(1)
    },
  )
})
