import { createAgent, runSession, memoryStore, listStrandedSessions, defineAgents } from '../../src/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import { sendAll } from '../../src/fleet/index.js'
import { chatHandler } from '../../src/ui/index.js'
import { makeFolder, removeFolder } from '../stores/folder.js'
import { distant } from '../support/distant.js'
import { call as asks, ManualModel } from '../support/manual-model.js'
import { latch, type Stage, stage, until } from '../support/play.js'
import { ask, research } from '../support/sub-agents.js'
import { text, tool } from '../support/tools.js'

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

/** An agent with a nested sub-agent that calls this tool. */
async function threeDeep(store: Parameters<typeof distant>[0], look = tool('look')): Promise<Stage> {
  const lowest = await stage([{ toolCalls: [{ name: 'look', arguments: {} }] }, text('Seen.')], {
    tools: [look],
  })
  const middle = await stage([ask('Deeper.'), text('Found.')], { tools: [research(lowest)] })
  return stage([ask(), text('Done.'), text('Again.')], { store, tools: [research(middle)] })
}

const idsIn = (store: SyncSessionStore): string[] => store.list({ children: true }).map(({ id }) => id)

describe.each([
  ['memory', () => memoryStore()],
  ['a folder', inFolder],
])('a deleted session in %s', (_, createStore) => {
  it('takes the sessions of its sub-agents with it, at every depth, and no others', async () => {
    const near = createStore()
    const top = await threeDeep(distant(near))
    await top.run('Go.', { session: 'ann' }).run.result
    const other = await threeDeep(near)
    await other.run('Go.', { session: 'annie' }).run.result
    const own = idsIn(near).filter((id) => id === 'ann' || id.startsWith('ann:'))
    expect([own.length, near.list({ children: true }).length]).toEqual([3, 6])
    for (const id of own) near.inbox?.put(id, '{"type":"CANCEL"}')
    expect(await top.agent.deleteSession('ann')).toBe(true)
    expect(idsIn(near).every((id) => id.startsWith('annie'))).toBe(true)
    expect(near.list({ children: true })).toHaveLength(3)
    expect(own.flatMap((id) => near.inbox?.read(id) ?? [])).toEqual([])
    expect(own.flatMap((id) => near.read(id))).toEqual([])
    expect(await top.agent.deleteSession('ann')).toBe(false)
  })

  it('stays with its sub-agents while a run uses it', async () => {
    const gate = latch()
    const look = tool('look', () => gate.opened)
    const near = createStore()
    const top = await threeDeep(near, look)
    const { run } = top.run('Go.', { session: 'ann' })
    await until(() => look.inputs.length === 1)
    const before = near.list({ children: true }).map(({ id, head }) => `${id} ${head}`)
    await expect(top.agent.deleteSession('ann')).rejects.toMatchObject({ code: 'session_busy' })
    expect(near.list({ children: true }).map(({ id, head }) => `${id} ${head}`)).toEqual(before)
    await top.agent.send('ann', { type: 'cancel' })
    gate.open()
    await run.result
    await until(() => near.list({ children: true }).every(({ holder }) => holder === null))
    expect(await top.agent.deleteSession('ann')).toBe(true)
    expect(near.list({ children: true })).toEqual([])
  })
})

it('a damaged log is deleted with the sub-agents that it still names', async () => {
  const near = memoryStore()
  const top = await threeDeep(near)
  await top.run('Go.', { session: 'ann' }).run.result
  const { read } = near
  near.read = (id, range) =>
    read(id, range).map((record) => (id === 'ann' && record.seq === 9 ? { ...record, data: '{' } : record))
  expect(near.list({ children: true })).toHaveLength(3)
  expect(await top.agent.deleteSession('ann')).toBe(true)
  expect(near.list({ children: true })).toEqual([])
})

describe.each([
  ['is damaged', false],
  ['and its first record are damaged', true],
])('a session whose stored summary %s', (_, isLogDamaged) => {
  const damage = (near: SyncSessionStore, isDamaged: (id: string) => boolean): SyncSessionStore => {
    const blind = <Entry extends { id: string }>(entry: Entry): Entry =>
      isDamaged(entry.id) ? { ...entry, summary: null } : entry
    const { get, list, read } = near
    return Object.assign(near, {
      get: (id: string) => {
        const entry = get(id)
        return entry && blind(entry)
      },
      list: (options: Parameters<typeof list>[0]) => list(options).map(blind),
      read: (id: string, range: Parameters<typeof read>[1]) =>
        read(id, range).map((record) =>
          isLogDamaged && isDamaged(id) && record.seq === 1 ? { ...record, data: '{' } : record,
        ),
    })
  }

  it('is deleted with its parent, and takes its own sub-agents with it', async () => {
    const near = memoryStore()
    await (await threeDeep(near)).run('Go.', { session: 'ann' }).run.result
    const top = await threeDeep(damage(near, (id) => id.split(':').length === 2))
    expect(near.list({ children: true }).filter(({ summary }) => summary === null)).toHaveLength(1)
    expect(await top.agent.deleteSession('ann')).toBe(true)
    expect(near.list({ children: true })).toEqual([])
  })

  if (!isLogDamaged)
    it('is deleted and cancelled by its tags, and no other session is', async () => {
      const near = memoryStore()
      const first = await threeDeep(near)
      for (const user of ['ann', 'bob']) await first.run('Go.', { session: user, tags: { user } }).run.result
      const store = damage(near, (id) => !id.includes(':'))
      const sent = await sendAll(store, { tags: { user: 'ann' }, state: 'COMPLETED' }, { type: 'cancel' })
      expect(sent).toMatchObject({ sessions: 1, ended: 1 })
      expect(await (await threeDeep(store)).agent.deleteSessions({ tags: { user: 'ann' } })).toBe(3)
      expect(near.list().map(({ id }) => id)).toEqual(['bob'])
    })
})

it("the id of a sub-agent's session starts with the id of its parent, unless it is too long", async () => {
  const near = memoryStore()
  const top = await threeDeep(near)
  const long = 'a'.repeat(195)
  await top.run('Go.', { session: long }).run.result
  expect(near.list({ children: true })).toHaveLength(3)
  const again = await threeDeep(near)
  await again.run('Go.', { session: 'ann' }).run.result
  const own = idsIn(near).filter((id) => id.startsWith('ann'))
  expect(own.toSorted((a, b) => a.length - b.length)).toEqual([
    'ann',
    expect.stringMatching(/^ann:[0-9a-f]{12}\.\d+\.1$/),
    expect.stringMatching(/^ann:[0-9a-f]{12}\.\d+\.1:[0-9a-f]{12}\.\d+\.1$/),
  ])
  expect(await again.agent.deleteSession(long)).toBe(true)
  expect(near.list({ children: true })).toHaveLength(3)
})

it('the session of a sub-agent continues only with its parent run', async () => {
  const store = memoryStore()
  const gate = latch()
  const look = tool('look', () => gate.opened, { readOnly: true })
  const child = await stage([{ toolCalls: [{ name: 'look', arguments: {} }] }, text('Seen.')], {
    tools: [look],
  })
  const model = new ManualModel()
  const agent = createAgent({ model, store, tools: [research(child)] })
  const agents = defineAgents({ lead: agent })
  const stop = new AbortController()
  const driving = runSession(agents, { session: 'ann', input: 'Go.', signal: stop.signal })
  await until(() => model.pending !== null)
  model.pending?.answer({ toolCalls: [asks('a', 'research', { task: 'Look.' })], finishReason: 'tool_calls' })
  await until(() => look.inputs.length === 1)
  stop.abort()
  await driving
  const below = idsIn(store).find((id) => id.startsWith('ann:')) as string
  const before = store.read(below).length
  await expect(agent.resume(below)).rejects.toMatchObject({ code: 'stranded' })
  await expect(runSession(agents, { session: below })).rejects.toThrow(
    'belongs to sub-agent research, which another run or a machine has called',
  )
  expect(await listStrandedSessions(agents, store)).toEqual([])
  // Pages supply chat names, and a chat name cannot contain a colon.
  const handler = chatHandler({ agent, authorize: 'none' })
  const page = await handler(new Request(`http://chat.test/api/chat/${encodeURIComponent(below)}/stream`))
  expect(page.status).toBe(400)
  expect([store.read(below).length, model.attempts.length, child.requests.length]).toEqual([before, 1, 1])
  gate.open()
})
