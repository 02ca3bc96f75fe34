import { aguiHandler } from '../../src/agui/index.js'
import { type Agent, ConfigError, memoryStore } from '../../src/index.js'
import {
  chatHandler,
  type ChatHandlerOptions,
  type ErrorContext,
  type HandlerHooks,
  type HookContext,
} from '../../src/ui/index.js'
import { latch, type Stage, type StageOptions, stage, tick, until } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'
import type { Turn } from '../../src/rehearsal/index.js'

type Handler = (request: Request) => Promise<Response>
type Options = HandlerHooks &
  Pick<ChatHandlerOptions, 'whenBusy'> & { onError?: (error: unknown, at: ErrorContext) => void }

const authorize = (request: Request) => ({
  prefix: 'team',
  context: { user: request.headers.get('x-user') ?? 'ann' },
})

const protocols = [
  {
    name: 'useChat',
    path: '/api/chat',
    serve: (agent: Agent, options: Options): Handler => chatHandler({ agent, authorize, ...options }),
    say: (id: string, words: string) => ({
      id: 'c1',
      messages: [{ id, role: 'user', parts: [{ type: 'text', text: words }] }],
    }),
  },
  {
    name: 'AG-UI',
    path: '/api/agui',
    serve: (agent: Agent, options: Options): Handler => aguiHandler({ agent, authorize, ...options }),
    say: (id: string, words: string) => ({
      threadId: 'c1',
      runId: 'r1',
      messages: [{ id, role: 'user', content: words }],
    }),
  },
] as const

/** The hook calls, in order. */
function noting() {
  const calls: [string, string | null, HookContext][] = []
  const hooks: HandlerHooks = {
    onStart: (at) => calls.push(['onStart', null, at]),
    onSettle: ({ state }, at) => calls.push(['onSettle', state, at]),
    onFinish: ({ state }, at) => calls.push(['onFinish', state, at]),
  }
  return { calls, hooks, names: () => calls.map(([name, state]) => [name, state].filter(Boolean).join(' ')) }
}

describe.each(protocols)('the hooks of a handler, over $name', ({ path, serve, say }) => {
  const post = (body: object, user = 'ann'): Request =>
    new Request(`http://chat.test${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-user': user },
      body: JSON.stringify(body),
    })

  async function opened(turns: readonly Turn[], options: Options, more: StageOptions = {}) {
    const theatre: Stage = await stage(turns, { store: memoryStore(), ...more })
    return { theatre, handler: serve(theatre.agent, options) }
  }

  it('are called with the principal when a run starts, rests and ends', async () => {
    const { calls, hooks, names } = noting()
    const { handler } = await opened([text('One.'), text('Two.')], hooks)
    await (await handler(post(say('u1', 'Go.')))).text()
    expect(names()).toEqual(['onStart', 'onSettle COMPLETED', 'onFinish COMPLETED'])
    await (await handler(post(say('u2', 'Again.'), 'ben'))).text()
    expect(names().slice(3)).toEqual(['onStart', 'onSettle COMPLETED', 'onFinish COMPLETED'])
    const ats = calls.map(([, , at]) => at)
    expect(ats.map(({ session }) => session)).toEqual(Array(6).fill('team:c1'))
    const people = ['ann', 'ann', 'ann', 'ben', 'ben', 'ben']
    expect(ats.map(({ principal }) => principal)).toEqual(
      people.map((user) => ({ prefix: 'team', context: { user } })),
    )
    expect(new Set(ats.map(({ runId }) => runId)).size).toBe(2)
    // A repeated message starts nothing.
    await (await handler(post(say('u2', 'Again.')))).text()
    expect(calls).toHaveLength(6)
  })

  it('a rest that waits for a person does not call onFinish', async () => {
    const { hooks, names } = noting()
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const { handler, theatre } = await opened([call('pay'), text('Done.')], hooks, { tools: [pay] })
    await (await handler(post(say('u1', 'Pay.')))).text()
    expect(names()).toEqual(['onStart', 'onSettle WAITING_FOR_INPUT'])
    const { run } = await theatre.agent.replay('team:c1')
    const [question] = run?.pending ?? []
    const id = `${question?.callId}~${question?.fingerprint}`
    const approval = {
      type: 'tool-pay',
      toolCallId: question?.callId,
      state: 'approval-responded',
      input: {},
    }
    const answer =
      path === '/api/chat'
        ? {
            id: 'c1',
            messages: [
              { id: 'a', role: 'assistant', parts: [{ ...approval, approval: { id, approved: true } }] },
            ],
          }
        : {
            threadId: 'c1',
            runId: 'r2',
            messages: [],
            resume: [{ interruptId: id, status: 'resolved', payload: { approved: true } }],
          }
    await (await handler(post(answer))).text()
    expect(pay.inputs).toHaveLength(1)
    expect(names().slice(2)).toEqual(['onStart', 'onSettle COMPLETED', 'onFinish COMPLETED'])
  })

  it('stopping a waiting run ends it for the person who stops it', async () => {
    const { calls, hooks, names } = noting()
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const { inbox, ...rest } = memoryStore()
    for (const store of [{ ...rest, inbox }, rest]) {
      const { handler } = await opened([call('pay')], hooks, { tools: [pay], store })
      const id = store === rest ? 'c1' : 'c2'
      await (await handler(post({ ...say('u1', 'Pay.'), id, threadId: id }))).text()
      calls.length = 0
      const stop = new Request(`http://chat.test${path}/${id}/stop`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-user': 'ben' },
      })
      const again = stop.clone() as Request
      expect((await handler(stop)).status).toBe(204)
      expect(names()).toEqual(['onSettle CANCELLED', 'onFinish CANCELLED'])
      expect(calls.map(([, , { session, principal }]) => [session, principal.context])).toEqual(
        [1, 2].map(() => [`team:${id}`, { user: 'ben' }]),
      )
      expect((await handler(again)).status).toBe(204)
      expect(calls).toHaveLength(2)
    }
  })

  it('the response stays open until they settle, after the page has received the answer', async () => {
    const gate = latch()
    const { handler, theatre } = await opened([text('One.')], { onSettle: () => gate.opened })
    const response = await handler(post(say('u1', 'Go.')))
    const read = { text: '', isOver: false }
    const reading = (async () => {
      const reader = (response.body as ReadableStream<BufferSource>).pipeThrough(new TextDecoderStream())
      for await (const chunk of reader as unknown as AsyncIterable<string>) read.text += chunk
      read.isOver = true
    })()
    await until(() => /"finish"|RUN_FINISHED/.test(read.text))
    await tick()
    expect(read.isOver).toBe(false)
    gate.open()
    await reading
    expect((await theatre.agent.replay('team:c1')).run?.state).toBe('COMPLETED')
  })

  it('times out after 30 seconds, reports to onError, and does not affect the run', async () => {
    const errors: [string, string][] = []
    const onError = (error: unknown, { where }: ErrorContext): void =>
      void errors.push([where, (error as { code?: string }).code ?? String(error)])
    const { handler, theatre } = await opened([text('One.')], {
      onSettle: () => new Promise(() => undefined),
      onError,
    })
    const response = await handler(post(say('u1', 'Go.')))
    const whole = response.text()
    await until(() => theatre.requests.length === 1)
    const read = { isOver: false }
    void whole.then(() => (read.isOver = true))
    for (let seconds = 0; seconds < 40 && !read.isOver; seconds += 1) {
      for (let i = 0; i < 20; i += 1) await tick()
      theatre.clock.increment(1000)
    }
    await whole
    expect(errors).toEqual([['hook', 'hook_timeout']])
    expect((await theatre.agent.replay('team:c1')).run?.state).toBe('COMPLETED')
  })

  it('a throwing hook is reported to onError, and affects neither the run nor other hooks', async () => {
    const errors: [string, unknown, string | null][] = []
    const failing = (words: string) => (): never => {
      throw new Error(words)
    }
    const { handler } = await opened([text('One.')], {
      onStart: failing('no start'),
      onSettle: async () => failing('no rest')(),
      onFinish: failing('no finish'),
      onError: (error, { where, session }) => errors.push([where, (error as Error).message, session]),
    })
    const body = await (await handler(post(say('u1', 'Go.')))).text()
    expect(body).toContain('One.')
    expect(body).not.toMatch(/no (start|rest|finish)/)
    expect(errors).toEqual([
      ['hook', 'no start', 'team:c1'],
      ['hook', 'no rest', 'team:c1'],
      ['hook', 'no finish', 'team:c1'],
    ])
  })

  it('a refused request calls no hook', async () => {
    const { calls, hooks } = noting()
    const { handler, theatre } = await opened([text('One.', { hang: 1 })], { ...hooks, whenBusy: 'refuse' })
    const first = await handler(post(say('u1', 'Go.')))
    expect((await handler(post(say('u2', 'Again.')))).status).toBe(409)
    await first.body?.cancel()
    expect(calls.map(([name]) => name)).toEqual(['onStart'])
    await theatre.agent.send('team:c1', { type: 'cancel' })
  })

  it('an unknown option is refused with a suggestion', async () => {
    const { theatre } = await opened([text('One.')], {})
    const create = (options: object) => () => serve(theatre.agent, options as never)
    expect(create({ onFinnish: () => undefined })).toThrow(ConfigError)
    expect(create({ onFinnish: () => undefined })).toThrow(/'onFinnish'.*Did you mean onFinish/)
    expect(create({ onSettle: 'later' })).toThrow('onSettle must be a function.')
  })
})
