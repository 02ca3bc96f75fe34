import { defineShield, type SessionStore } from '../../src/index.js'
import {
  type DigestTable,
  type LogDigest,
  offerDigests,
  openDigests,
} from '../../src/core/sessions/store/log-digests.js'
import { fileStore } from '../../src/stores/file/index.js'
import { EmbeddedActors, type ReadableStore } from '../../src/studio/embedded-actors.js'
import type { SessionsView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { SessionCatalogue } from '../../src/studio/session-catalogue.js'
import { SessionLibrary } from '../../src/studio/session-library.js'
import { makeFolder, removeFolder } from '../stores/folder.js'
import { until } from '../support/play.js'
import { damage, eventful, rehearsedAgent } from './rehearsed.js'
import { visit } from './visitor.js'

let dir = ''
let store: SessionStore

beforeEach(() => {
  dir = makeFolder()
  store = fileStore({ dir })
})

afterEach(async () => {
  await store.close()
  removeFolder(dir)
})

const shown = (of = store): ReadableStore => new EmbeddedActors().addTo(of)
/** A store whose logs must not be read. */
const unreadable = (of = store): ReadableStore => ({
  ...shown(of),
  read: () => {
    throw new Error('A log is read.')
  },
})
/** The list of another studio that starts now. */
async function start(readable: ReadableStore): Promise<SessionCatalogue> {
  const catalogue = new SessionCatalogue(new SessionLibrary(readable, () => false))
  await catalogue.refresh(0)
  return catalogue
}
async function readAll(readable: ReadableStore): Promise<SessionCatalogue> {
  const catalogue = await start(readable)
  await catalogue.readLogs(() => Promise.resolve(true))
  return catalogue
}
const find = (catalogue: SessionCatalogue, q = '') =>
  catalogue.find({ q, sort: 'status', offset: 0, limit: 60 })
const idsOf = (catalogue: SessionCatalogue, q: string) => find(catalogue, q).sessions.map(({ id }) => id)
const listKept = async (ids: readonly string[]) =>
  (await ((await openDigests(store)) as DigestTable).read(ids)).map(({ sessionId }) => sessionId).toSorted()

async function play(session: string, prompt: string, turns: typeof eventful, options = {}): Promise<void> {
  const { agent, close } = await rehearsedAgent(store, turns, options)
  await agent.run(prompt, { session }).result
  await close()
}

it('another studio finds the digests of the first, and reads no logs', async () => {
  await play('sky', 'Which colour is the sky?', [{ text: 'Blue, mostly, and **grey** in November.' }])
  await play('pay', 'Pay the invoice of May.', eventful)
  await play('stuck', 'Wait.', [{ toolCalls: [{ name: 'poll_nothing', arguments: {} }] }])
  const { agent, close } = await rehearsedAgent(store, [{ text: 'Then green.' }])
  const fork = await agent.fork('sky', 2)
  await close()
  const first = await readAll(shown())
  const second = await start(unreadable())
  expect(find(second)).toEqual(find(first))
  expect(find(second)).toMatchObject({ unread: 0, known: 5 })
  expect(find(second).sessions.find(({ id }) => id === fork)?.forkedFrom).toEqual({
    sessionId: 'sky',
    seq: 2,
  })
  for (const [q, ids] of [
    ['GREY november', ['sky']],
    ['tool:pay', ['pay']],
    ['guard:progress.stale', ['stuck']],
    ['model:rehearsal sky', ['sky']],
  ] as const)
    expect(idsOf(second, q)).toEqual(ids)
})

it('digests that are older than their log, or of a deleted session, are ignored', async () => {
  await play('s', 'Which colour is the sky?', [{ text: 'Blue.' }])
  await readAll(shown())
  await play('s', 'And the sea?', [{ text: 'Turquoise.' }])
  const second = await start(shown())
  expect(find(second)).toMatchObject({ total: 1, unread: 1 })
  expect(idsOf(second, 'turquoise')).toEqual([])
  await second.readLogs(() => Promise.resolve(true))
  expect(idsOf(second, 'turquoise')).toEqual(['s'])
  expect(find(await start(unreadable()), 'turquoise')).toMatchObject({ total: 1, unread: 0 })

  await store.delete('s')
  expect(await listKept(['s'])).toEqual([])
})

it('logs are read if the digests are of another version, not JSON, or unavailable', async () => {
  await play('a', 'Which colour is the sky?', [{ text: 'Blue.' }])
  await play('b', 'Which colour is the sea?', [{ text: 'Blue.' }])
  const table = (await openDigests(store)) as DigestTable
  for (const [id, data] of [
    ['a', '{"version":0}'],
    ['b', 'no JSON'],
  ] as const) {
    const { head = 0, createdAt = 0 } = (await store.get(id)) ?? {}
    await table.put([{ sessionId: id, head, createdAt, data }])
  }
  expect(find(await start(shown())).unread).toBe(2)

  const away = () => Promise.reject(new Error('away'))
  for (const open of [away, () => Promise.resolve({ read: away, put: away })]) {
    const broken = offerDigests({ ...store }, open as () => Promise<DigestTable>)
    expect(find(await readAll(shown(broken)), 'blue')).toMatchObject({ total: 2, unread: 0 })
  }
  expect(find(await readAll(shown()), 'blue')).toMatchObject({ total: 2, unread: 0 })
  expect(find(await start(unreadable()), 'blue')).toMatchObject({ total: 2, unread: 0 })
})

it('no digest is stored of a damaged log, or of a session that a process is writing', async () => {
  await play('short', 'Which colour is the sky?', [{ text: 'Blue.' }])
  await damage(store, 'damaged')
  await play('held', 'Wait.', [{ text: 'Yes.' }])
  const lease = await store.acquire('held', { holder: 'a run', ttlMs: 600_000 })
  expect(find(await readAll(shown())).unread).toBe(0)
  expect(await listKept(['short', 'damaged', 'held'])).toEqual(['short'])
  expect(idsOf(await readAll(shown()), 'is:damaged')).toEqual(['damaged'])
  await store.release(lease)
})

it('no digest is stored in a store that another wraps, for example to encrypt it', async () => {
  await play('s', 'Which colour is the sky?', [{ text: 'Blue.' }])
  const wrapped = { ...store }
  expect(find(await readAll(shown(wrapped)), 'blue')).toMatchObject({ total: 1, unread: 0 })
  expect(await listKept(['s'])).toEqual([])
})

it('no digest contains withheld or redacted text', async () => {
  const key = `sk-proj-${'a1B2c3D4'.repeat(5)}`
  await play('key', `Keep ${key} for the eagle.`, [{ text: `The key is ${key}.` }])
  const blocking = defineShield({ name: 'no', check: () => ({ action: 'block' }) })
  await play('held', 'The falcon flies.', [{ text: 'Yes.' }], { shields: { input: [blocking] } })
  await readAll(shown())
  const stored = await ((await openDigests(store)) as DigestTable).read(['key', 'held'])
  expect(stored).toHaveLength(2)
  const text = JSON.stringify(stored)
  expect(text).toContain('eagle')
  expect(text).not.toContain('falcon')
  for (let from = 8; from + 8 <= key.length; from += 1) expect(text).not.toContain(key.slice(from, from + 8))
})

it('a stored title is scrubbed if only the log has one', async () => {
  const key = `sk-proj-${'a1B2c3D4'.repeat(5)}`
  await play('s', 'Which colour is the sky?', [{ text: 'Blue.' }])
  const records = await store.read('s')
  const lease = await store.acquire('opened', { holder: 'an older version', ttlMs: 600_000 })
  await store.append(lease, records.slice(0, 2))
  await store.release(lease)
  await readAll(shown())
  const table = (await openDigests(store)) as DigestTable
  const [digest] = await table.read(['opened'])
  if (!digest) throw new Error('Nothing is kept.')
  const stored = JSON.parse(digest.data) as { logSummary: object }
  const data = JSON.stringify({ ...stored, logSummary: { ...stored.logSummary, title: `The key ${key}` } })
  await table.put([{ ...digest, data }])
  const row = find(await start(unreadable())).sessions.find(({ id }) => id === 'opened')
  expect(row).toMatchObject({ title: 'The key [redacted]' })
})

it('an open studio stores digests, also with the store of its agent, and only next to the logs', async () => {
  const { agent, close } = await rehearsedAgent(store, [{ text: 'Blue.' }])
  await agent.run('Which colour is the sky?', { session: 's' }).result
  const before = await store.get('s')
  const visitor = await visit({ agent })
  let known = 0
  while (known === 0) ({ known } = await visitor.get<SessionsView>(paths.sessions))
  // It reads while no requests are active.
  const table = (await openDigests(store)) as DigestTable
  await until(() => (table.read(['s']) as LogDigest[]).length > 0)
  expect(await store.get('s')).toEqual(before)
  expect(find(await start(unreadable()), 'blue')).toMatchObject({ total: 1, unread: 0 })
  await close()
})
