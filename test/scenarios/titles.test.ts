import fc from 'fast-check'
import { createAgent, createSession, memoryStore } from '../../src/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import type { SessionStore, SyncSessionStore } from '../../src/stores/index.js'
import { makeFolder, removeFolder } from '../stores/folder.js'
import { distant } from '../support/distant.js'
import { ManualModel } from '../support/manual-model.js'
import { stage, until } from '../support/play.js'
import { text } from '../support/tools.js'

const folders: string[] = []
const opened: SyncSessionStore[] = []

afterEach(() => {
  for (const store of opened.splice(0)) store.close()
  for (const folder of folders.splice(0)) removeFolder(folder)
})

function openIn(dir: string): SyncSessionStore {
  const store = fileStore({ dir })
  opened.push(store)
  return store
}

function inFolder(): SyncSessionStore {
  const dir = makeFolder()
  folders.push(dir)
  return openIn(dir)
}

const titleOf = (store: SyncSessionStore, id: string) => store.get(id)?.summary?.title

describe.each([
  ['memory', () => memoryStore()],
  ['a folder', inFolder],
])('the title of a session in %s', (_, createStore) => {
  it('is the first message until rename sets one, which survives later runs and restarts until it is removed', async () => {
    const near = createStore()
    const store = distant(near)
    const theatre = await stage([text('One.'), text('Two.'), text('Three.')], { store })
    await theatre.run('Where is my parcel?', { session: 's' }).run.result
    expect(titleOf(near, 's')).toBe('Where is my parcel?')
    await theatre.agent.rename('s', '  The parcel\n from   Lisbon ')
    expect(titleOf(near, 's')).toBe('The parcel from Lisbon')
    const before = near.get('s')
    await theatre.run('And now?', { session: 's' }).run.result
    expect(near.list().map(({ summary }) => summary?.title)).toEqual(['The parcel from Lisbon'])
    expect(before?.head).toBeLessThan(near.get('s')?.head ?? 0)
    await theatre.agent.rename('s', null)
    expect(titleOf(near, 's')).toBe('Where is my parcel?')
    await theatre.agent.rename('s', 'Once more')
    expect(await theatre.agent.deleteSession('s')).toBe(true)
    await theatre.run('Hello.', { session: 's' }).run.result
    expect(titleOf(near, 's')).toBe('Hello.')
  })

  it('is the session’s name until it is renamed', async () => {
    const near = createStore()
    const theatre = await stage([text('One.')], { store: near })
    const session = createSession('May')
    await theatre.run('Pay the invoices.', { session }).run.result
    expect(titleOf(near, session.id)).toBe('May')
    await theatre.agent.rename(session.id, 'June')
    expect(near.get(session.id)?.summary).toMatchObject({ name: 'May', title: 'June' })
  })

  it('can be set while a run works on the session, and the run keeps its lease', async () => {
    const near = createStore()
    const model = new ManualModel()
    const agent = createAgent({ model, store: near })
    const run = agent.run('Go.', { session: 's' })
    await until(() => Boolean(model.pending))
    const { head, updatedAt } = near.get('s') ?? {}
    await agent.rename('s', 'At work')
    expect(near.get('s')).toMatchObject({ head, updatedAt, summary: { title: 'At work', state: 'RUNNING' } })
    model.pending?.answer({ text: 'Done.' })
    expect(await run.result).toMatchObject({ state: 'COMPLETED' })
    expect(titleOf(near, 's')).toBe('At work')
  })

  it('is not copied to a fork', async () => {
    const near = createStore()
    const theatre = await stage([text('One.')], { store: near })
    await theatre.run('Go.', { session: 's' }).run.result
    await theatre.agent.rename('s', 'Given')
    expect(titleOf(near, await theatre.agent.fork('s'))).toBe('Go.')
  })

  it('can be any text of one line', async () => {
    const near = createStore()
    const theatre = await stage([text('One.')], { store: near })
    await theatre.run('Go.', { session: 's' }).run.result
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme', maxLength: 220 }), async (input) => {
        const line = input.replaceAll(/\s+/g, ' ').trim()
        const before = titleOf(near, 's')
        const isPossible = line.length >= 1 && line.length <= 200 && !/[\p{Cc}\p{Cs}]/u.test(line)
        const outcome = await theatre.agent.rename('s', input).then(
          () => 'renamed',
          ({ code }: { code: string }) => code,
        )
        expect(outcome).toBe(isPossible ? 'renamed' : 'invalid_option')
        expect(titleOf(near, 's')).toBe(isPossible ? line : before)
      }),
    )
  })
})

it('is stored in the folder for every process', async () => {
  const dir = makeFolder()
  folders.push(dir)
  const [one, other] = [openIn(dir), openIn(dir)]
  const theatre = await stage([text('One.')], { store: one })
  await theatre.run('Go.', { session: 's' }).run.result
  await theatre.agent.rename('s', 'Seen everywhere')
  expect(titleOf(other, 's')).toBe('Seen everywhere')
})

it.each([
  [undefined, 'is missing'],
  [7, 'is of type number'],
  ['  \n ', 'is empty'],
  ['x'.repeat(201), 'has 201'],
  ['bell \u0007', 'has a control character'],
])('%j is refused as a title, with a description of a valid one', async (title, words) => {
  const theatre = await stage([text('One.')], { store: memoryStore() })
  await theatre.run('Go.', { session: 's' }).run.result
  await expect(theatre.agent.rename('s', title as never)).rejects.toMatchObject({
    code: 'invalid_option',
    subject: 'title',
    message: expect.stringMatching(
      new RegExp(`1 to 200 characters, or null for the default, but this one ${words}`),
    ) as string,
  })
})

it('needs a session, and a store that supports titles', async () => {
  const model = new ManualModel()
  const store = memoryStore()
  await expect(createAgent({ model, store }).rename('nobody', 'T')).rejects.toMatchObject({
    code: 'unknown_session',
  })
  await expect(createAgent({ model }).rename('s', 'T')).rejects.toMatchObject({ code: 'no_store' })
  const plain: SessionStore = { ...store, setTitle: undefined as never }
  await expect(createAgent({ model, store: plain }).rename('s', 'T')).rejects.toMatchObject({
    code: 'no_titles',
    message: expect.stringContaining('setTitle(id, title)') as string,
  })
})
