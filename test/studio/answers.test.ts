import { defineAgents, defineTool, memoryStore, StoreError } from '../../src/index.js'
import type { EndView, MomentView, SessionsView, SessionView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import type { SessionStore } from '../../src/core/sessions/store/store.js'
import { until } from '../support/play.js'
import { eventful, rehearsedAgent } from './rehearsed.js'
import { visit } from './visitor.js'
import { longTest } from '../support/extent.js'

async function waiting(turns = eventful) {
  const store = memoryStore()
  const rehearsed = await rehearsedAgent(store, turns)
  await rehearsed.agent.run('Pay the invoice.', { session: 's' }).result
  const visitor = await visit({ store, agent: rehearsed.agent })
  const last = async (id = 's'): Promise<MomentView> => {
    const { rows } = await visitor.get<SessionView>(paths.session(id))
    return visitor.get<MomentView>(paths.moment(id, rows.length))
  }
  const state = () => store.get('s')?.summary?.state
  return { ...rehearsed, store, visitor, last, state }
}

test('approving completes the run, the tool runs once, and an outdated tab reports it', async () => {
  const { visitor, last, state, paid, close } = await waiting()
  const { pending, actions } = await last()
  expect(actions).toEqual(['approve', 'reject', 'cancel'])
  const [call] = pending
  const answer = { type: 'approve', callId: call?.callId, fingerprint: call?.fingerprint }
  const stale = await visitor.post(paths.answers('s'), { ...answer, fingerprint: 'of-another-call' })
  expect(stale).toMatchObject({ status: 409, error: { code: 'stale_answer', key: 'call_pay' } })
  expect(paid).toEqual([])
  expect(await visitor.post(paths.answers('s'), answer)).toEqual({ status: 200, sessionId: 's' })
  await until(() => state() === 'COMPLETED')
  expect(paid).toEqual([120])
  const again = await visitor.post(paths.answers('s'), answer)
  expect(again).toMatchObject({ status: 409, error: { code: 'unknown_call' } })
  expect(paid).toEqual([120])
  expect((await last()).actions).toEqual([])
  await close()
})

test('a decision names its people, of whom a policy may require several', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, eventful, { approvals: { approvers: { count: 2 } } })
  const run = agent.run('Pay the invoice.', { session: 's' })
  await run.result
  run.approve('call_pay', undefined, { by: 'ann' })
  await run.result
  run.approve('call_pay', undefined, { by: 'bob' })
  await run.result
  const visitor = await visit({ store })
  const { rows } = await visitor.get<SessionView>(paths.session('s'))
  const { transcript } = await visitor.get<MomentView>(paths.moment('s', rows.length))
  const decisions = transcript.flatMap(({ calls }) => calls.flatMap(({ decision }) => decision ?? []))
  expect(decisions).toMatchObject([{ kind: 'approved', by: ['ann', 'bob'] }])
  await close()
})

test('of two tabs that answer at once, one succeeds, and the tool runs once', async () => {
  const { visitor, last, state, paid, close } = await waiting()
  const [call] = (await last()).pending
  const answer = { type: 'approve', callId: call?.callId, fingerprint: call?.fingerprint }
  const both = await Promise.all([1, 2].map(() => visitor.post(paths.answers('s'), answer)))
  expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409])
  await until(() => state() === 'COMPLETED')
  expect(paid).toEqual([120])
  await close()
})

test('edited arguments are validated, and run', async () => {
  const { visitor, last, state, paid, close } = await waiting()
  const [call] = (await last()).pending
  const answer = { type: 'approve', callId: call?.callId, fingerprint: call?.fingerprint }
  const wrong = await visitor.post(paths.answers('s'), { ...answer, editedInput: { amount: -1, to: 'Ada' } })
  expect(wrong).toMatchObject({ status: 400, error: { code: 'invalid_input', key: 'call_pay' } })
  await visitor.post(paths.answers('s'), { ...answer, editedInput: { amount: 12, to: 'Ada' } })
  await until(() => state() === 'COMPLETED')
  expect(paid).toEqual([12])
  await close()
})

test('a call is rejected with a reason, which the model reads', async () => {
  const { visitor, last, state, paid, close, store } = await waiting()
  const [call] = (await last()).pending
  const answer = {
    type: 'reject',
    callId: call?.callId,
    fingerprint: call?.fingerprint,
    why: 'Not before Monday.',
  }
  await visitor.post(paths.answers('s'), answer)
  await until(() => state() === 'COMPLETED')
  expect(paid).toEqual([])
  expect(JSON.stringify(store.read('s'))).toContain('Not before Monday.')
  await close()
})

test('a message is answered, and a run is paused, steered and resumed', async () => {
  const store = memoryStore()
  const look = { toolCalls: [{ name: 'look_up', arguments: { what: 'it' } as never }], delayMs: 50 }
  const { agent, close } = await rehearsedAgent(store, [look, { text: 'Yes?' }], { interactive: true })
  const visitor = await visit({ store, agent })
  const run = agent.run('Hello.', { session: 's' })
  visitor.studio.attach(run)
  await until(() => store.get('s') !== null)
  const post = (answer: object) => visitor.post(paths.answers('s'), answer)
  expect(await post({ type: 'pause' })).toMatchObject({ status: 200 })
  await until(() => run.state === 'PAUSED')
  expect(await post({ type: 'resume' })).toMatchObject({ status: 200 })
  await until(() => run.state === 'WAITING_FOR_INPUT')
  expect(await post({ type: 'reply', input: ' ' })).toMatchObject({
    status: 400,
    error: { code: 'invalid_input' },
  })
  expect(await post({ type: 'reply', input: 'Go on.' })).toMatchObject({ status: 200 })
  await until(() => run.state === 'WAITING_FOR_INPUT')
  expect(await post({ type: 'steer', text: 'Be brief.' })).toMatchObject({ status: 200 })
  await until(() => run.state === 'WAITING_FOR_INPUT')
  expect(JSON.stringify(store.read('s'))).toContain('Be brief.')
  expect(await post({ type: 'cancel', why: 'Enough.' })).toMatchObject({ status: 200 })
  await until(() => run.state === 'CANCELLED')
  await close()
})

test('an unexpected action is refused, and starts nothing', async () => {
  const { visitor, store, close } = await waiting()
  const before = JSON.stringify(store.read('s'))
  for (const answer of [{ type: 'reply', input: 'Hello' }, { type: 'pause' }, { type: 'resume' }]) {
    expect(await visitor.post(paths.answers('s'), answer)).toMatchObject({
      status: 409,
      error: { code: 'wrong_state' },
    })
  }
  expect(JSON.stringify(store.read('s'))).toBe(before)
  expect(await visitor.post(paths.answers('s'), { type: 'cancel', why: 'Enough.' })).toMatchObject({
    status: 200,
  })
  await until(() => store.get('s')?.summary?.state === 'CANCELLED')
  await close()
})

test('the title of a session is its first message until it is renamed, as in lists', async () => {
  const { visitor, store, agent, close } = await waiting()
  const shown = async () => (await visitor.get<SessionView>(paths.session('s'))).session.title
  expect([await shown(), store.get('s')?.summary?.title]).toEqual(['Pay the invoice.', 'Pay the invoice.'])
  await agent.rename('s', 'The invoice')
  expect(await shown()).toBe('The invoice')
  await visitor.post(paths.answers('s'), { type: 'cancel', why: 'Enough.' })
  await until(() => store.get('s')?.summary?.state === 'CANCELLED')
  await agent.run('And the other one?', { session: 's' }).result
  expect(await shown()).toBe('The invoice')
  await agent.rename('s', null)
  expect(await shown()).toBe('Pay the invoice.')
  await close()
})

test('a fork with an edit is a new session, and the original keeps every byte', async () => {
  const { visitor, store, close } = await waiting()
  const before = JSON.stringify(store.read('s'))
  const edit = { message: 'm1', content: 'Pay the other invoice.' }
  const { sessionId = '' } = await visitor.post(paths.fork('s'), { at: 4, edit, run: true })
  await until(() => store.get(sessionId)?.summary?.state === 'COMPLETED')
  expect(JSON.stringify(store.read('s'))).toBe(before)
  const { session, rows, bars, gaps } = await visitor.get<SessionView>(paths.session(sessionId))
  expect(session).toMatchObject({ forkedFrom: { sessionId: 's', seq: 4 }, title: 'Pay the other invoice.' })
  expect(rows[0]?.flags).toEqual(['fork'])
  // No process worked on it between the fork and its resumption.
  const resumed = rows.find(({ flags }) => flags.includes('resume'))
  expect(gaps).toEqual([{ from: rows[1]?.at, to: resumed?.at }])
  expect(bars.map(({ lane, status }) => [lane, status])).toEqual([['model', 'ok']])
  const wrong = await visitor.post(paths.fork('s'), { at: 4, edit: { message: 'm9', content: 'No.' } })
  expect(wrong).toMatchObject({ status: 409, error: { code: 'unknown_message' } })
  const { sessions } = await visitor.get<SessionsView>(paths.sessions)
  expect(sessions.map(({ children }) => children)).toEqual([1, 0])
  await close()
})

test('an edit keeps hidden content: a secret, and the end of a long text', async () => {
  const key = 'sk-abcdefghijklmnopqrstuvwx'
  const input = { amount: 5, to: `Ada, with ${key}` }
  const turns = [{ toolCalls: [{ name: 'pay', arguments: input, id: 'p' }] }, { text: 'Done.' }]
  const { visitor, last, state, paid, store, close } = await waiting(turns)
  const [call] = (await last()).pending
  const shown = JSON.parse(call?.arguments ?? '') as { to: string }
  expect(shown).toEqual({ amount: 5, to: 'Ada, with [redacted]' })
  const answer = { type: 'approve', callId: 'p', fingerprint: call?.fingerprint }
  const refused = { status: 400, error: { code: 'invalid_input' } }
  const edited = { ...shown, amount: 6 }
  expect(await visitor.post(paths.answers('s'), { ...answer, editedInput: edited })).toMatchObject(refused)
  const at = store.get('s')?.head
  const fork = (edit: object) => visitor.post(paths.fork('s'), { at, edit })
  expect(await fork({ call: 'p', arguments: edited })).toMatchObject(refused)
  expect(await fork({ message: 'm1', content: 'Pay, with [redacted].' })).toMatchObject({ status: 200 })
  expect(paid).toEqual([])
  await visitor.post(paths.answers('s'), { ...answer, editedInput: { amount: 6, to: 'Ada' } })
  await until(() => state() === 'COMPLETED')
  expect(paid).toEqual([6])
  await close()
})

test.each<[string, string, object]>([
  ['a secret', 'It is sk-abcdefghijklmnopqrstuvwx.', { content: 'It was [redacted].' }],
  ['its end', 'long '.repeat(9_000), { content: `short ${'long '.repeat(3_999)}…` }],
  ['its end, without its marker,', 'long '.repeat(9_000), { content: `short ${'long '.repeat(3_999)}` }],
  [
    'its end, with more text after it,',
    'long '.repeat(9_000),
    { content: `${'long '.repeat(3_999)}… Thanks.` },
  ],
])('a fork of a message whose %s is hidden keeps it', async (_, part, edit) => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, [{ text: 'Yes.' }])
  await agent.run(part, { session: 's' }).result
  const visitor = await visit({ store, agent })
  const forked = await visitor.post(paths.fork('s'), { at: 2, edit: { message: 'm1', ...edit } })
  expect(forked).toMatchObject({ status: 400, error: { code: 'invalid_input', key: 'm1' } })
  expect(store.list()).toHaveLength(1)
  await close()
})

test('a session of another agent can be read and cancelled, but not run or forked', async () => {
  const store = memoryStore()
  const first = await rehearsedAgent(store, eventful)
  defineAgents({ payer: first.agent })
  await first.agent.run('Pay.', { session: 's' }).result
  const other = await rehearsedAgent(store, eventful)
  defineAgents({ support: other.agent })
  const visitor = await visit({ store, agent: other.agent })
  const head = store.get('s')?.head ?? 0
  const sessions = store.list().length
  const moment = await visitor.get<MomentView>(paths.moment('s', head))
  expect([moment.pending.length, moment.actions]).toEqual([1, ['cancel']])
  const stranded = { status: 409, error: { code: 'stranded' } }
  const [call] = moment.pending
  expect(await visitor.post(paths.answers('s'), { type: 'approve', ...call })).toMatchObject({ status: 400 })
  const approve = { type: 'approve', callId: call?.callId, fingerprint: call?.fingerprint }
  expect(await visitor.post(paths.answers('s'), approve)).toMatchObject(stranded)
  expect(await visitor.post(paths.fork('s'), { at: head, run: true })).toMatchObject(stranded)
  expect([store.list().length, store.get('s')?.head]).toEqual([sessions, head])
  expect(await visitor.post(paths.answers('s'), { type: 'cancel' })).toMatchObject({ status: 200 })
  expect(store.get('s')?.summary?.state).toBe('CANCELLED')
  await first.close()
  await other.close()
})

test('a fork without a run to continue is only created with run: false', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, [{ text: 'Yes.' }])
  await agent.run('Is it?', { session: 's' }).result
  const visitor = await visit({ store, agent })
  const edit = { message: 'm1', content: 'Was it?' }
  for (const at of [1, 3]) {
    expect(await visitor.post(paths.fork('s'), { at, run: true, ...(at > 1 && { edit }) })).toMatchObject({
      status: 409,
      error: {
        code: 'nothing_to_resume',
        message: expect.stringContaining('Fork without running it') as string,
      },
    })
  }
  expect(store.list()).toHaveLength(1)
  expect(await visitor.post(paths.fork('s'), { at: 3, edit })).toMatchObject({ status: 200 })
  await close()
})

test('an agent with another store affects no session of the same name there', async () => {
  const shown = await waiting()
  const store = memoryStore()
  const other = await rehearsedAgent(store, eventful)
  await until(() => Date.now() > (shown.store.get('s')?.createdAt ?? 0))
  await other.agent.run('Pay another invoice.', { session: 's' }).result
  const readAll = () => store.list().map(({ id }) => store.read(id))
  const before = readAll()
  const visitor = await visit({ store: shown.store, agent: other.agent })
  const refused = { status: 404, error: { code: 'unknown_session', key: 's' } }
  expect(await visitor.post(paths.answers('s'), { type: 'cancel' })).toMatchObject(refused)
  expect(await visitor.post(paths.fork('s'), { at: 2 })).toMatchObject(refused)
  expect(readAll()).toEqual(before)
  await Promise.all([shown.close(), other.close()])
})

test('without an agent no action is possible, and the page shows the reason', async () => {
  const { store, close } = await waiting()
  const visitor = await visit({ store })
  const { readOnly } = await visitor.get<SessionsView>(paths.sessions)
  expect(readOnly).toMatch(/--agent MODULE/)
  const { rows } = await visitor.get<SessionView>(paths.session('s'))
  expect((await visitor.get<MomentView>(paths.moment('s', rows.length))).actions).toEqual([])
  const refused = await visitor.post(paths.answers('s'), { type: 'cancel' })
  expect(refused).toMatchObject({ status: 403, error: { code: 'read_only' } })
  await close()
})

test('an attached run is answered without an agent, as the page shows', async () => {
  const store = memoryStore()
  const { agent, paid, close } = await rehearsedAgent(store, eventful)
  const visitor = await visit({ store })
  const run = agent.run('Pay the invoice.', { session: 's' })
  visitor.studio.attach(run)
  await run.result
  const { view, moment } = await visitor.get<EndView>(paths.end('s'))
  expect(view.session.isAttached).toBe(true)
  expect((await visitor.get<SessionsView>(paths.sessions)).readOnly).toMatch(
    /^Only live runs in this program can be/,
  )
  expect(moment?.actions).toEqual(['approve', 'reject', 'cancel'])
  const { callId, fingerprint } = moment?.pending[0] ?? {}
  expect(await visitor.post(paths.answers('s'), { type: 'approve', callId, fingerprint })).toMatchObject({
    status: 200,
  })
  expect((await run.result).state).toBe('COMPLETED')
  expect(paid).toEqual([120])
  const forked = await visitor.post(paths.fork('s'), { at: 4 })
  expect(forked).toMatchObject({ status: 403, error: { code: 'read_only' } })
  await close()
})

test('a run of this process shows its text as it arrives, without secrets, and can be paused and steered', async () => {
  const store = memoryStore()
  const words = 'The key is sk-abcdefghijklmnopqrstuvwx, and that is all.'
  const { agent, close } = await rehearsedAgent(store, [{ text: words, chunkSize: 7, chunkDelayMs: 5 }])
  const visitor = await visit({ store })
  const feed = visitor.live('s')
  const run = agent.run('Tell me.', { session: 's' })
  visitor.studio.attach(run)
  await feed.receive('session', ({ row }) => row.id === 's' && row.isAttached && row.status === 'running')
  expect((await visitor.get<MomentView>(paths.moment('s', 2))).actions).toEqual(
    expect.arrayContaining(['pause', 'steer', 'cancel']),
  )
  await run.result
  await feed.receive('rows', ({ rows }) => rows.some(({ state }) => state === 'COMPLETED'))
  const text = feed.messages.flatMap((message) => (message.type === 'text' ? [message.text] : [])).join('')
  expect(text).toBe('The key is [redacted], and that is all.')
  const rows = feed.messages.flatMap((message) => (message.type === 'rows' ? message.rows : []))
  expect(rows.map(({ seq }) => seq)).toEqual([1, 2, 3])
  await feed.receive('session', ({ row }) => row.status === 'ended' && !row.isAttached)
  await close()
})

test('a run that another process holds receives messages, and its owner applies them', async () => {
  const store = memoryStore()
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const slow = defineTool({
    name: 'slow',
    description: 'Takes its time.',
    input: { type: 'object' },
    execute: () => held,
  })
  const turns = [{ toolCalls: [{ name: 'slow', arguments: {} }] }, { text: 'Done.' }]
  const { agent, close } = await rehearsedAgent(store, turns, { tools: [slow] })
  // Not attached. As far as the studio knows, it may run in any process.
  const run = agent.run('Go.', { session: 's' })
  const visitor = await visit({ store, agent })
  await until(() => run.state === 'WAITING_FOR_TOOL')
  const { view, moment } = await visitor.get<EndView>(paths.end('s'))
  expect(view.session).toMatchObject({ isAttached: false, status: 'running' })
  expect(moment?.actions).toEqual(['approve', 'reject', 'toolOutput', 'pause', 'steer', 'cancel'])
  const post = (answer: object) => visitor.post(paths.answers('s'), answer)
  expect(await post({ type: 'steer', text: 'Be brief.' })).toEqual({ status: 200, sessionId: 's' })
  expect(await post({ type: 'pause' })).toEqual({ status: 200, sessionId: 's' })
  release()
  await until(() => run.state === 'PAUSED')
  expect(JSON.stringify(store.read('s'))).toContain('Be brief.')
  expect(await post({ type: 'cancel', why: 'Enough.' })).toMatchObject({ status: 200 })
  await until(() => store.get('s')?.summary?.state === 'CANCELLED')
  expect(await post({ type: 'pause' })).toMatchObject({ status: 409, error: { code: 'wrong_state' } })
  await close()
})

longTest('a session of another process is followed record by record', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, eventful)
  await agent.run('Pay.', { session: 's' }).result
  const visitor = await visit({ store })
  const head = store.get('s')?.head ?? 0
  const feed = visitor.live('s', head)
  await feed.receive('session', ({ row }) => row.id === 's' && row.status === 'waiting')
  const run = await agent.resume('s')
  run.approve('call_pay')
  await run.result
  const { rows, bars } = await feed.receive('rows')
  expect(rows[0]).toMatchObject({ seq: head + 1, label: 'approved pay' })
  expect(bars.find(({ label }) => label === 'pay (approval)')).toMatchObject({ toSeq: head + 1 })
  await agent.deleteSession('s')
  await feed.receive('gone', ({ sessionId }) => sessionId === 's')
  await close()
})

test('an unavailable store is reported, and its sessions return when it is back', async () => {
  const readAll = memoryStore()
  const { agent, close } = await rehearsedAgent(readAll, [{ text: 'Hello.' }])
  await agent.run('Hello?', { session: 's' }).result
  let isGone = false
  const failing = <Name extends 'list' | 'get' | 'read'>(name: Name) =>
    ((...args: never[]) => {
      if (isGone) throw new StoreError('store_unavailable', 'The database cannot be reached.')
      return (readAll[name] as (...args: never[]) => unknown)(...args)
    }) as SessionStore[Name]
  const store: SessionStore = {
    ...readAll,
    list: failing('list'),
    get: failing('get'),
    read: failing('read'),
  }
  const visitor = await visit({ store })
  const feed = visitor.live()
  await feed.receive('session')
  isGone = true
  expect((await feed.receive('store')).problem).toContain('cannot be reached')
  const refused = await visitor.raw(paths.sessions)
  expect([refused.status, JSON.parse(refused.body)]).toMatchObject([
    503,
    { error: { code: 'store_unavailable' } },
  ])
  isGone = false
  await feed.receive('store', ({ problem }) => problem === null)
  expect((await visitor.get<SessionsView>(paths.sessions)).sessions).toHaveLength(1)
  await close()
})
