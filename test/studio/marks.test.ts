import { memoryStore, type SessionStore } from '../../src/index.js'
import type { SessionsView, SessionView } from '../../src/studio/protocol.js'
import { createSessionData, withoutTexts } from '../../src/studio/export-session.js'
import { paths } from '../../src/studio/routes.js'
import { eventful, rehearsedAgent } from './rehearsed.js'
import { visit } from './visitor.js'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  await Promise.all(ends.splice(0).map((end) => end()))
})

async function open(store: SessionStore = memoryStore()) {
  const { agent, close } = await rehearsedAgent(store, eventful)
  ends.push(close)
  await agent.run('Pay the invoice.', { session: 's' }).result
  const visitor = await visit({ store, agent })
  const marks = async () => (await visitor.get<SessionView>(paths.session('s'))).session.marks
  return { store, visitor, marks }
}

it('a person marks a step, changes the mark and removes it, and the log stays unchanged', async () => {
  const { store, visitor, marks } = await open()
  const log = await store.read('s')
  const key = `sk-proj-${'a1B2c3D4'.repeat(5)}`
  expect(await visitor.post(paths.marks('s'), { seq: 5, mark: 'good' })).toMatchObject({ status: 200 })
  await visitor.post(paths.marks('s'), { seq: 3, mark: 'bad', note: `Wrong invoice: ${key}` })
  expect(await marks()).toMatchObject([
    { seq: 3, mark: 'bad', note: 'Wrong invoice: [redacted]' },
    { seq: 5, mark: 'good', note: '' },
  ])
  const { sessions } = await visitor.get<SessionsView>(paths.sessions)
  expect(sessions.find(({ id }) => id === 's')?.marks).toHaveLength(2)
  await visitor.post(paths.marks('s'), { seq: 5, mark: null })
  await visitor.post(paths.marks('s'), { seq: 3, mark: 'note', note: 'Ask Ada.' })
  expect(await marks()).toMatchObject([{ seq: 3, mark: 'note', note: 'Ask Ada.' }])
  expect(await store.read('s')).toEqual(log)
})

it('an exported file has the marks, and without texts no notes', async () => {
  const { store, visitor } = await open()
  await visitor.post(paths.marks('s'), { seq: 5, mark: 'bad', note: 'Too dear, says Ada.' })
  const data = await createSessionData(store, 's')
  expect(JSON.stringify(data)).toContain('Too dear, says Ada.')
  const bare = withoutTexts(data)
  expect(bare.session.session.marks).toMatchObject([{ seq: 5, mark: 'bad', note: '' }])
  expect(JSON.stringify(bare)).not.toContain('Too dear')
})

it.each([
  [{ mark: 'good' }, 'invalid_input', 'seq'],
  [{ seq: 0, mark: 'good' }, 'invalid_input', 'seq'],
  [{ seq: 5, mark: 'great' }, 'invalid_input', 'mark'],
  [{ seq: 5, mark: 'note', note: 'x'.repeat(2_001) }, 'invalid_input', 'note'],
  [{ seq: 5, mark: 'note', note: 'a\u0000b' }, 'invalid_input', 'note'],
  [{ seq: 5, mark: 'note', note: '\ud800' }, 'invalid_input', 'note'],
  [{ seq: 5, mark: 'good', more: 1 }, 'invalid_input', ''],
  [{ seq: 99, mark: 'good' }, 'invalid_option', 'seq'],
])('refuses %j', async (body, code, key) => {
  const { visitor, marks } = await open()
  expect(await visitor.post(paths.marks('s'), body)).toMatchObject({ status: 400, error: { code, key } })
  expect(await marks()).toEqual([])
})

it('needs the right to answer, and a store that keeps marks', async () => {
  const { store } = await open()
  const reader = await visit({ store })
  const body = { seq: 5, mark: 'good' }
  expect(await reader.post(paths.marks('s'), body)).toMatchObject({
    status: 403,
    error: { code: 'read_only' },
  })
  const bare = { ...memoryStore(), setMark: undefined }
  const { visitor } = await open(bare as unknown as SessionStore)
  expect(await visitor.post(paths.marks('s'), body)).toMatchObject({
    status: 409,
    error: { code: 'no_marks' },
  })
})
