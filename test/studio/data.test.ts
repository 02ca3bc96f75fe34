import { createMachine, type StateValue } from 'xstate'
import { memoryStore, type LogRecord, type SessionStore } from '../../src/index.js'
import { listTransitions } from '../../src/core/chart/state-labels.js'
import type { LogDigest } from '../../src/core/sessions/store/log-digests.js'
import { agentMachine } from '../../machines/agent.machine.js'
import { drawChart } from '../../src/studio/chart-view.js'
import { drawVisitedChart } from '../../src/studio/visited-chart.js'
import { KeptDigests, noFacts } from '../../src/studio/kept-digests.js'
import { Prefetcher } from '../../src/studio/prefetch.js'
import { SessionCatalogue } from '../../src/studio/session-catalogue.js'
import { SessionLibrary } from '../../src/studio/session-library.js'
import { unpackMoment } from '../../src/studio/pack-moments.js'
import type { CompareView } from '../../src/studio/compare-sessions.js'
import type {
  ChartView,
  EndView,
  MomentView,
  PackedMoments,
  SessionsView,
  SessionView,
  VisitsView,
} from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { damage, eventful, playLong, rehearsedAgent } from './rehearsed.js'
import { visit } from './visitor.js'
import { sampledRows } from '../support/extent.js'

function leaves(value: StateValue | undefined, above = ''): string[] {
  if (value === undefined) return []
  if (typeof value === 'string') return [above + value]
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, `${above}${key}.`))
}

/** The records of a 120-step session, which is long enough for a snapshot. */
let long: LogRecord[]

beforeAll(async () => {
  const store = memoryStore()
  await playLong(store, 'long', 120)
  long = store.read('long')
})

function storeWithLong(): ReturnType<typeof memoryStore> {
  const store = memoryStore()
  const lease = store.acquire('long', { holder: 'a copy', ttlMs: 1_000 })
  store.append(lease, long)
  store.release(lease)
  return store
}

const circling = [{ toolCalls: [{ name: 'poll_nothing', arguments: {} }] }]

test.each([
  ['a retry, a sub-agent and an approval', eventful],
  ['a guard that nudges, refuses and halts', circling],
])('the API equals replay at every record of a run with %s', async (_, turns) => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, turns)
  await agent.run('Pay the invoice.', { session: 's' }).result
  const visitor = await visit({ store, agent })
  const { rows, session } = await visitor.get<SessionView>(paths.session('s'))
  const known = new Set(listTransitions(agentMachine).map(({ declared }) => declared.id))
  expect(rows).toHaveLength(store.read('s').length)
  for (const { seq, to, from, state, transitionIds, tokens, cost } of rows) {
    const then = await agent.replay('s', { to: seq })
    expect(to).toEqual(leaves(then.snapshot?.value as StateValue | undefined))
    expect(from).toEqual(seq === 1 ? [] : rows[seq - 2]?.to)
    expect({ state: state || null, tokens, cost }).toEqual({
      state: then.run?.state ?? null,
      tokens: then.usage.totalTokens,
      cost: then.usage.cost,
    })
    expect(transitionIds.filter((id) => !known.has(id))).toEqual([])
    const moment = await visitor.get<MomentView>(paths.moment('s', seq))
    const texts = then.messages.filter(({ role }) => role !== 'tool')
    expect(moment.transcript.map(({ id }) => id)).toEqual(texts.map(({ id }) => id))
    const pending = then.run?.pending ?? []
    expect(moment.pending.map(({ callId }) => callId)).toEqual(pending.map(({ callId }) => callId))
    expect(moment.record).toMatchObject({ seq, type: store.read('s')[seq - 1]?.type })
  }
  // Each transition starts from the target of the previous one.
  expect(rows.flatMap(({ transitionIds }) => transitionIds).length).toBeGreaterThan(rows.length)
  expect(session).toMatchObject({ id: 's', status: 'waiting', records: rows.length })
  await close()
})

test('the flags, bars and labels of a run describe its events', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, eventful)
  await agent.run('Pay the invoice.', { session: 's' }).result
  const visitor = await visit({ store, agent })
  const { rows, bars } = await visitor.get<SessionView>(paths.session('s'))
  expect(rows.map(({ label, flags }) => [label, ...flags].join(' · '))).toEqual([
    'opened',
    'run 1: Pay the invoice.',
    'model failed: server error · retry',
    'wait over',
    'answer: 1 call',
    'look_up ok',
    'answer: 1 call',
    'research ok',
    'answer: 1 call · wait',
  ])
  expect(
    bars.map(({ lane, label, status, fromSeq, toSeq }) => [lane, label, status, fromSeq, toSeq]),
  ).toEqual([
    ['model', 'request', 'failed', 2, 3],
    ['waits', 'retry', 'waiting', 3, 4],
    ['model', 'request', 'ok', 4, 5],
    ['tools', 'look_up', 'ok', 5, 6],
    ['model', 'request', 'ok', 6, 7],
    ['children', 'research', 'ok', 7, 8],
    ['model', 'request', 'ok', 8, 9],
    ['waits', 'pay (approval)', 'waiting', 9, null],
  ])
  const child = bars.find(({ lane }) => lane === 'children')?.sessionId ?? ''
  expect((await visitor.get<SessionView>(paths.session(child))).session.state).toBe('COMPLETED')
  const moment = await visitor.get<MomentView>(paths.moment('s', rows.length))
  expect(moment.budget.find(({ name }) => name === 'tokens')).toMatchObject({ children: 15 })
  expect(moment.pending).toMatchObject([{ name: 'pay', schema: { required: ['amount', 'to'] } }])
  expect(moment.changed).toContain('usage.run.totalTokens')
  await close()
})

test('a guard shows its counts, and its decisions', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, circling)
  await agent.run('Wait.', { session: 's' }).result
  const visitor = await visit({ store })
  const { rows } = await visitor.get<SessionView>(paths.session('s'))
  const flagged = (flag: string) => rows.find(({ flags }) => flags.includes(flag as never))?.seq ?? 0
  expect(flagged('nudge')).toBeGreaterThan(0)
  expect(flagged('block')).toBeGreaterThan(flagged('nudge'))
  expect(flagged('halt')).toBeGreaterThan(flagged('block'))
  const guardAt = async (seq: number) =>
    (await visitor.get<MomentView>(paths.moment('s', seq))).guards.find(
      ({ name }) => name === 'progress.stale',
    )
  expect(await guardAt(flagged('nudge'))).toMatchObject({
    streak: 2,
    next: 'block at 4',
    evidence: expect.stringContaining('poll_nothing') as string,
    isOn: true,
  })
  expect((await guardAt(flagged('halt')))?.next).toBe('halt at 20')
  await close()
})

test('moments in a batch equal those requested one by one', async () => {
  const store = memoryStore()
  await playLong(store, 's', 40)
  const visitor = await visit({ store })
  const { rows } = await visitor.get<SessionView>(paths.session('s'))
  const packed = await visitor.get<PackedMoments>(paths.moments('s', 1, 1_000))
  expect(packed.moments).toHaveLength(rows.length)
  for (const seq of [1, 2, 40, 64, 65, 66, rows.length]) {
    expect(unpackMoment(packed, seq)).toEqual(await visitor.get<MomentView>(paths.moment('s', seq)))
  }
  const refused = await visitor.raw(paths.moment('s', 999))
  expect([refused.status, refused.body]).toEqual([400, expect.stringContaining('has no record 999')])
})

test('moments with only the last messages count the earlier ones, and otherwise equal whole ones', async () => {
  const visitor = await visit({ store: storeWithLong() })
  const some = await visitor.get<PackedMoments>(paths.moments('long', 1, 256, 10))
  let most = 0
  for (const seq of [1, 2, 30, 64, 65, 150, 201, 244]) {
    const [cut, whole] = [unpackMoment(some, seq), await visitor.get<MomentView>(paths.moment('long', seq))]
    if (!cut) throw new Error(`Record ${seq} has no moment.`)
    const { earlier } = cut
    expect(cut).toEqual({ ...whole, earlier, transcript: whole.transcript.slice(earlier) })
    expect(cut.transcript.length).toBeGreaterThanOrEqual(Math.min(10, whole.transcript.length))
    most = Math.max(most, cut.transcript.length)
  }
  expect(most).toBeLessThanOrEqual(15)
  const [few, all] = await Promise.all(
    [10, undefined].map((latest) => visitor.raw(paths.moments('long', 244, 244, latest))),
  )
  expect(few?.body.length).toBeLessThan((all?.body.length ?? 0) / 2)
  expect((await visitor.raw(`${paths.moments('long', 1, 2)}&latest=none`)).status).toBe(404)
})

test('a call whose batch has more results than the transcript has messages is shown with all of them', async () => {
  const store = memoryStore()
  const calls = Array.from({ length: 150 }, (_, at) => ({
    name: 'look_up',
    arguments: { what: `page ${at}` },
  }))
  const { agent, close } = await rehearsedAgent(store, [{ toolCalls: calls }, { text: 'All is read.' }])
  await agent.run('Read the book.', { session: 's' }).result
  const visitor = await visit({ store, agent })
  const { moment } = await visitor.get<EndView>(paths.end('s'))
  expect(moment?.transcript.map(({ calls: { length } }) => length)).toEqual([0, 150, 0])
  expect(moment?.transcript[1]?.calls.filter(({ result }) => result === null)).toEqual([])
  await close()
})

test('the end of a long session is available first, and stays the same', async () => {
  const store = storeWithLong()
  const visitor = await visit({ store })
  const { view, moment } = await visitor.get<EndView>(paths.end('long'))
  const snapshot = store.read('long').findLast(({ type }) => type === 'snapshot')?.seq ?? 0
  expect(snapshot).toBeGreaterThan(100)
  expect(view).toMatchObject({ isPart: true, session: { id: 'long', state: 'COMPLETED' } })
  const whole = await visitor.get<SessionView>(paths.session('long'))
  expect(whole).toMatchObject({ isPart: false, session: view.session })
  expect(view.rows).toEqual(whole.rows.slice(snapshot - 1))
  const { transcript: all, ...rest } = await visitor.get<MomentView>(paths.moment('long', whole.rows.length))
  // The end of a log does not contain the edit positions of earlier messages.
  const transcript = all.map((message) => ({
    ...message,
    forkAt: null,
    calls: message.calls.map((call) => ({ ...call, forkAt: null })),
  }))
  const earlier = moment?.earlier ?? 0
  expect(transcript.length).toBeGreaterThan(60)
  // Its transcript contains the visible part.
  expect(moment).toEqual({ ...rest, earlier, transcript: transcript.slice(earlier) })
  expect(moment?.transcript.length).toBeGreaterThanOrEqual(20)
  expect(moment?.transcript.length).toBeLessThanOrEqual(30)
  // After all of it has loaded, no request follows.
  expect((await visitor.get<EndView>(paths.end('long'))).view).toEqual(whole)
  // A log without a snapshot is present as a whole.
  await playLong(store, 'short', 2)
  expect((await visitor.get<EndView>(paths.end('short'))).view).toMatchObject({ isPart: false })
  expect((await visitor.raw(paths.end('nobody'))).status).toBe(404)
})

test('the first listed sessions are read ahead, unless the studio is closed or a page opens one', async () => {
  const store = storeWithLong()
  const library = new SessionLibrary(store, () => false)
  const rows = await library.listPage({})
  const isPart = async (): Promise<boolean> => (await library.readEnd('long')).base > 0
  const closed = new Prefetcher(new SessionCatalogue(library))
  closed.close()
  await closed.prefetch(rows)
  expect(await isPart()).toBe(true)
  await new Prefetcher(new SessionCatalogue(library)).prefetch(rows)
  expect(await isPart()).toBe(false)
  // Concurrent requests for it cause a single full read.
  const other = new SessionLibrary(store, () => false)
  const [, fold] = await Promise.all([
    new Prefetcher(new SessionCatalogue(other)).prefetch(rows),
    other.readFold('long'),
  ])
  expect(fold.head).toBe(store.read('long').length)
  expect(await other.readFold('long')).toBe(fold)
})

test('the end of a long log is read ahead, and later records are read when a page opens it', async () => {
  const store = memoryStore()
  const first = store.acquire('s', { holder: 'a run', ttlMs: 1_000 })
  store.append(first, long.slice(0, -3))
  const requests: unknown[] = []
  const library = new SessionLibrary(
    {
      list: (options) => store.list(options),
      get: (id) => store.get(id),
      read: (id, range) => {
        requests.push(range)
        return store.read(id, range)
      },
    },
    () => false,
  )
  const readAhead = async (): Promise<void> =>
    new Prefetcher(new SessionCatalogue(library), { maxRecords: 50 }).prefetch(await library.listPage({}))
  await readAhead()
  store.append(first, long.slice(-3))
  store.release(first)
  requests.length = 0
  const end = await library.readEnd('s')
  expect(requests).toEqual([{ from: long.length - 3 }])
  const unread = await new SessionLibrary(store, () => false).readEnd('s')
  expect(end.base).toBeGreaterThan(0)
  expect([end.base, end.head, end.rows]).toEqual([unread.base, unread.head, unread.rows])
  // A replaced session is read again.
  await readAhead()
  store.delete('s')
  await playLong(store, 's', 120)
  expect((await library.readEnd('s')).rows).toEqual(
    (await new SessionLibrary(store, () => false).readEnd('s')).rows,
  )
})

test('a damaged session is listed with its title and without steps and cost, whether or not a page has opened it', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, [{ text: 'Blue, mostly.' }])
  await agent.run('Which colour?', { session: 'short' }).result
  await damage(store, 'damaged')
  const unopened = new SessionLibrary(store, () => false)
  const opened = new SessionLibrary(store, () => false)
  await opened.readFold('damaged')
  const rows = await Promise.all([unopened, opened].map((library) => library.readRow('damaged')))
  expect(rows[0]).toMatchObject({ status: 'damaged', title: 'Which colour?', steps: null, cost: null })
  expect(rows[1]).toEqual(rows[0])
  await close()
})

test('a damaged, a newer and a deleted session are shown as such, and others work', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, [{ text: 'Blue, mostly.' }])
  await agent.run('Which colour?', { session: 'short' }).result
  await damage(store, 'damaged')
  const lease = store.acquire('newer', { holder: 'a later version', ttlMs: 1_000 })
  const { sealRecord } = await import('../../src/core/sessions/log/log-record.js')
  store.append(lease, [sealRecord(1, 0, { type: 'opened', version: 99 as 1 })])
  const visitor = await visit({ store })
  // A list shows summaries until it has read the logs, as these requests do.
  const damaged = await visitor.get<SessionView>(paths.session('damaged'))
  const newer = await visitor.get<SessionView>(paths.session('newer'))
  const { sessions, readOnly } = await visitor.get<SessionsView>(paths.sessions)
  expect(sessions.map(({ id, status }) => `${id}: ${status}`).toSorted()).toEqual([
    'damaged: damaged',
    'newer: damaged',
    'short: ended',
  ])
  expect(sessions[0]?.id).toBe('short')
  expect(readOnly).toContain('--agent')
  expect(damaged.rows).toHaveLength(2)
  expect(damaged.session.problem).toContain('record 3 is damaged')
  expect(newer.session.problem).toContain('newer Statewright')
  expect((await visitor.raw(paths.session('nobody'))).status).toBe(404)
  const feed = visitor.live('newer')
  await feed.receive('session', ({ row }) => row.id === 'newer')
  // Repeated reads return the same result.
  await agent.run('Once more?', { session: 'another' }).result
  await feed.receive('session', ({ row }) => row.id === 'another' && row.steps === 1)
  expect(feed.messages.filter(({ type }) => type === 'rows' || type === 'store')).toEqual([])
  await close()
  store.delete('short')
  expect((await visitor.raw(paths.session('short'))).status).toBe(404)
})

test('a page that connects after a deletion that it has not seen requests the list again', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, [{ text: 'Blue, mostly.' }])
  await agent.run('Which colour?', { session: 'short' }).result
  await agent.run('Which colour?', { session: 'kept' }).result
  await close()
  const visitor = await visit({ store })
  expect((await visitor.get<SessionsView>(paths.sessions)).known).toBe(2)
  // Both logs have been read. Before that, pages request the list anyway.
  await visitor.live().receive('list', ({ unread }) => unread === 0)
  store.delete('short')
  // Another page has noticed it, while this one was not connected.
  expect((await visitor.get<SessionsView>(paths.sessions)).known).toBe(1)
  expect(await visitor.live().receive('list')).toMatchObject({ known: 1 })
})

test('a reader that follows a log only restarts if it is a different log', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, [{ text: 'Blue, mostly.' }])
  await agent.run('Which colour?', { session: 'short' }).result
  const copy = (id: string, change = (data: string) => data): void => {
    const lease = store.acquire(id, { holder: 'a copy', ttlMs: 1_000 })
    store.append(
      lease,
      store.read('short').map((record) => ({ ...record, data: change(record.data) })),
    )
    store.release(lease)
  }
  copy('unreadable', () => '{')
  const visitor = await visit({ store })
  const feeds = [visitor.live('unreadable'), visitor.live('short', 3)]
  // More sessions than the cache of folded sessions holds.
  const others = Array.from({ length: 25 }, (_, i) => `copy-${i}`)
  for (const id of others) copy(id)
  for (const round of sampledRows(['first', 'second', 'third'])) {
    await Promise.all(others.map((id) => visitor.raw(paths.session(id))))
    copy(round)
    await Promise.all(feeds.map((feed) => feed.receive('session', ({ row }) => row.id === round)))
  }
  expect(feeds.flatMap(({ messages }) => messages.filter(({ type }) => type === 'rows'))).toEqual([])
  store.delete('short')
  await feeds[1]?.receive('gone')
  await agent.run('Which colour?', { session: 'short' }).result
  expect(await feeds[1]?.receive('rows')).toMatchObject({
    reset: true,
    rows: [{ seq: 1 }, { seq: 2 }, { seq: 3 }],
  })
  await close()
})

test('a picture is shown if it is a bitmap and small enough for a page', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, [{ text: 'I see.' }])
  const picture = (data: string, type = 'png') => ({
    type: 'image_url' as const,
    image_url: { url: `data:image/${type};base64,${data}` },
  })
  const lines = [
    { type: 'text' as const, text: 'Look.' },
    picture('iVBORw0KGgo='),
    picture('A'.repeat(400_000)),
    picture('PHN2Zy8+', 'svg+xml'),
    { type: 'image_url' as const, image_url: { url: 'https://example.com/heron.png' } },
  ]
  await agent.run(lines, { session: 's' }).result
  await close()
  const visitor = await visit({ store })
  const { transcript } = await visitor.get<MomentView>(paths.moment('s', 3))
  expect(transcript[0]?.text).toBe('Look.')
  expect(transcript[0]?.media.map(({ picture, words }) => [picture, words.split(',')[0]])).toEqual([
    ['data:image/png;base64,iVBORw0KGgo=', '[image: image/png'],
    [null, '[image: image/png'],
    [null, '[image: image/svg+xml'],
    [null, '[image: https://example.com/heron.png]'],
  ])
})

test('tool results are truncated, secrets are scrubbed, and uncleared content is absent', async () => {
  const store = memoryStore()
  const key = 'sk-abcdefghijklmnopqrstuvwx'
  const { defineTool, defineShield } = await import('../../src/index.js')
  const big = defineTool({
    name: 'big',
    description: 'Returns much.',
    input: { type: 'object' },
    execute: () => `${key} ${'x'.repeat(5_000_000)}`,
  })
  const { agent, close } = await rehearsedAgent(
    store,
    [{ toolCalls: [{ name: 'big', arguments: {} }] }, { text: 'So.' }],
    {
      tools: [big],
      toolCalls: { maxResultChars: 6_000_000 },
    },
  )
  await agent.run(`Use ${key}.`, { session: 's' }).result
  await close()
  const hidden = await rehearsedAgent(store, [{ text: 'falcon' }], {
    shields: { input: [defineShield({ name: 'slow', check: () => new Promise(() => undefined) })] },
  })
  const run = hidden.agent.run('My secret bird is a falcon.', { session: 'hidden' })
  await run.started
  const visitor = await visit({ store })
  const all: string[] = []
  for (const id of ['s', 'hidden']) {
    const view = await visitor.raw(paths.session(id))
    const { rows } = JSON.parse(view.body) as SessionView
    all.push(view.body, (await visitor.raw(paths.moments(id, 1, 200))).body)
    for (const { seq } of rows) all.push((await visitor.raw(paths.moment(id, seq))).body)
  }
  all.push((await visitor.raw(paths.sessions)).body)
  const text = all.join('\n')
  expect(text).not.toContain(key)
  expect(text).not.toContain('falcon')
  expect(Math.max(...all.map((each) => each.length))).toBeLessThan(500_000)
  expect(text).toContain('[redacted]')
  run.cancel()
  await hidden.close()
})

test('a chart shows the visited states of sessions, and where two sessions diverge', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, [...eventful, { text: 'Another.' }])
  await agent.run('Pay the invoice.', { session: 's' }).result
  const forked = await agent.fork('s', 4, { edit: { message: 'm1', content: 'Pay the other one.' } })
  await (await agent.resume(forked)).result
  const visitor = await visit({ store, agent })
  const chart = await visitor.get<ChartView>(paths.chart)
  const requesting = chart.states.find(({ path }) => path === 'RUNNING.asking.requesting')
  expect(requesting).toMatchObject({ type: 'atomic', isTested: true })
  const { sessions, counts } = await visitor.get<VisitsView>(paths.visits)
  expect(sessions).toBe(3)
  expect(counts['RUNNING.asking.requesting']).toBeGreaterThanOrEqual(5)
  expect(chart.transitions.some(({ id }) => (counts[id] ?? 0) >= 5)).toBe(true)
  expect(chart.transitions.every(({ isTested }) => isTested)).toBe(true)
  expect(chart.sheets.map(({ id }) => id)).toContain('WAITING_FOR_TOOL')
  const { commonRecords, steps } = await visitor.get<CompareView>(paths.compare('s', forked))
  expect(commonRecords).toBe(4)
  expect(steps.length).toBe(3)
  expect(steps[0]).toMatchObject({ a: { text: 'First I look it up.' }, isSame: false })
  const view = await visitor.get<SessionView>(paths.session('s'))
  expect(view.forks).toEqual([{ sessionId: forked, seq: 4 }])
  const { transcript } = await visitor.get<MomentView>(paths.moment(forked, 1))
  expect(transcript).toMatchObject([{ text: 'Pay the other one.', marks: ['edited'] }])
  await close()
})

test('log digests are found in the order of the list, whatever the order of the table', async () => {
  const stored: LogDigest[] = []
  const kept = new KeptDigests(() =>
    Promise.resolve({ read: () => stored.toReversed(), put: (digests) => void stored.push(...digests) }),
  )
  const states = { state: null, reason: null, wakeAt: null, problem: null, forkedFrom: null, inherited: null }
  const logSummary = { ...states, title: '', steps: 1, duration: 0, failedCalls: 0, tokens: 0, cost: null }
  const places = ['newest', 'older', 'oldest'].map((id, at) => ({ id, head: 3, createdAt: at }))
  for (const place of places) await kept.keep(place, { facts: noFacts, logSummary })
  await kept.flush()
  const grown = { id: 'older', head: 4, createdAt: 1 }
  expect((await kept.find(places)).map(({ id }) => id)).toEqual(['newest', 'older', 'oldest'])
  expect(await kept.find([grown])).toEqual([])
})

test('thousands of sessions are listed, waiting ones first, and read in idle time', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, eventful)
  await agent.run('Pay.', { session: 'waits' }).result
  const records = store.read('waits')
  const { summary } = store.get('waits') ?? {}
  for (let i = 0; i < 2_000; i += 1) {
    const lease = store.acquire(`old-${i}`, { holder: 'the test', ttlMs: 10_000 })
    const ended = summary && { ...summary, state: 'COMPLETED' as const, reason: 'end_turn' as const }
    store.append(lease, records.slice(0, 2), ended ?? undefined)
    store.release(lease)
  }
  // The list appears before any log of an old session is read, on any machine.
  let release: (() => void) | undefined
  const isListed = new Promise<void>((resolve) => {
    release = resolve
  })
  const slow: SessionStore = {
    ...store,
    read: async (id, options) => {
      if (id.startsWith('old-')) await isListed
      return store.read(id, options)
    },
  }
  const visitor = await visit({ store: slow })
  let listed = await visitor.get<SessionsView>(paths.sessions)
  while (listed.known < 2_002) listed = await visitor.get<SessionsView>(paths.sessions)
  const { sessions, total, known } = listed
  expect({ total, known, shown: sessions.length }).toEqual({ total: 2_001, known: 2_002, shown: 60 })
  expect(sessions[0]).toMatchObject({ id: 'waits', steps: 3 })
  // The last log has grown, so it is read in the meantime.
  const feed = visitor.live()
  const unread = sessions.findLast(({ steps }) => steps === null)
  expect(unread).toBeDefined()
  release?.()
  // A busy machine reads it together with the list. There are too many changes to send individually, so the page requests them.
  const changed = feed.receive('session', ({ row }) => row.id === unread?.id && row.steps === 0)
  const refreshed = feed.receive('list').then(async () => {
    const { sessions: now } = await visitor.get<SessionsView>(paths.sessions)
    return now.some(({ id, steps }) => id === unread?.id && steps === 0) || changed
  })
  await Promise.race([changed, refreshed])
  await close()
})

test('a custom machine is shown in place of the agent loop', async () => {
  const machine = createMachine({
    id: 'door',
    initial: 'closed',
    states: {
      closed: { on: { OPEN: 'open' } },
      open: {
        initial: 'wide',
        states: { wide: { on: { LEAN: 'ajar' } }, ajar: {} },
        on: { CLOSE: 'closed' },
      },
    },
  })
  const visitor = await visit({ store: memoryStore(), machine })
  const chart = await visitor.get<ChartView>(paths.chart)
  expect(chart.id).toBe('door')
  expect(chart.states.map(({ path }) => path)).toEqual(['closed', 'open', 'open.wide', 'open.ajar'])
  expect(chart.transitions).toMatchObject([
    { source: 'closed', event: 'OPEN', target: 'open', isTested: null },
    { source: 'open', event: 'CLOSE' },
    { source: 'open.wide', event: 'LEAN' },
  ])
  expect(chart.sheets.map(({ id }) => id)).toEqual(['', 'open'])
})

test('a flat chart of a custom machine is drawn, and so is a machine without states', async () => {
  const flat = createMachine({
    id: 'lamp',
    initial: 'off',
    states: { off: { on: { PRESS: 'on' } }, on: { on: { PRESS: 'off' } } },
  })
  const counter = createMachine({
    id: 'counter',
    on: { ADD: { actions: () => undefined }, RESET: { target: '#counter', reenter: true } },
  })
  const [lamp, count] = await Promise.all([drawChart(flat), drawChart(counter)])
  expect(lamp.states.map(({ path }) => path)).toEqual(['off', 'on'])
  expect(lamp.transitions).toMatchObject([
    { source: 'off', target: 'on', words: 'PRESS' },
    { source: 'on', target: 'off', words: 'PRESS' },
  ])
  expect(count.states).toMatchObject([{ path: 'counter', type: 'atomic' }])
  expect(count.transitions).toMatchObject([
    { source: 'counter', event: 'ADD', target: null },
    { source: 'counter', event: 'RESET', target: 'counter' },
  ])
  for (const chart of [lamp, count]) {
    expect(chart.sheets.map(({ id }) => id)).toEqual([''])
    for (const svg of [chart.sheets[0]?.svg, drawVisitedChart(chart, null)])
      for (const { path } of chart.states) expect(svg).toContain(`data-state="${path}"`)
  }
  const dotted = await drawChart(createMachine({ id: 'app.counter' }))
  expect(drawVisitedChart(dotted, null)).toContain('data-state="app counter"')
  const visitor = await visit({ store: memoryStore(), machine: counter })
  expect(await visitor.get<ChartView>(paths.chart)).toEqual(count)
})
