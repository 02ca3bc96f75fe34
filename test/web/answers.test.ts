import { memoryStore, type SessionStore } from '../../src/index.js'
import { chatHandler, type ErrorContext, type HandlerHooks } from '../../src/ui/index.js'
import { passing } from '../support/passing.js'
import { stage, type Stage } from '../support/play.js'
import { call, calls, text, tool } from '../support/tools.js'

type Handler = (request: Request) => Promise<Response>

/** The rights of a page; `mayContinue` by the header of that name. */
const authorize = (request: Request) => ({
  prefix: 'ann',
  mayContinue: request.headers.get('x-may-continue') === 'yes',
})

const post = (body: object): Request =>
  new Request('http://chat.test/api/chat', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

const send = (words: string): Request =>
  post({ id: 'c1', messages: [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: words }] }] })

const openStream = (mayContinue: boolean): Request =>
  new Request('http://chat.test/api/chat/c1/stream', {
    headers: { 'x-may-continue': mayContinue ? 'yes' : 'no' },
  })

/** A page's answer to the first pending call. */
async function answer({ agent }: Stage, approved = true): Promise<Request> {
  const { run } = await agent.replay('ann:c1')
  const [question] = run?.pending ?? []
  const id = `${question?.callId}~${question?.fingerprint}`
  const part = { type: 'tool-pay', toolCallId: question?.callId, state: 'approval-responded', input: {} }
  return post({
    id: 'c1',
    messages: [{ id: 'a', role: 'assistant', parts: [{ ...part, approval: { id, approved } }] }],
  })
}

const getState = async ({ agent }: Stage) => (await agent.replay('ann:c1')).run?.state

/** A chat whose run waits for an approval; `acquire` may be made to fail. */
async function openWaitingChat(
  hooks: HandlerHooks & { onError?: (error: unknown, at: ErrorContext) => void } = {},
) {
  const inner = memoryStore()
  const failures = { next: 0 }
  const store: SessionStore = {
    ...inner,
    acquire: (...args) => {
      if (failures.next === 0) return inner.acquire(...args)
      failures.next -= 1
      throw new Error('The database is away.')
    },
  }
  const pay = tool('pay', (_, { progress }) => (progress('half'), 'paid'), { needsApproval: true })
  const theatre = await stage([call('pay'), text('Done.')], { store, tools: [pay] })
  const handler: Handler = chatHandler({
    agent: theatre.agent,
    authorize,
    onError: () => undefined,
    ...hooks,
  })
  await (await handler(send('Pay.'))).text()
  return { theatre, handler, pay, store, failures }
}

describe('an answer in the inbox of a run that could not be resumed', () => {
  it('is accepted when the page sends it again, and the call runs once', async () => {
    const { theatre, handler, pay, failures } = await openWaitingChat()
    const request = await answer(theatre)
    const again = request.clone() as Request
    failures.next = 1
    expect((await handler(request)).status).toBe(503)
    expect([await getState(theatre), pay.inputs.length]).toEqual(['WAITING_FOR_INPUT', 0])
    const response = await handler(again)
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('Done.')])
    expect([await getState(theatre), pay.inputs.length]).toEqual(['COMPLETED', 1])
  })

  it('starts nothing when the page sends a different answer, which is refused', async () => {
    const { theatre, handler, pay, failures } = await openWaitingChat()
    failures.next = 1
    expect((await handler(await answer(theatre))).status).toBe(503)
    const refused = await handler(await answer(theatre, false))
    expect([refused.status, await refused.json()]).toMatchObject([
      409,
      { error: { code: 'already_answered' } },
    ])
    expect([await getState(theatre), pay.inputs.length]).toEqual(['WAITING_FOR_INPUT', 0])
  })

  it('is applied once a page that may continue runs opens the stream', async () => {
    const { theatre, handler, pay, failures } = await openWaitingChat()
    failures.next = 1
    expect((await handler(await answer(theatre))).status).toBe(503)
    expect((await handler(openStream(false))).status).toBe(204)
    expect([await getState(theatre), pay.inputs.length]).toEqual(['WAITING_FOR_INPUT', 0])
    const response = await handler(openStream(true))
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('Done.')])
    expect([await getState(theatre), pay.inputs.length]).toEqual(['COMPLETED', 1])
    expect((await handler(openStream(true))).status).toBe(204)
  })

  it('is applied here after the lease owner has died, and the page receives the remaining events', async () => {
    const { theatre, handler, pay, store } = await openWaitingChat()
    const lease = await store.acquire('ann:c1', { holder: 'another process', ttlMs: 3_600_000 })
    const response = await passing(theatre.clock, handler(await answer(theatre)))
    expect([response.status, pay.inputs.length]).toEqual([200, 0])
    const shown = response.text()
    theatre.clock.increment(5000)
    await new Promise((resolve) => setImmediate(resolve))
    expect(await getState(theatre)).toBe('WAITING_FOR_INPUT')
    await store.release(lease)
    expect(await passing(theatre.clock, shown)).toContain('Done.')
    expect([await getState(theatre), pay.inputs.length]).toEqual(['COMPLETED', 1])
  })
})

describe.each([{ inbox: 'an inbox' }, { inbox: 'no inbox' }])(
  'after an answer, over a store with $inbox',
  ({ inbox }) => {
    it('the page, onError and the hooks receive immediate events of the run', async () => {
      const { inbox: box, ...rest } = memoryStore()
      const store: SessionStore = inbox === 'an inbox' ? { ...rest, inbox: box } : rest
      const refuse = (_: unknown, { progress }: { progress: (value: string) => void }): never => {
        progress('10%')
        throw new RangeError('row 7 is missing')
      }
      const pay = tool('pay', refuse, { needsApproval: true })
      const turns = [call('pay'), text('Sorry.')]
      const received: unknown[] = []
      const theatre = await stage(turns, { store, tools: [pay] })
      const handler: Handler = chatHandler({
        agent: theatre.agent,
        authorize,
        expose: { toolErrors: (error) => `<${(error as Error).constructor.name}>` },
        onError: (error, { where }) => received.push([where, (error as Error).constructor.name]),
        onStart: () => received.push('onStart'),
        onSettle: ({ state }) => received.push(state),
      })
      await (await handler(send('Pay.'))).text()
      received.length = 0
      const shown = await (await handler(await answer(theatre))).text()
      expect(shown).toContain('10%')
      expect(shown).toContain('<RangeError>')
      expect(shown).toContain('"text-delta"')
      expect(received).toEqual(['onStart', ['tool', 'RangeError'], 'COMPLETED'])
    })
  },
)

describe('an answer that leaves the run waiting', () => {
  it('calls no hook until the last answer continues the run', async () => {
    const lines: string[] = []
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const asking = calls([1, 2].map((n) => ['pay', { n }] as const))
    const theatre = await stage([asking, text('Done.')], { store: memoryStore(), tools: [pay] })
    const handler: Handler = chatHandler({
      agent: theatre.agent,
      authorize,
      onStart: () => lines.push('onStart'),
      onSettle: ({ state }) => lines.push(state),
    })
    await (await handler(send('Pay.'))).text()
    lines.length = 0
    await (await handler(await answer(theatre))).text()
    expect([await getState(theatre), lines]).toEqual(['WAITING_FOR_INPUT', []])
    const last = await handler(await answer(theatre))
    expect(await last.text()).toContain('Done.')
    expect(lines).toEqual(['onStart', 'COMPLETED'])
  })
})

it('hooks receive the run’s total usage so far', async () => {
  const totals: number[] = []
  const { theatre, handler } = await openWaitingChat({
    onSettle: ({ usage }) => totals.push(usage.totalTokens),
    onFinish: ({ usage }) => totals.push(usage.totalTokens),
  })
  await (await handler(await answer(theatre))).text()
  const { run } = await theatre.agent.replay('ann:c1')
  const [first = 0, ...ended] = totals
  expect(first).toBeGreaterThan(0)
  expect(ended).toEqual([run?.usage.totalTokens, run?.usage.totalTokens])
  expect(ended[0]).toBeGreaterThan(first)
})

it('a subscriber right after resume() receives every event caused by inbox messages', async () => {
  const { theatre } = await openWaitingChat()
  const { run: waiting } = await theatre.agent.replay('ann:c1')
  await theatre.agent.send('ann:c1', { type: 'approve', callId: waiting?.pending?.[0]?.callId ?? '' })
  const run = await theatre.agent.resume('ann:c1')
  const events: string[] = []
  run.events$.subscribe(({ type }) => events.push(type))
  expect((await run.result).state).toBe('COMPLETED')
  expect(events).toEqual(
    expect.arrayContaining(['tool_progress', 'tool_result', 'stream_chunk', 'run_ended']),
  )
})

describe.each([
  [
    'throws',
    () => {
      throw new Error('The words are missing.')
    },
  ],
  ['returns no text', () => undefined as never],
])('an expose function that %s', (_, format) => {
  it('masks its text and is reported once, and the chat stays readable', async () => {
    const fails = tool('look', () => {
      throw new RangeError('row 7 is missing')
    })
    const turns = [call('look'), call('look', { again: 1 }), text('Sorry.')]
    const theatre = await stage(turns, { store: memoryStore(), tools: [fails] })
    const hooks: unknown[] = []
    const handler: Handler = chatHandler({
      agent: theatre.agent,
      authorize,
      expose: { toolErrors: format },
      onError: (error, { where, session }) => {
        if (where === 'hook') hooks.push([(error as Error).name, session])
      },
    })
    const live = await (await handler(send('Look.'))).text()
    expect(live).toContain('The tool failed. (error)')
    for (const path of ['', '/stream']) {
      const page = await handler(new Request(`http://chat.test/api/chat/c1${path}`))
      expect(page.status).toBeLessThan(300)
      expect(await page.text()).not.toContain('row 7')
    }
    expect(live).not.toContain('row 7')
    expect(hooks).toEqual([[expect.stringMatching(/Error$/), 'ann:c1']])
  })
})
