import fc from 'fast-check'
import { defineShield, memoryStore, type SessionStore } from '../../src/index.js'
import type { ListedSession, SyncSessionStore } from '../../src/core/sessions/store/store.js'
import { checkListOptions, isListed } from '../../src/core/sessions/store/list-options.js'
import { formatTerm, normalizeText, readQuery, type Findable } from '../../src/studio/session-query.js'
import { SessionCatalogue } from '../../src/studio/session-catalogue.js'
import { SessionLibrary } from '../../src/studio/session-library.js'
import type { SessionsView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { createTranscript } from '../../src/studio/shown-values.js'
import { createPlace } from '../cli/kept.js'
import { eventful, rehearsedAgent } from './rehearsed.js'
import { visit } from './visitor.js'
import { unicodeText } from '../support/unicode-text.js'

const list = { sort: 'status', offset: 0, limit: 60 }

/** A catalogue that has read every log. */
async function readAll(store: SessionStore): Promise<SessionCatalogue> {
  const catalogue = new SessionCatalogue(new SessionLibrary(store, () => false))
  await catalogue.refresh(0)
  await catalogue.readLogs(() => Promise.resolve(true))
  return catalogue
}

const circling = [{ toolCalls: [{ name: 'poll_nothing', arguments: {} }] }]

async function fill(): Promise<SyncSessionStore> {
  const store = memoryStore()
  const play = async (session: string, prompt: string, turns: typeof eventful, tags = {}) => {
    const { agent, close } = await rehearsedAgent(store, turns)
    await agent.run(prompt, { session, tags }).result
    await close()
  }
  await play('sky', 'Which colour is the sky?', [{ text: 'Blue, mostly, and **grey** in November.' }], {
    user: 'Ann B',
  })
  await play('pay', 'Pay the invoice of May.', eventful, { user: 'bob' })
  await play('stuck', 'Wait for something new.', circling)
  store.setTitle?.('stuck', 'The long wait in Lisbon')
  return store
}

const idsOf = ({ sessions }: Pick<SessionsView, 'sessions'>): string[] => sessions.map(({ id }) => id)

describe('a search', () => {
  let catalogue: SessionCatalogue
  beforeAll(async () => {
    catalogue = await readAll(await fill())
  })
  const find = (q: string, more = {}) => catalogue.find({ ...list, ...more, q })

  it.each([
    ['GREY', ['sky']],
    ['lisbon', ['stuck']],
    ['ann', ['sky']],
    ['colour november', ['sky']],
    ['colour lisbon', []],
    ['"grey** in"', ['sky']],
    ['tool:look_up', ['pay']],
    ['tool:pay', ['pay']],
    ['tool:poll*', ['stuck']],
    ['tool:poll', []],
    ['state:waiting_for_input', ['pay']],
    ['reason:end_turn sky', ['sky']],
    ['guard:progress.stale', ['stuck']],
    ['is:waiting', ['stuck', 'pay']],
    ['tag:"user=ann b"', ['sky']],
    ['tag:user=bob tool:look_up', ['pay']],
    ['steps>3', ['stuck']],
    ['cost>1000', []],
    ['since:2020-01-01 grey', ['sky']],
    ['before:2020-01-01', []],
  ])('for %s finds %j', (q, ids) => {
    expect(idsOf(find(q))).toEqual(ids)
  })

  it('returns the counts by state, the available filters, and the cost by day', () => {
    const { total, counts, facets, days, unread, known } = find('is:ended')
    expect({ total, counts, unread, known }).toEqual({
      total: 1,
      counts: { waiting: 2, ended: 1 },
      unread: 0,
      known: 4,
    })
    expect(find('').facets).toMatchObject({
      tool: expect.arrayContaining([
        ['poll_nothing', 1],
        ['look_up', 1],
      ]) as unknown,
      tag: [
        ['user=ann b', 1],
        ['user=bob', 1],
      ].toReversed(),
      guard: [['progress.stale', 1]],
      model: [['rehearsal', 3]],
    })
    expect(facets.reason).toEqual([['end_turn', 1]])
    expect(days).toHaveLength(30)
    const day = find('').days.at(-1)
    expect(day).toMatchObject({ sessions: 3, failures: { no_progress: 1 } })
    // The session 'pay' has unpriced usage.
    expect(day?.cost.isWhole).toBe(false)
    expect(day?.cost.usd).toBeCloseTo(
      find('').sessions.reduce((sum, { cost }) => sum + (cost ?? 0), 0),
      9,
    )
  })

  it('lists sub-agents below their session, and finds one alone if its parent does not match', () => {
    const rows = find('').sessions
    expect(rows.map(({ id, children }) => [id, children])).toEqual(
      expect.arrayContaining([
        ['pay', 1],
        ['sky', 0],
      ]),
    )
    expect(rows).toHaveLength(3)
    const below = find('parent:pay').sessions
    expect(below).toMatchObject([{ parent: 'pay' }])
    expect(idsOf(find('agent:"sub-agent research"'))).toEqual(idsOf({ sessions: below }))
  })

  it.each([
    ['cost', ({ cost }: { cost: number | null }) => cost ?? 0],
    ['tokens', ({ tokens }: { tokens: number }) => tokens],
    ['updated', ({ updatedAt }: { updatedAt: number }) => updatedAt],
  ])('sorts by %s, the greatest first, and returns a page of the result', (sort, of) => {
    const all = find('', { sort }).sessions
    expect(all.map(of as never)).toEqual(all.map(of as never).toSorted((a, b) => Number(b) - Number(a)))
    expect(idsOf(find('', { sort, offset: 1, limit: 1 }))).toEqual([all[1]?.id])
    // A session whose cost is unknown is last in both orders.
    const [known, unknown] = [false, true].map((isUnknown) =>
      all.filter(({ cost }) => (sort === 'cost' && cost === null) === isUnknown),
    ) as [typeof all, typeof all]
    expect(find('', { sort: `-${sort}` }).sessions).toEqual([...known.toReversed(), ...unknown])
  })
})

it('does not find withheld or redacted text', async () => {
  const key = `sk-proj-${'a1B2c3D4'.repeat(5)}`
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, [{ text: `The key is ${key}.` }])
  await agent.run(`Keep ${key} for the eagle.`, { session: 'key', tags: { secret: key } }).result
  await close()
  const hidden = await rehearsedAgent(store, [{ text: 'Yes.' }], {
    shields: { input: [defineShield({ name: 'slow', check: () => new Promise(() => undefined) })] },
  })
  const run = hidden.agent.run('The falcon flies.', { session: 'held' })
  await run.started
  const catalogue = await readAll(store)
  const find = (q: string) => idsOf(catalogue.find({ ...list, q }))
  expect(find('eagle')).toEqual(['key'])
  expect(find('falcon')).toEqual([])
  for (let length = 5; length <= key.length; length += 1) expect(find(key.slice(0, length))).toEqual([])
  expect(find(`tag:secret=${key}`)).toEqual([])
  run.cancel()
  await hidden.close()
})

it('searches the start and the end of a long session, whose log is read in the background', async () => {
  const store = memoryStore()
  const text = `alpha ${'x '.repeat(4_000)} middle ${'y '.repeat(4_000)} omega`
  const { agent, close } = await rehearsedAgent(store, [{ text }])
  await agent.run('Tell me.', { session: 'long' }).result
  await close()
  const catalogue = new SessionCatalogue(new SessionLibrary(store, () => false))
  await catalogue.refresh(0)
  const find = (q: string) => catalogue.find({ ...list, q })
  expect(find('tell')).toMatchObject({ total: 1, unread: 1 })
  expect(find('omega')).toMatchObject({ total: 0, unread: 1 })
  await catalogue.readLogs(() => Promise.resolve(true))
  expect(find('alpha omega')).toMatchObject({ total: 1, unread: 0 })
  expect(find('middle').total).toBe(0)
})

it('does not change the view of a page on the same log, including the mark of an edited result', async () => {
  const store = memoryStore()
  const turns = [
    { toolCalls: [{ id: 'a', name: 'look_up', arguments: { what: 'tea' } }] },
    { text: 'Four letters.' },
  ]
  const { agent, close } = await rehearsedAgent(store, turns)
  await agent.run('How long is tea?', { session: 's' }).result
  const library = new SessionLibrary(store, () => false)
  const { rows } = await library.readFold('s')
  const at = rows.find(({ calls }) => calls.length > 0)?.seq ?? 0
  const id = await agent.fork('s', at, { edit: { call: 'a', result: 'Four letters.' } })
  await (await agent.resume(id)).result
  await close()
  const { now, notes } = await library.readFold(id)
  const catalogue = new SessionCatalogue(library)
  await catalogue.refresh(0)
  await catalogue.readLogs(() => Promise.resolve(true))
  const { transcript } = createTranscript(now, notes)
  expect(transcript.map(({ marks }) => marks)).toEqual([[], [], []])
  expect(transcript.flatMap(({ calls }) => calls.map(({ edited }) => edited))).toEqual(['result'])
})

it('suggests the nearest name for a state or status that does not exist, and accepts the start of one', async () => {
  const visitor = await visit({ store: memoryStore() })
  const readMessage = async (q: string): Promise<string> => {
    const { status, body } = await visitor.raw(paths.found({ q }))
    expect(status).toBe(400)
    return JSON.parse(body).error.message
  }
  expect(await readMessage('state:eror')).toContain("Unknown state 'eror': did you mean error?")
  expect(await readMessage('is:qqqqqq')).toMatch(/Unknown status 'qqqqqq': use one of \w+, /)
  for (const q of ['state:err', 'state:error', 'state:ERR*'])
    expect((await visitor.raw(paths.found({ q }))).status).toBe(200)
})

it('refuses invalid input: too long, not a date, not an order', async () => {
  const store = memoryStore()
  const visitor = await visit({ store })
  for (const [path, key] of [
    [paths.found({ q: 'a'.repeat(1_001) }), 'q'],
    [paths.found({ q: 'since:yesterday' }), 'q'],
    [paths.found({ sort: 'beauty' }), 'sort'],
  ] as const) {
    const { status, body } = await visitor.raw(path)
    expect(status).toBe(400)
    expect(JSON.parse(body)).toMatchObject({ error: { code: 'invalid_option', key } })
  }
  const huge = await visitor.raw(paths.found({ q: 'a'.repeat(10_000_000) })).catch(() => ({ status: 431 }))
  expect(huge.status).toBe(431)
  expect((await visitor.raw(paths.found({ q: 'sky' }))).status).toBe(200)
})

const findable = (text: string): Findable => ({
  texts: [normalizeText(text)],
  terms: { tool: [text.toLowerCase()] },
  row: { cost: null, tokens: 0, steps: null, duration: 0, updatedAt: 0 },
})

it('matches special characters literally, and ignores invisible ones', () => {
  expect(readQuery('\u202e(.*)+$').matches(findable('x (.*)+$ y'))).toBe(true)
  expect(readQuery('.*').matches(findable('anything'))).toBe(false)
  expect(readQuery('naive').matches(findable('na\u200bive'))).toBe(true)
  fc.assert(
    fc.property(unicodeText({ maxLength: 60 }), fc.string({ maxLength: 60 }), (text, q) => {
      // Any text is a valid query, except for a malformed date.
      if (/(since|before):/.test(q)) return
      expect(typeof readQuery(q).matches(findable(text))).toBe('boolean')
      const [word] = text.split(/[\s":<>]+/).filter((one) => normalizeText(one).trim() !== '')
      if (word !== undefined) expect(readQuery(word).matches(findable(text))).toBe(true)
      if (text !== '' && !/["*]/.test(text))
        expect(readQuery(formatTerm('tool', text)).matches(findable(text))).toBe(true)
    }),
  )
})

it('shows the titles of the command line, also for a session without a run', async () => {
  const { run, withStore } = await createPlace()
  const shown = await withStore(async (store) => {
    const { agent, close } = await rehearsedAgent(store, [{ text: 'Blue.' }])
    await agent.run('Which colour\n is the sky?', { session: 'asked' }).result
    await agent.run('And the sea?', { session: 'renamed' }).result
    store.setTitle?.('renamed', 'The sea')
    const records = store.read(await agent.fork('asked', 2))
    await close()
    const lease = store.acquire('opened', { holder: 'an older version', ttlMs: 10_000 })
    store.append(lease, records)
    store.release(lease)
    return (await readAll(store)).find({ ...list, q: '' }).sessions
  })
  const { out } = await run(['sessions', 'list', '--json', '--limit', '0'])
  const reported = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { id: string; title: string })
  const titlesOf = (rows: readonly { id: string; title: string }[]) =>
    Object.fromEntries(rows.map(({ id, title }) => [id, title]))
  expect(titlesOf(shown)).toEqual(titlesOf(reported))
  expect(titlesOf(shown)).toMatchObject({
    asked: 'Which colour is the sky?',
    opened: 'Which colour is the sky?',
    renamed: 'The sea',
  })
})

describe('a search of many sessions', () => {
  const rows: ListedSession[] = Array.from({ length: 10_000 }, (_, i) => ({
    id: `s${i}`,
    createdAt: i * 1_000,
    updatedAt: i * 1_000 + 500,
    head: 3,
    summary: {
      title: `Question number ${i}`,
      state: i % 10 === 0 ? 'ERROR' : 'COMPLETED',
      reason: i % 10 === 0 ? 'provider_error' : 'end_turn',
      runs: 1,
      messages: 2,
      totalTokens: i,
      cost: 0.001,
    },
    holder: null,
  }))
  /** A list that has loaded, with logs that never load. */
  const createStore = () => {
    const newestFirst = rows.toReversed()
    let listed = 0
    const store = {
      ...memoryStore(),
      list: (options: object) => {
        const listing = checkListOptions(options)
        const found: ListedSession[] = []
        const from = listing.after ? newestFirst.findIndex(({ id }) => id === listing.after?.id) : 0
        for (let at = from; at < newestFirst.length && found.length < listing.limit; at += 1) {
          const row = newestFirst[at]
          if (row && listing.since !== null && row.updatedAt < listing.since) break
          if (row && isListed(listing, row)) found.push(row)
        }
        listed += found.length
        return found
      },
      get: (id: string) => rows[Number(id.slice(1))] ?? null,
    } as unknown as SessionStore
    return { store, countListed: () => listed }
  }

  it('reads only new data from the store', async () => {
    const { store, countListed } = createStore()
    const catalogue = new SessionCatalogue(new SessionLibrary(store, () => false))
    await catalogue.refreshSoon(0)
    await catalogue.refresh(0)
    expect(catalogue.known).toBe(10_000)
    const before = countListed()
    await catalogue.refreshSoon(0)
    // Records of the last two seconds may be newer than the list.
    expect(countListed() - before).toBeLessThanOrEqual(3)
    const found = catalogue.find({ ...list, q: 'number 99' })
    expect(found.total).toBeGreaterThan(100)
    expect(found.sessions).toHaveLength(60)
    expect(catalogue.find({ ...list, q: 'state:error', sort: 'tokens' })).toMatchObject({
      total: 1_000,
      counts: { ended: 1_000 },
    })
  })
})
