import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createAgent, memoryStore, type SessionOwner, StoreError } from '../../src/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import { record as createRecord, summary as createSummary } from '../../src/testing/store/store-scene.js'
import { makeFolder, removeFolder } from '../stores/folder.js'
import { distant } from '../support/distant.js'
import { ManualModel } from '../support/manual-model.js'
import { latch, stage, until } from '../support/play.js'
import { ask, research } from '../support/sub-agents.js'
import { call, text, tool } from '../support/tools.js'

const folders: string[] = []
const opened: SyncSessionStore[] = []

afterEach(() => {
  for (const store of opened.splice(0)) store.close()
  for (const folder of folders.splice(0)) removeFolder(folder)
})

function inFolder(): SyncSessionStore {
  const dir = makeFolder()
  folders.push(dir)
  const store = fileStore({ dir })
  opened.push(store)
  return store
}

const agentOf = (store: Parameters<typeof distant>[0]) => createAgent({ model: new ManualModel(), store })

const idsIn = (store: SyncSessionStore): string[] =>
  store
    .list({ children: true })
    .map(({ id }) => id)
    .sort()

function write(store: SyncSessionStore, id: string, more: object = {}): void {
  const lease = store.acquire(id, { holder: 'the test', ttlMs: 60_000 })
  store.append(lease, [createRecord(1)], { ...createSummary(id), ...more })
  store.release(lease)
}

describe.each([
  ['memory', () => memoryStore()],
  ['a folder', inFolder],
])('the sessions of an owner in %s', (_, createStore) => {
  it('are deleted by prefix, page by page, without those of others', async () => {
    const near = createStore()
    for (let n = 0; n < 250; n += 1) write(near, `ann:${n}`)
    const others = ['ann', 'anna:1', 'Ann:1', 'bo:ann:1', 'an:n']
    for (const id of others) write(near, id)
    write(near, 'ann:gone:run.1.1', { parent: 'ann:gone' })
    expect(await agentOf(distant(near)).deleteSessions({ prefix: 'ann' })).toBe(251)
    expect(idsIn(near)).toEqual(others.sort())
    expect(await agentOf(near).deleteSessions({ prefix: 'ann' })).toBe(0)
  })

  it.each([
    ['inherits its prefix', () => Object.create({ prefix: 'ann' }) as SessionOwner],
    [
      'has its prefix from a getter',
      () =>
        new (class {
          get prefix(): string {
            return 'ann'
          }
        })(),
    ],
    ['inherits its tags', () => Object.create({ tags: { user: 'ann' } }) as SessionOwner],
    ['hides its prefix', () => Object.defineProperty({}, 'prefix', { value: 'ann' }) as SessionOwner],
  ])('are exactly the deleted ones if the owner %s', async (__, owner) => {
    const near = createStore()
    write(near, 'ann:1', { tags: { user: 'ann' } })
    write(near, 'bo:1', { tags: { user: 'bo' } })
    expect(await agentOf(near).deleteSessions(owner())).toBe(1)
    expect(idsIn(near)).toEqual(['bo:1'])
  })

  it('are exactly the deleted ones if the owner changes during the deletion', async () => {
    const near = createStore()
    for (let n = 0; n < 101; n += 1) write(near, `ann:${n}`)
    write(near, 'bo:1')
    const owner = { prefix: 'ann' }
    const store: typeof near = {
      ...near,
      list: (options) => {
        owner.prefix = 'bo'
        return near.list(options)
      },
    }
    await agentOf(store).deleteSessions(owner)
    expect(idsIn(near)).toEqual(['bo:1'])
  })

  it('are deleted by tags: chats, forks, sub-agents at every depth, messages and tags', async () => {
    const near = createStore()
    const lowest = await stage([text('Seen.')])
    const middle = await stage([ask('Deeper.'), text('Found.')], { tools: [research(lowest)] })
    const top = await stage([ask(), text('Done.'), text('Other.')], {
      store: near,
      tools: [research(middle)],
    })
    await top.run('Go.', { session: 'c1', tags: { user: 'ann', shop: 'north' } }).run.result
    await top.run('Go.', { session: 'c2', tags: { user: 'bo', shop: 'north' } }).run.result
    const fork = await top.agent.fork('c1', 2)
    for (const id of ['c1', fork]) near.inbox.put(id, '{"type":"CANCEL"}')
    expect(idsIn(near)).toHaveLength(5)
    expect(await top.agent.deleteSessions({ tags: { user: 'ann', shop: 'north' } })).toBe(4)
    expect(idsIn(near)).toEqual(['c2'])
    expect(near.list({ tags: { shop: 'north' } }).map(({ id }) => id)).toEqual(['c2'])
    expect(near.inbox.listUnread?.()).toEqual([])
  })

  it('are cancelled first if they are active in any process, and write nothing more', async () => {
    const near = createStore()
    const gate = latch()
    const look = tool('look', () => gate.opened)
    const theatre = await stage([call('look'), text('Done.')], { store: near, tools: [look] })
    const { run } = theatre.run('Go.', { session: 'ann:1' })
    await until(() => look.inputs.length === 1)
    const deleting = agentOf(near).deleteSessions({ prefix: 'ann' })
    expect((await run.result).state).toBe('CANCELLED')
    gate.open()
    expect(await deleting).toBe(1)
    await run.result
    expect(idsIn(near)).toEqual([])
  })

  it('are cancelled again if the person writes during the deletion', async () => {
    const near = createStore()
    const theatre = await stage([call('look'), call('look')], {
      store: near,
      tools: [tool('look', () => latch().opened)],
    })
    const first = theatre.run('Go.', { session: 'ann:1' }).run
    await until(() => first.state === 'WAITING_FOR_TOOL')
    const deleting = agentOf(near).deleteSessions({ prefix: 'ann' })
    expect((await first.result).state).toBe('CANCELLED')
    const second = theatre.run('Go on.', { session: 'ann:1' }).run
    expect((await second.result).state).toBe('CANCELLED')
    expect(await deleting).toBe(1)
    expect(idsIn(near)).toEqual([])
  })

  it('are deleted by a repeated call after a store failure', async () => {
    const near = createStore()
    for (let n = 0; n < 20; n += 1) write(near, `ann:${n}`)
    const { delete: remove } = near
    let left = 7
    near.delete = (id) => {
      if ((left -= 1) < 0) throw new StoreError('store_unavailable', 'Away.')
      return remove(id)
    }
    await expect(agentOf(near).deleteSessions({ prefix: 'ann' })).rejects.toMatchObject({
      code: 'store_unavailable',
      retryable: true,
    })
    expect(idsIn(near)).toHaveLength(13)
    left = 100
    expect(await agentOf(near).deleteSessions({ prefix: 'ann' })).toBe(13)
  })

  it('are exactly the deleted ones, regardless of the list of a custom store', async () => {
    const near = createStore()
    for (const id of ['ann:1', 'bo:1']) write(near, id)
    const { list } = near
    near.list = () => list({ children: true })
    expect(await agentOf(near).deleteSessions({ prefix: 'ann' })).toBe(1)
    expect(idsIn(near)).toEqual(['bo:1'])
  })
})

it('no text remains in the files of a folder', async () => {
  const dir = makeFolder()
  folders.push(dir)
  const near = fileStore({ dir })
  opened.push(near)
  const secret = 'CANARY-7f3a'
  const long = `${secret} ${'and much more to say about it '.repeat(2_000)} ${secret}`
  const theatre = await stage([text(`${secret} is what you said.`), text('Hello.')], { store: near })
  await theatre.run(long, { session: 'ann:1', tags: { user: `${secret} Ann` } }).run.result
  await theatre.run('Hello.', { session: 'bo:1' }).run.result
  near.inbox.put('ann:1', JSON.stringify({ type: 'STEER', text: secret }))
  const found = () => readdirSync(dir).filter((file) => readFileSync(join(dir, file)).includes(secret)).length
  expect(found()).toBeGreaterThan(0)
  expect(await theatre.agent.deleteSessions({ prefix: 'ann' })).toBe(1)
  expect(found()).toBe(0)
  expect(near.get('bo:1')?.summary?.title).toBe('Hello.')

  await theatre.agent.fork('bo:1')
  write(near, 'ann:2', { title: secret })
  expect(found()).toBeGreaterThan(0)
  expect(await theatre.agent.deleteSession('ann:2')).toBe(true)
  expect(found()).toBe(0)
})

it.each([
  ['nothing', undefined],
  ['null', null],
  ['an owner without a name', {}],
  ['a missing prefix', { prefix: undefined }],
  ['an empty prefix', { prefix: '' }],
  ['a prefix with its colon', { prefix: 'ann:' }],
  ['no tags', { tags: {} }],
  ['tags without a value', { tags: { user: undefined } }],
  ['a prefix, and missing tags', { prefix: 'ann', tags: undefined }],
  ['an unknown option', { prefix: 'ann', state: 'PAUSED' }],
])('%s is refused, and nothing is deleted', async (_, owner) => {
  const store = memoryStore()
  for (const id of ['ann:1', 'bo:1']) write(store, id)
  await expect(agentOf(store).deleteSessions(owner as unknown as SessionOwner)).rejects.toMatchObject({
    code: 'invalid_option',
  })
  expect(idsIn(store)).toEqual(['ann:1', 'bo:1'])
})

it('an agent without a store cannot delete owners', async () => {
  await expect(
    createAgent({ model: new ManualModel() }).deleteSessions({ prefix: 'ann' }),
  ).rejects.toMatchObject({ code: 'no_store' })
})
