import type { StepMark } from '../../core/sessions/store/step-marks.js'
import type { ListedSession, SessionStore } from '../../core/sessions/store/store.js'
import type { ListOptions } from '../../core/sessions/store/list-options.js'
import type { SessionTags } from '../../core/sessions/store/session-tags.js'
import * as t from './store-scene.js'

function expectOwner(what: string, listed: ListedSession | null | undefined, owner: string | null): void {
  const holder = listed?.holder
  if (owner === null) return t.same(`the owner of ${what}`, holder, null)
  const words = `the owner of ${what} should name '${owner}', but is ${t.show(holder)}`
  t.ok(holder?.includes(owner) === true, words)
}

/** Expects that the list refuses each of these options, and names the option. */
async function expectRefusedLists(
  store: SessionStore,
  rows: readonly (readonly [key: string, options: object])[],
): Promise<void> {
  for (const [key, options] of rows) {
    const asks = `list(${t.show(options)})`
    const error = await t.refused(asks, 'invalid_option', () => store.list(options as ListOptions))
    t.same(`the subject of the error for ${asks}`, error.subject, key)
  }
}

export const listChecks: t.StoreChecks = {
  'the list contains every session with records, newest first, with its lease owner': async (scene) => {
    const { store, time } = scene
    const times: number[] = []
    const leases = []
    for (const id of ['a', 'b', 'c']) {
      await time.pass(10)
      const lease = await store.acquire(id, { holder: `writer of ${id}`, ttlMs: time.ms(300) })
      times.push(time.now())
      await store.append(lease, t.records(1, 2), t.summary(`about ${id}`))
      leases.push(lease)
    }
    await t.hold(store, 'not-written')
    const [a, b] = leases
    if (!a || !b) return
    await time.pass(10)
    const [ofA = 0, ofB = 0, ofC = 0] = times
    const later = time.now()
    await t.add(store, a, 3)
    await store.release(b)

    const list = await store.list()
    t.same('the list ordered by last write', t.ids(list), ['a', 'c', 'b'])
    const [first, second, third] = list
    const heads = list.map(({ head }) => head)
    t.same('the heads', heads, [3, 2, 2])
    for (const [listed, created, updated] of [
      [first, ofA, later],
      [second, ofC, ofC],
      [third, ofB, ofB],
    ] as const) {
      time.same(`createdAt of ${listed?.id}`, listed?.createdAt ?? Number.NaN, created)
      time.same(`updatedAt of ${listed?.id}`, listed?.updatedAt ?? Number.NaN, updated)
    }
    const listed = list.map(({ summary }) => summary)
    t.same('the summaries', listed, ['about a', 'about c', 'about b'].map(t.summary))
    expectOwner('a leased session', first, 'writer of a')
    expectOwner('a released session', third, null)

    await time.pass(300)
    const holders = (await store.list()).map(({ holder }) => holder)
    t.same('the owners after all leases have expired', holders, [null, null, null])
  },
  'get returns the same entry as the list, or null if there are no records': async ({ store, time }) => {
    const findListed = async () => (await store.list()).find(({ id }) => id === 's') ?? null
    t.same('the entry of a session that does not exist', await store.get('s'), null)
    const lease = await t.hold(store)
    t.same('the entry of a session that was only acquired', await store.get('s'), null)
    await store.append(lease, t.records(1, 2), t.summary('about s'))
    await store.append(await t.hold(store, 'other'), t.records(1, 3))
    const listed = await store.get('s')
    t.same('the entry of a session', listed, await findListed())
    t.same('the head and the summary', [listed?.head, listed?.summary], [2, t.summary('about s')])
    expectOwner('a leased session', listed, 'run 1')
    await time.pass(10)
    await store.release(lease)
    t.same('the entry of a released session', await store.get('s'), await findListed())
    expectOwner('a released session', await store.get('s'), null)
    t.same('whether it was deleted', await store.delete('s'), true)
    t.same('the entry of a deleted session', await store.get('s'), null)
    for (const strange of ['S', ...t.strangeIds])
      t.same(`the entry of ${t.show(strange)}`, await store.get(strange), null)
  },
  'the list can be filtered by state and agent, and its pages contain no duplicates': async (scene) => {
    const { store, time } = scene
    const states = ['RUNNING', 'PAUSED', 'COMPLETED', 'WAITING_FOR_INPUT'] as const
    const held: string[] = []
    for (let n = 0; n < 40; n += 1) {
      const id = `s${n}`
      // Several sessions have the same updatedAt, so the id decides.
      if (n % 3 === 0) await time.pass(10)
      const lease = await t.hold(store, id)
      const listed = {
        ...t.summary(id),
        state: states[n % 4] ?? null,
        ...(n % 5 === 0 && { agent: 'billing' }),
      }
      await store.append(lease, [t.record(1)], listed)
      if (n % 7 === 0) {
        await time.pass(1)
        await t.add(store, lease, 2)
      }
      if (n % 6 === 0) held.push(id)
      else await store.release(lease)
    }
    const all = await store.list()
    t.same('the number of listed sessions', all.length, 40)
    const newestFirst = [...all].sort((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : 1))
    t.same('the list ordered by updatedAt and then by id', t.ids(all), t.ids(newestFirst))
    t.same('the leased sessions', t.ids(all.filter(({ holder }) => holder !== null)).sort(), held.sort())
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
    const lease = await t.hold(store)
    await t.add(store, lease, 1)
    t.same('head and summary without a written summary', await listed(), [1, null])
    const first = t.summary('Quotes \' " \\ \u0000 and \u{1F600}')
    await store.append(lease, [t.record(2)], first)
    await t.add(store, lease, 3)
    t.same('head and summary after another record', await listed(), [3, first])
    const renamed = { ...first, name: 'renamed', cost: 0.25 }
    await store.append(lease, [], renamed)
    t.same('head and summary after writing only a summary', await listed(), [3, renamed])
  },
  'delete removes a session with all its records and returns whether it existed': async ({ store }) => {
    const lease = await t.hold(store)
    await store.append(lease, t.records(1, 3), t.summary('gone'))
    await store.release(lease)
    await t.add(store, await t.hold(store, 'kept'), 1)

    t.same('the first delete', await store.delete('s'), true)
    t.same('the second delete', await store.delete('s'), false)
    t.same('deleting a session that does not exist', await store.delete('nobody'), false)
    t.same('the log of a deleted session', await store.read('s'), [])
    t.same('the list', t.ids(await store.list()), ['kept'])

    await t.add(store, await t.hold(store), 1)
    t.same('the log of a recreated session', await store.read('s'), [t.record(1)])
    const again = (await store.list()).find(({ id }) => id === 's')
    t.same('the summary of a recreated session', again?.summary, null)
  },
  'delete is refused while a process has the lease': async ({ store, time }) => {
    const lease = await t.hold(store, 's', { holder: 'run 4f2a', ttlMs: time.ms(100) })
    await t.add(store, lease, 1)
    await t.busy('a delete', 'run 4f2a', () => store.delete('s'))
    t.same('the log', await store.read('s'), [t.record(1)])
    await time.pass(100)
    t.same('a delete after the lease has expired', await store.delete('s'), true)
    await t.lost("renewing a deleted session's lease", () => store.renew(lease, 100))
    await t.lost('an append to a deleted session', () => t.add(store, lease, 2))
    t.same('the log of a deleted session', await store.read('s'), [])
  },
}

export const purgeChecks: t.StoreChecks = {
  'purge keeps sessions that were not deleted, even while a process writes to them': async ({ store }) => {
    const held = await t.hold(store, 'held')
    await store.append(held, t.records(1, 2), t.summary('held'))
    const lease = await t.hold(store, 'gone')
    await store.append(lease, [t.record(1)], t.summary('gone'))
    await store.release(lease)
    await store.delete('gone')
    const before = await store.list()
    await store.purge?.()
    t.same('the list after purging', await store.list(), before)
    t.same('a log after purging', await store.read('held'), t.records(1, 2))
    await t.add(store, held, 3)
    await store.purge?.()
    t.same('the log after another append', await store.read('held'), t.records(1, 3))
  },
}

export const titleChecks: t.StoreChecks = {
  'a title survives appends until it is cleared or its session is deleted': async ({ store, time }) => {
    const title = async (id: string) => (await store.get(id))?.summary?.title
    const setTitle = async (id: string, newTitle: string | null) => store.setTitle?.(id, newTitle)
    t.same('a title for an unknown session', await setTitle('s', 'Given'), false)
    const lease = await t.hold(store)
    t.same('a title for a session without a record', await setTitle('s', 'Given'), false)
    await store.append(lease, [t.record(1)], t.summary('first message'))
    await store.append(await t.hold(store, 'other'), [t.record(1)], t.summary('other'))
    const before = await store.get('s')
    await time.pass(10)
    t.same('a title for a leased session', await setTitle('s', "O'Hara; -- 東京 🚆"), true)
    const now = await store.get('s')
    t.same('its title', now?.summary?.title, "O'Hara; -- 東京 🚆")
    t.same('the rest of the entry', { ...now, summary: null }, { ...before, summary: null })
    await store.append(lease, [t.record(2)], t.summary('first message'))
    await store.release(lease)
    t.same('the title after an append', await title('s'), "O'Hara; -- 東京 🚆")
    const titles = (await store.list()).map(({ id, summary }) => `${id}: ${summary?.title}`).sort()
    t.same('the titles in the list', titles, ['other: other', "s: O'Hara; -- 東京 🚆"])
    t.same('clearing the title', await setTitle('s', null), true)
    t.same('the title after clearing it', await title('s'), 'first message')
    await setTitle('s', 'Of the deleted session')
    await store.delete('s')
    t.same('a title for a deleted session', await setTitle('s', 'Given'), false)
    await store.append(await t.hold(store), [t.record(1)], t.summary('anew'))
    t.same('the title of a recreated session', await title('s'), 'anew')
    for (const strange of t.strangeIds)
      t.same(`a title for ${t.show(strange)}`, await setTitle(strange, 'Given'), false)
  },
}

export const markChecks: t.StoreChecks = {
  'marks survive appends until they are removed or their session is deleted': async ({ store }) => {
    const setMark = async (id: string, seq: number, mark: StepMark | null) => store.setMark?.(id, seq, mark)
    const marks = async () => (await store.get('s'))?.marks
    const good: StepMark = { seq: 2, mark: 'good', note: "O'Hara; -- 東京 🚆", at: 1_700_000_000_000 }
    const bad: StepMark = { seq: 1, mark: 'bad', note: '', at: 1_700_000_000_001 }
    t.same('a mark in an unknown session', await setMark('s', 1, bad), false)
    const lease = await t.hold(store)
    await store.append(lease, [t.record(1), t.record(2)], t.summary('first'))
    const before = await store.get('s')
    t.same('the marks of a session without marks', before?.marks, undefined)
    t.same('a mark', await setMark('s', 2, good), true)
    t.same('another mark', await setMark('s', 1, bad), true)
    for (const seq of [0, 3]) t.same(`a mark at record ${seq}`, await setMark('s', seq, good), false)
    t.same('the marks', await marks(), [bad, good])
    const { marks: _marks, ...rest } = (await store.get('s')) ?? {}
    t.same('the rest of the entry', rest, before)
    await store.append(lease, [t.record(3)], t.summary('first'))
    await store.release(lease)
    t.same('the marks in the list', (await store.list())[0]?.marks, [bad, good])
    const why: StepMark = { ...bad, mark: 'note', note: 'Why?' }
    t.same('replacing a mark', await setMark('s', 1, why), true)
    t.same('removing a mark', await setMark('s', 2, null), true)
    t.same('the marks after one has been removed', await marks(), [why])
    t.same('removing the last mark', await setMark('s', 1, null), true)
    t.same('the marks after the last one has been removed', await marks(), undefined)
    await setMark('s', 1, bad)
    await store.delete('s')
    await store.append(await t.hold(store), [t.record(1)], t.summary('anew'))
    t.same('the marks of a recreated session', await marks(), undefined)
    for (const strange of t.strangeIds)
      t.same(`a mark for ${t.show(strange)}`, await setMark(strange, 1, bad), false)
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

export const ownerChecks: t.StoreChecks = {
  'the list can be filtered by prefix, tags, parent and time, has pages, and excludes sub-agent sessions by default':
    async ({ store, time }) => {
      const users = ['ann', 'anna', 'an', 'ann:x', 'Ann']
      for (let n = 0; n < 60; n += 1) {
        if (n % 4 === 0) await time.pass(10)
        const user = users[n % 5] ?? ''
        const id = `${user}:${n}`
        const tags = { user, ...(n % 2 === 0 && { plan: n % 4 === 0 ? 'pro' : 'free' }) }
        const state = n % 3 === 0 ? 'PAUSED' : 'COMPLETED'
        await t.write(store, id, { ...(n % 7 !== 0 && { tags }), state }, n % 6 === 0)
        if (n % 10 === 0) await t.write(store, `${id}:run.1.1`, { parent: id, state, tags }, n % 20 === 0)
      }
      const all = await store.list({ children: true })
      t.same('the number of sessions including sub-agents', all.length, 66)
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
      await t.write(store, `s${n}`, {
        tags: { is: text, ...Object.fromEntries([[text, 'x']]) },
      })
    for (const [n, text] of oddTexts.entries()) {
      for (const tags of [{ is: text }, Object.fromEntries([[text, 'x']])]) {
        t.same(`the list filtered by ${t.show(tags)}`, t.ids(await store.list({ tags })), [`s${n}`])
      }
      const tags = (await store.get(`s${n}`))?.summary?.tags ?? {}
      const found = [tags['is'], Object.hasOwn(tags, text) && tags[text]]
      t.same(`the tags with ${t.show(text)}`, found, [text, 'x'])
    }
    const lease = await t.hold(store, 's0')
    await store.append(lease, [t.record(2)], { ...t.summary('s0'), tags: { is: 'new' } })
    await t.add(store, lease, 3)
    const listNew = async () => t.ids(await store.list({ tags: { is: 'new' } }))
    t.same('the list filtered by a new tag while its session is leased', await listNew(), ['s0'])
    await store.release(lease)
    t.same('the list filtered by a new tag', await listNew(), ['s0'])
    const [first = ''] = oddTexts
    for (const [what, tags] of [
      ['tag value', { is: first }],
      ['tag', { [first]: 'x' }],
    ] as const)
      t.same(`the list filtered by a replaced ${what}`, t.ids(await store.list({ tags })), [])
    await store.delete('s0')
    t.same('the list filtered by a tag of a deleted session', await listNew(), [])
    await t.write(store, 's0')
    t.same('the list filtered by a tag of a recreated session', await listNew(), [])
  },
  'the list refuses missing owners and contradicting options': async ({ store }) => {
    await t.write(store, 'ann:1', { tags: { user: 'ann' } })
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
  const asks = t.show(options)
  const list = await store.list(options)
  t.same(`the list for ${asks}`, t.ids(list), t.ids(wanted))
  t.same(`the entries for ${asks}`, list, wanted)
  const pages: ListedSession[] = []
  // Guards against a store that restarts with each page.
  while (pages.length <= wanted.length) {
    const page = await store.list({ ...options, limit: 3, after: pages.at(-1) })
    pages.push(...page)
    if (page.length < 3) break
  }
  t.same(`the list for ${asks} in pages of three`, t.ids(pages), t.ids(wanted))
  t.same(`the entries on the pages for ${asks}`, pages, wanted)
}
