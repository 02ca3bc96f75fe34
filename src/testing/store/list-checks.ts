import type { StepMark } from '../../core/sessions/store/step-marks.js'
import type { ListedSession, SessionStore } from '../../core/sessions/store/store.js'
import { expectTrue, expectSame, formatValue } from '../check-assertions.js'
import {
  add,
  hold,
  type StoreChecks,
  createRecord,
  createRecords,
  expectLost,
  expectRefusal,
  listIds,
  strangeIds,
  createSummary,
  expectBusy,
  writeSession,
} from './store-scene.js'
import type { ListOptions } from '../../core/sessions/store/list-options.js'
import type { SessionTags } from '../../core/sessions/store/session-tags.js'

function expectOwner(what: string, listed: ListedSession | null | undefined, owner: string | null): void {
  const holder = listed?.holder
  if (owner === null) return expectSame(`the owner of ${what}`, holder, null)
  const words = `the owner of ${what} should name '${owner}', but is ${formatValue(holder)}`
  expectTrue(holder?.includes(owner) === true, words)
}

/** Expects that the list refuses each of these options, and names the option. */
async function expectRefusedLists(
  store: SessionStore,
  rows: readonly (readonly [key: string, options: object])[],
): Promise<void> {
  for (const [key, options] of rows) {
    const asks = `list(${formatValue(options)})`
    const error = await expectRefusal(asks, 'invalid_option', () => store.list(options as ListOptions))
    expectSame(`the subject of the error for ${asks}`, error.subject, key)
  }
}

export const listChecks: StoreChecks = {
  'the list contains every session with records, newest first, with its lease owner': async (scene) => {
    const { store, time } = scene
    const times: number[] = []
    const leases = []
    for (const id of ['a', 'b', 'c']) {
      await time.pass(10)
      const lease = await store.acquire(id, { holder: `writer of ${id}`, ttlMs: time.ms(300) })
      times.push(time.now())
      await store.append(lease, createRecords(1, 2), createSummary(`about ${id}`))
      leases.push(lease)
    }
    await hold(store, 'not-written')
    const [a, b] = leases
    if (!a || !b) return
    await time.pass(10)
    const [ofA = 0, ofB = 0, ofC = 0] = times
    const later = time.now()
    await add(store, a, 3)
    await store.release(b)

    const list = await store.list()
    expectSame('the list ordered by last write', listIds(list), ['a', 'c', 'b'])
    const [first, second, third] = list
    const heads = list.map(({ head }) => head)
    expectSame('the heads', heads, [3, 2, 2])
    for (const [listed, created, updated] of [
      [first, ofA, later],
      [second, ofC, ofC],
      [third, ofB, ofB],
    ] as const) {
      time.same(`createdAt of ${listed?.id}`, listed?.createdAt ?? Number.NaN, created)
      time.same(`updatedAt of ${listed?.id}`, listed?.updatedAt ?? Number.NaN, updated)
    }
    const listed = list.map(({ summary }) => summary)
    expectSame('the summaries', listed, ['about a', 'about c', 'about b'].map(createSummary))
    expectOwner('a leased session', first, 'writer of a')
    expectOwner('a released session', third, null)

    await time.pass(300)
    const holders = (await store.list()).map(({ holder }) => holder)
    expectSame('the owners after all leases have expired', holders, [null, null, null])
  },
  'get returns the same entry as the list, or null if there are no records': async ({ store, time }) => {
    const findListed = async () => (await store.list()).find(({ id }) => id === 's') ?? null
    expectSame('the entry of a session that does not exist', await store.get('s'), null)
    const lease = await hold(store)
    expectSame('the entry of a session that was only acquired', await store.get('s'), null)
    await store.append(lease, createRecords(1, 2), createSummary('about s'))
    await store.append(await hold(store, 'other'), createRecords(1, 3))
    const listed = await store.get('s')
    expectSame('the entry of a session', listed, await findListed())
    expectSame('the head and the summary', [listed?.head, listed?.summary], [2, createSummary('about s')])
    expectOwner('a leased session', listed, 'run 1')
    await time.pass(10)
    await store.release(lease)
    expectSame('the entry of a released session', await store.get('s'), await findListed())
    expectOwner('a released session', await store.get('s'), null)
    expectSame('whether it was deleted', await store.delete('s'), true)
    expectSame('the entry of a deleted session', await store.get('s'), null)
    for (const strange of ['S', ...strangeIds])
      expectSame(`the entry of ${formatValue(strange)}`, await store.get(strange), null)
  },
  'the list can be filtered by state and agent, and its pages contain no duplicates': async (scene) => {
    const { store, time } = scene
    const states = ['RUNNING', 'PAUSED', 'COMPLETED', 'WAITING_FOR_INPUT'] as const
    const held: string[] = []
    for (let n = 0; n < 40; n += 1) {
      const id = `s${n}`
      // Several sessions have the same updatedAt, so the id decides.
      if (n % 3 === 0) await time.pass(10)
      const lease = await hold(store, id)
      const listed = {
        ...createSummary(id),
        state: states[n % 4] ?? null,
        ...(n % 5 === 0 && { agent: 'billing' }),
      }
      await store.append(lease, [createRecord(1)], listed)
      if (n % 7 === 0) {
        await time.pass(1)
        await add(store, lease, 2)
      }
      if (n % 6 === 0) held.push(id)
      else await store.release(lease)
    }
    const all = await store.list()
    expectSame('the number of listed sessions', all.length, 40)
    const newestFirst = [...all].sort((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : 1))
    expectSame('the list ordered by updatedAt and then by id', listIds(all), listIds(newestFirst))
    const holders = all.filter(({ holder }) => holder !== null)
    expectSame('the leased sessions', listIds(holders).sort(), held.sort())
    for (const state of [undefined, 'PAUSED', ['RUNNING', 'COMPLETED', 'RUNNING'], ['ERROR'], []] as const) {
      for (const agent of [undefined, 'billing', 'nobody']) {
        const wanted = all.filter(
          ({ summary: listed }) =>
            (state === undefined || [state].flat().includes(listed?.state as never)) &&
            (agent === undefined || listed?.agent === agent),
        )
        await expectList(store, { state, agent }, wanted)
      }
    }
  },
  'the list refuses invalid options': async ({ store }) => {
    await expectRefusedLists(store, [
      ['state', { state: 7 }],
      ['state', { state: 'WAITING' }],
      ['state', { state: ['PAUSED', 'paused'] }],
      ['user', { user: 'ann' }],
      ['agent', { agent: 7 }],
      ['limit', { limit: 0 }],
      ['limit', { limit: 1.5 }],
      ['after', { after: 's' }],
      ['after', { after: { id: 's' } }],
    ])
  },
  'the list contains the last written summary, or none': async ({ store }) => {
    const listed = async () => {
      const [listed] = await store.list()
      return [listed?.head, listed?.summary]
    }
    const lease = await hold(store)
    await add(store, lease, 1)
    expectSame('head and summary without a written summary', await listed(), [1, null])
    const first = createSummary('Quotes \' " \\ \u0000 and \u{1F600}')
    await store.append(lease, [createRecord(2)], first)
    await add(store, lease, 3)
    expectSame('head and summary after another record', await listed(), [3, first])
    const renamed = { ...first, name: 'renamed', cost: 0.25 }
    await store.append(lease, [], renamed)
    expectSame('head and summary after writing only a summary', await listed(), [3, renamed])
  },
  'delete removes a session with all its records and returns whether it existed': async ({ store }) => {
    const lease = await hold(store)
    await store.append(lease, createRecords(1, 3), createSummary('gone'))
    await store.release(lease)
    await add(store, await hold(store, 'kept'), 1)

    expectSame('the first delete', await store.delete('s'), true)
    expectSame('the second delete', await store.delete('s'), false)
    expectSame('deleting a session that does not exist', await store.delete('nobody'), false)
    expectSame('the log of a deleted session', await store.read('s'), [])
    expectSame('the list', listIds(await store.list()), ['kept'])

    await add(store, await hold(store), 1)
    expectSame('the log of a recreated session', await store.read('s'), [createRecord(1)])
    const again = (await store.list()).find(({ id }) => id === 's')
    expectSame('the summary of a recreated session', again?.summary, null)
  },
  'delete is refused while a process has the lease': async ({ store, time }) => {
    const lease = await store.acquire('s', { holder: 'run 4f2a', ttlMs: time.ms(100) })
    await add(store, lease, 1)
    await expectBusy('a delete', 'run 4f2a', () => store.delete('s'))
    expectSame('the log', await store.read('s'), [createRecord(1)])
    await time.pass(100)
    expectSame('a delete after the lease has expired', await store.delete('s'), true)
    await expectLost("renewing a deleted session's lease", () => store.renew(lease, 100))
    await expectLost('an append to a deleted session', () => add(store, lease, 2))
    expectSame('the log of a deleted session', await store.read('s'), [])
  },
}

export const purgeChecks: StoreChecks = {
  'purge keeps sessions that were not deleted, even while a process writes to them': async ({ store }) => {
    const held = await hold(store, 'held')
    await store.append(held, createRecords(1, 2), createSummary('held'))
    const lease = await hold(store, 'gone')
    await store.append(lease, [createRecord(1)], createSummary('gone'))
    await store.release(lease)
    await store.delete('gone')
    const before = await store.list()
    await store.purge?.()
    expectSame('the list after purging', await store.list(), before)
    expectSame('a log after purging', await store.read('held'), createRecords(1, 2))
    await add(store, held, 3)
    await store.purge?.()
    expectSame('the log after another append', await store.read('held'), createRecords(1, 3))
  },
}

export const titleChecks: StoreChecks = {
  'a title survives appends until it is cleared or its session is deleted': async ({ store, time }) => {
    const title = async (id: string) => (await store.get(id))?.summary?.title
    const setTitle = async (id: string, newTitle: string | null) => store.setTitle?.(id, newTitle)
    expectSame('a title for an unknown session', await setTitle('s', 'Given'), false)
    const lease = await hold(store)
    expectSame('a title for a session without a record', await setTitle('s', 'Given'), false)
    await store.append(lease, [createRecord(1)], createSummary('first message'))
    await store.append(await hold(store, 'other'), [createRecord(1)], createSummary('other'))
    const before = await store.get('s')
    await time.pass(10)
    expectSame('a title for a leased session', await setTitle('s', "O'Hara; -- 東京 🚆"), true)
    const now = await store.get('s')
    expectSame('its title', now?.summary?.title, "O'Hara; -- 東京 🚆")
    expectSame('the rest of the entry', { ...now, summary: null }, { ...before, summary: null })
    await store.append(lease, [createRecord(2)], createSummary('first message'))
    await store.release(lease)
    expectSame('the title after an append', await title('s'), "O'Hara; -- 東京 🚆")
    const titles = (await store.list()).map(({ id, summary }) => `${id}: ${summary?.title}`).sort()
    expectSame('the titles in the list', titles, ['other: other', "s: O'Hara; -- 東京 🚆"])
    expectSame('clearing the title', await setTitle('s', null), true)
    expectSame('the title after clearing it', await title('s'), 'first message')
    await setTitle('s', 'Of the deleted session')
    await store.delete('s')
    expectSame('a title for a deleted session', await setTitle('s', 'Given'), false)
    await store.append(await hold(store), [createRecord(1)], createSummary('anew'))
    expectSame('the title of a recreated session', await title('s'), 'anew')
    for (const strange of strangeIds)
      expectSame(`a title for ${formatValue(strange)}`, await setTitle(strange, 'Given'), false)
  },
}

export const markChecks: StoreChecks = {
  'marks survive appends until they are removed or their session is deleted': async ({ store }) => {
    const setMark = async (id: string, seq: number, mark: StepMark | null) => store.setMark?.(id, seq, mark)
    const marks = async () => (await store.get('s'))?.marks
    const good: StepMark = { seq: 2, mark: 'good', note: "O'Hara; -- 東京 🚆", at: 1_700_000_000_000 }
    const bad: StepMark = { seq: 1, mark: 'bad', note: '', at: 1_700_000_000_001 }
    expectSame('a mark in an unknown session', await setMark('s', 1, bad), false)
    const lease = await hold(store)
    await store.append(lease, [createRecord(1), createRecord(2)], createSummary('first'))
    const before = await store.get('s')
    expectSame('the marks of a session without marks', before?.marks, undefined)
    expectSame('a mark', await setMark('s', 2, good), true)
    expectSame('another mark', await setMark('s', 1, bad), true)
    for (const seq of [0, 3]) expectSame(`a mark at record ${seq}`, await setMark('s', seq, good), false)
    expectSame('the marks', await marks(), [bad, good])
    const { marks: _marks, ...rest } = (await store.get('s')) ?? {}
    expectSame('the rest of the entry', rest, before)
    await store.append(lease, [createRecord(3)], createSummary('first'))
    await store.release(lease)
    expectSame('the marks in the list', (await store.list())[0]?.marks, [bad, good])
    const why: StepMark = { ...bad, mark: 'note', note: 'Why?' }
    expectSame('replacing a mark', await setMark('s', 1, why), true)
    expectSame('removing a mark', await setMark('s', 2, null), true)
    expectSame('the marks after one has been removed', await marks(), [why])
    expectSame('removing the last mark', await setMark('s', 1, null), true)
    expectSame('the marks after the last one has been removed', await marks(), undefined)
    await setMark('s', 1, bad)
    await store.delete('s')
    await store.append(await hold(store), [createRecord(1)], createSummary('anew'))
    expectSame('the marks of a recreated session', await marks(), undefined)
    for (const strange of strangeIds)
      expectSame(`a mark for ${formatValue(strange)}`, await setMark(strange, 1, bad), false)
  },
}

/** Texts that queries, patterns and objects could misinterpret. */
const oddTexts = [
  "o'hara; DROP TABLE sessions --",
  '"q" \\ %_*?',
  '\u{1F600} ünï 名前',
  ' two  spaces ',
  'line\nbreak\t',
  '$1',
  '{"a":1}',
  '__proto__',
  'constructor',
  'null',
  '0',
  'ann:1',
]

export const ownerChecks: StoreChecks = {
  'the list can be filtered by prefix, tags, parent and time, has pages, and excludes sub-agent sessions by default':
    async ({ store, time }) => {
      const users = ['ann', 'anna', 'an', 'ann:x', 'Ann']
      for (let n = 0; n < 60; n += 1) {
        if (n % 4 === 0) await time.pass(10)
        const user = users[n % 5] ?? ''
        const id = `${user}:${n}`
        const tags = { user, ...(n % 2 === 0 && { plan: n % 4 === 0 ? 'pro' : 'free' }) }
        const state = n % 3 === 0 ? 'PAUSED' : 'COMPLETED'
        await writeSession(store, id, { ...(n % 7 !== 0 && { tags }), state }, n % 6 === 0)
        if (n % 10 === 0)
          await writeSession(store, `${id}:run.1.1`, { parent: id, state, tags }, n % 20 === 0)
      }
      const all = await store.list({ children: true })
      expectSame('the number of sessions including sub-agents', all.length, 66)
      const times = [...new Set(all.map(({ updatedAt }) => updatedAt))]
      const [since, before] = [times.at(-4) ?? 0, times[3] ?? 0]
      const queries: Query[] = [
        [{}, () => true],
        ...users.map((prefix): Query => [{ prefix }, ({ id }) => id.startsWith(`${prefix}:`)]),
        [{ prefix: 'nobody' }, () => false],
        [{ tags: { user: 'ann' } }, hasTags({ user: 'ann' })],
        [{ tags: { user: 'ann', plan: 'pro' } }, hasTags({ user: 'ann', plan: 'pro' })],
        [{ tags: { plan: 'free', user: 'Ann' } }, hasTags({ plan: 'free', user: 'Ann' })],
        [{ tags: { user: 'pro' } }, () => false],
        [{ tags: { name: 'ann' } }, () => false],
        [{ since }, ({ updatedAt }) => updatedAt >= since],
        [{ before }, ({ updatedAt }) => updatedAt < before],
        [{ since, before }, ({ updatedAt }) => updatedAt >= since && updatedAt < before],
        [
          { prefix: 'ann', tags: { plan: 'pro' }, since },
          (entry) =>
            entry.id.startsWith('ann:') && hasTags({ plan: 'pro' })(entry) && entry.updatedAt >= since,
        ],
      ]
      for (const [options, belongs] of queries) {
        for (const state of [undefined, 'PAUSED'] as const) {
          for (const children of [undefined, true] as const) {
            const wanted = all.filter(
              (entry) =>
                belongs(entry) &&
                (state === undefined || entry.summary?.state === state) &&
                (children === true || entry.summary?.parent === undefined),
            )
            await expectList(store, { ...options, state, children }, wanted)
          }
        }
      }
      for (const parent of ['ann:0', 'ann:1']) {
        const wanted = all.filter(({ summary }) => summary?.parent === parent)
        await expectList(store, { parent }, wanted)
        await expectList(store, { parent, prefix: 'ann' }, wanted)
        await expectList(store, { parent, prefix: 'anna' }, [])
      }
    },
  'a session is found by the tags of its last summary, for any tag text': async ({ store }) => {
    for (const [n, text] of oddTexts.entries())
      await writeSession(store, `s${n}`, {
        tags: { is: text, ...Object.fromEntries([[text, 'x']]) },
      })
    for (const [n, text] of oddTexts.entries()) {
      for (const tags of [{ is: text }, Object.fromEntries([[text, 'x']])]) {
        const found = listIds(await store.list({ tags }))
        expectSame(`the list filtered by ${formatValue(tags)}`, found, [`s${n}`])
      }
      const tags = (await store.get(`s${n}`))?.summary?.tags ?? {}
      const found = [tags['is'], Object.hasOwn(tags, text) && tags[text]]
      expectSame(`the tags with ${formatValue(text)}`, found, [text, 'x'])
    }
    const lease = await hold(store, 's0')
    await store.append(lease, [createRecord(2)], { ...createSummary('s0'), tags: { is: 'new' } })
    await add(store, lease, 3)
    const listNew = async () => listIds(await store.list({ tags: { is: 'new' } }))
    expectSame('the list filtered by a new tag while its session is leased', await listNew(), ['s0'])
    await store.release(lease)
    expectSame('the list filtered by a new tag', await listNew(), ['s0'])
    const [first = ''] = oddTexts
    for (const [what, tags] of [
      ['tag value', { is: first }],
      ['tag', { [first]: 'x' }],
    ] as const)
      expectSame(`the list filtered by a replaced ${what}`, listIds(await store.list({ tags })), [])
    await store.delete('s0')
    expectSame('the list filtered by a tag of a deleted session', await listNew(), [])
    await writeSession(store, 's0')
    expectSame('the list filtered by a tag of a recreated session', await listNew(), [])
  },
  'the list refuses missing owners and contradicting options': async ({ store }) => {
    await writeSession(store, 'ann:1', { tags: { user: 'ann' } })
    await expectRefusedLists(store, [
      ['prefix', { prefix: undefined }],
      ['prefix', { prefix: '' }],
      ['prefix', { prefix: 'ann:' }],
      ['prefix', { prefix: "ann' OR 1=1" }],
      ['tags', { tags: undefined }],
      ['tags', { tags: {} }],
      ['tags', { tags: 'user' }],
      ['tags', { tags: ['user'] }],
      ['tags', { tags: { user: undefined } }],
      ['tags', { tags: { user: '' } }],
      ['tags', { tags: { user: 7 } }],
      ['tags', { tags: { user: 'a\u0000b' } }],
      ['tags', { tags: { user: '\uD800' } }],
      ['tags', { tags: { user: 'x'.repeat(201) } }],
      ['tags', { tags: new Map([['user', 'ann']]) }],
      ['parent', { parent: undefined }],
      ['parent', { parent: '../s' }],
      ['children', { children: 'yes' }],
      ['children', { parent: 'ann:1', children: false }],
      ['since', { since: '2026-05-01' }],
      ['since', { since: Number.NaN }],
      ['before', { before: 1.5 }],
      ['before', { since: 2, before: 2 }],
      ['cursor', { cursor: undefined }],
      ['order', { order: 'asc' }],
    ])
  },
}

type Query = [ListOptions, (entry: ListedSession) => boolean]

const hasTags =
  (tags: SessionTags) =>
  ({ summary }: ListedSession): boolean =>
    Object.entries(tags).every(([name, value]) => summary?.tags?.[name] === value)

/** Expects the list as a whole and in pages of three. */
async function expectList(
  store: SessionStore,
  options: ListOptions,
  wanted: readonly ListedSession[],
): Promise<void> {
  const asks = formatValue(options)
  const list = await store.list(options)
  expectSame(`the list for ${asks}`, listIds(list), listIds(wanted))
  expectSame(`the entries for ${asks}`, list, wanted)
  const pages: ListedSession[] = []
  // Guards against a store that restarts with each page.
  while (pages.length <= wanted.length) {
    const page = await store.list({ ...options, limit: 3, after: pages.at(-1) })
    pages.push(...page)
    if (page.length < 3) break
  }
  expectSame(`the list for ${asks} in pages of three`, listIds(pages), listIds(wanted))
  expectSame(`the entries on the pages for ${asks}`, pages, wanted)
}
