import type { ListOptions } from '../../core/sessions/store/list-options.js'
import type { SessionTags } from '../../core/sessions/store/session-tags.js'
import type { ListedSession, SessionStore } from '../../core/sessions/store/store.js'
import { expectSame, formatValue } from '../check-assertions.js'
import {
  createRecord,
  createSummary,
  expectRefusal,
  leaseRequest,
  type StoreCheckSpec,
} from './store-scene.js'

const listIds = (list: readonly { id: string }[]): string[] => list.map(({ id }) => id)

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

async function write(
  store: SessionStore,
  id: string,
  more: { tags?: SessionTags; parent?: string; state?: 'PAUSED' | 'COMPLETED' },
  isHeld = false,
): Promise<void> {
  const lease = await store.acquire(id, leaseRequest)
  await store.append(lease, [createRecord(1)], { ...createSummary(id), ...more })
  if (!isHeld) await store.release(lease)
}

export const ownerChecks: readonly StoreCheckSpec[] = [
  {
    name: 'the list filters by prefix, tags, parent and time, pages, and excludes sub-agent sessions by default',
    async run({ store, time }) {
      const users = ['ann', 'anna', 'an', 'ann:x', 'Ann']
      for (let n = 0; n < 60; n += 1) {
        if (n % 4 === 0) await time.pass(10)
        const user = users[n % 5] ?? ''
        const id = `${user}:${n}`
        const tags = { user, ...(n % 2 === 0 && { plan: n % 4 === 0 ? 'pro' : 'free' }) }
        const state = n % 3 === 0 ? 'PAUSED' : 'COMPLETED'
        await write(store, id, { ...(n % 7 !== 0 && { tags }), state }, n % 6 === 0)
        if (n % 10 === 0) await write(store, `${id}:run.1.1`, { parent: id, state, tags }, n % 20 === 0)
      }
      const all = await store.list({ children: true })
      expectSame('the number of sessions including sub-agents', all.length, 66)
      const times = [...new Set(all.map(({ updatedAt }) => updatedAt))]
      const [since, before] = [times.at(-4) ?? 0, times[3] ?? 0]
      const queries: [ListOptions, (entry: ListedSession) => boolean][] = [
        [{}, () => true],
        ...users.map((prefix): [ListOptions, (entry: ListedSession) => boolean] => [
          { prefix },
          ({ id }) => id.startsWith(`${prefix}:`),
        ]),
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
  },
  {
    name: 'a session is found by the tags of its last summary, with any text',
    async run({ store }) {
      for (const [n, text] of oddTexts.entries())
        await write(store, `s${n}`, {
          tags: Object.fromEntries([
            ['is', text],
            [text, 'x'],
          ]),
        })
      for (const [n, text] of oddTexts.entries()) {
        for (const tags of [{ is: text }, Object.fromEntries([[text, 'x']])]) {
          expectSame(`the list by ${formatValue(tags)}`, listIds(await store.list({ tags })), [`s${n}`])
        }
        const tags = (await store.get(`s${n}`))?.summary?.tags ?? {}
        expectSame(
          `the tags with ${formatValue(text)}`,
          [tags['is'], Object.hasOwn(tags, text) && tags[text]],
          [text, 'x'],
        )
      }
      const lease = await store.acquire('s0', leaseRequest)
      await store.append(lease, [createRecord(2)], { ...createSummary('s0'), tags: { is: 'new' } })
      await store.append(lease, [createRecord(3)])
      const listNew = async () => listIds(await store.list({ tags: { is: 'new' } }))
      expectSame('the list by a new tag while its session is leased', await listNew(), ['s0'])
      await store.release(lease)
      expectSame('the list by a new tag', await listNew(), ['s0'])
      const [first = ''] = oddTexts
      expectSame('the list by a former value', listIds(await store.list({ tags: { is: first } })), [])
      expectSame('the list by a former tag', listIds(await store.list({ tags: { [first]: 'x' } })), [])
      await store.delete('s0')
      expectSame('the list by a tag of a deleted session', await listNew(), [])
      await write(store, 's0', {})
      expectSame('the list by a tag of a recreated session', await listNew(), [])
    },
  },
  {
    name: 'the list refuses missing owners and contradicting options',
    async run({ store }) {
      await write(store, 'ann:1', { tags: { user: 'ann' } })
      for (const [key, options] of [
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
      ] as const) {
        const asks = `list(${formatValue(options)})`
        const error = await expectRefusal(asks, 'invalid_option', () => store.list(options as ListOptions))
        expectSame(`the subject of the error of ${asks}`, error.subject, key)
      }
    },
  },
]

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
  expectSame(`the list of ${asks}`, listIds(await store.list(options)), listIds(wanted))
  const pages: ListedSession[] = []
  while (pages.length <= wanted.length) {
    const page = await store.list({ ...options, limit: 3, after: pages.at(-1) })
    pages.push(...page)
    if (page.length < 3) break
  }
  expectSame(`the list of ${asks} by pages of three`, pages, wanted)
}
