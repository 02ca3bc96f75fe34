import { type Agent, createAgent, memoryStore, type RunOptions, runSession } from '../../src/index.js'
import { aguiHandler } from '../../src/agui/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import { type Authorize, chatHandler } from '../../src/ui/index.js'
import { makeFolder, removeFolder } from '../stores/folder.js'
import { distant } from '../support/distant.js'
import { ManualModel } from '../support/manual-model.js'
import { stage, until } from '../support/play.js'
import { ask, research } from '../support/sub-agents.js'
import { call, text, tool } from '../support/tools.js'

const user = { user: "Ann O'Hara; --", 'plan "x"': '専門' }

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

const idsIn = (store: SyncSessionStore, options: Parameters<SyncSessionStore['list']>[0] = {}) =>
  store
    .list(options)
    .map(({ id }) => id)
    .sort()

describe.each([
  ['memory', () => memoryStore()],
  ['a folder', inFolder],
])('the tags of a session in %s', (_, createStore) => {
  it('are set by its first run, stored by the first write, and kept by later runs and forks', async () => {
    const near = createStore()
    const { append } = near
    const summaries: unknown[] = []
    near.append = (lease, records, summary, options) => {
      summaries.push(summary?.tags)
      return append(lease, records, summary, options)
    }
    const theatre = await stage([text('One.'), text('Two.'), text('Three.')], { store: distant(near) })
    await theatre.run('Go.', { session: 'ann', tags: user }).run.result
    expect(summaries[0]).toEqual(user)
    await theatre.run('On.', { session: 'ann' }).run.result
    expect(near.get('ann')?.summary?.tags).toEqual(user)
    await theatre.run('And on.', { session: 'ann', tags: { user: 'Bo', team: 'red' } }).run.result
    const both = { ...user, user: 'Bo', team: 'red' }
    expect(near.get('ann')?.summary?.tags).toEqual(both)
    expect(idsIn(near, { tags: both })).toEqual(['ann'])
    expect(idsIn(near, { tags: user })).toEqual([])

    const whole = await theatre.agent.fork('ann')
    const fromFirst = await theatre.agent.fork('ann', 2)
    const edited = await theatre.agent.fork('ann', 2, { edit: { message: 'm1', content: 'Else.' } })
    expect(idsIn(near, { tags: both })).toEqual(['ann', whole].sort())
    expect(idsIn(near, { tags: user })).toEqual([fromFirst, edited].sort())
  })

  it('are kept by a log that is read from its last snapshot', async () => {
    const near = createStore()
    const long = 'word '.repeat(20_000)
    const theatre = await stage([text(long), text('Two.')], { store: near })
    await theatre.run(long, { session: 'ann', tags: user }).run.result
    expect(near.read('ann', { from: 'snapshot' })[0]?.type).toBe('snapshot')
    await theatre.run('On.', { session: 'ann' }).run.result
    expect(near.get('ann')?.summary?.tags).toEqual(user)
  })

  it('are set by runSession, for the run that its input starts', async () => {
    const near = createStore()
    const theatre = await stage([text('One.'), text('Two.')], { store: near })
    await runSession(theatre.agent, { session: 'job', input: 'Go.', tags: { order: '17' } })
    await runSession(theatre.agent, { session: 'job', tags: { order: '18' } })
    expect(idsIn(near, { tags: { order: '17' } })).toEqual(['job'])
    await runSession(theatre.agent, { session: 'job', turn: 2, input: 'On.', tags: { order: '18' } })
    expect(idsIn(near, { tags: { order: '18' } })).toEqual(['job'])
    await expect(
      runSession(theatre.agent, { session: 'job', tags: { order: 17 } as never }),
    ).rejects.toMatchObject({ code: 'invalid_option', subject: 'tags' })
  })

  it('do not apply to sub-agents, whose sessions have a parent and appear in no list', async () => {
    const near = createStore()
    const look = tool('look', () => 'seen', { needsApproval: true })
    const lowest = await stage([call('look'), text('Seen.')], { tools: [look] })
    const middle = await stage([ask('Deeper.'), text('Found.')], { tools: [research(lowest)] })
    const top = await stage([ask(), text('Done.')], { store: near, tools: [research(middle)] })
    const { run } = top.run('Go.', { session: 'ann:1', tags: user })
    await until(() => run.state === 'WAITING_FOR_INPUT')
    await until(() => near.list({ children: true }).every(({ holder }) => holder === null))
    const fork = await top.agent.fork('ann:1')
    expect(idsIn(near)).toEqual(['ann:1', fork].sort())
    for (const root of ['ann:1', fork]) {
      const [child = ''] = idsIn(near, { parent: root })
      expect(child.startsWith(`${root}:`)).toBe(true)
      const [grandchild = '', ...more] = idsIn(near, { parent: child })
      expect([grandchild.startsWith(`${child}:`), more]).toEqual([true, []])
    }
    expect(idsIn(near, { tags: user, children: true })).toEqual(['ann:1', fork].sort())
    expect(idsIn(near, { prefix: 'ann' })).toEqual(['ann:1'])
    expect(idsIn(near, { prefix: 'ann', children: true })).toHaveLength(3)
    await top.agent.send('ann:1', { type: 'cancel' })
  })
})

describe.each([
  [
    'useChat',
    (agent: Agent, authorize: Authorize) => chatHandler({ agent, authorize, path: '/' }),
    { id: 'c1', messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Go.' }] }] },
  ],
  [
    'AG-UI',
    (agent: Agent, authorize: Authorize) => aguiHandler({ agent, authorize, path: '/' }),
    { threadId: 'c1', runId: 'r1', messages: [{ id: 'm', role: 'user', content: 'Go.' }] },
  ],
])('authorize returns the tags of chats, over %s', (_, serve, body) => {
  const post = () =>
    new Request('http://chat.test/', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })

  it('which apply to the sessions that its request starts', async () => {
    const store = memoryStore()
    const { agent } = await stage([text('Hello.')], { store })
    await (await serve(agent, () => ({ prefix: 'ann', tags: user }))(post())).text()
    expect(idsIn(store, { tags: user, prefix: 'ann' })).toEqual(['ann:c1'])
  })

  it('and invalid tags are reported as its error', async () => {
    const { agent } = await stage([text('Hello.')], { store: memoryStore() })
    const response = await serve(agent, () => ({ prefix: 'ann', tags: { user: 7 } as never }))(post())
    expect([response.status, await response.json()]).toMatchObject([
      500,
      { error: { code: 'authorize_failed' } },
    ])
  })
})

describe('tags are refused', () => {
  const agent = createAgent({ model: new ManualModel(), store: memoryStore() })
  const many = (count: number, from = 0) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`t${from + n}`, 'x']))

  it.each([
    ['as a string', 'ann', /must be an object with string values/],
    ['as a list', ['ann'], /must be an object with string values/],
    ['as a map', new Map([['user', 'ann']]), /must be an object with string values/],
    ['as null', null, /must be an object with string values/],
    ['with a number', { user: 7 }, /invalid value for "user"/],
    ['with an undefined value', { user: undefined }, /invalid value for "user"/],
    ['with an empty value', { user: '' }, /invalid value/],
    ['with an empty name', { '': 'ann' }, /name ""/],
    ['with NUL', { user: 'a\0' }, /invalid value/],
    ['with half a character', { ['\uDC00']: 'a' }, /name/],
    ['with a long value', { user: 'x'.repeat(201) }, /1 to 200/],
    ['with a long name', { ['x'.repeat(65)]: 'a' }, /1 to 64/],
    ['if there are too many', many(21), /the maximum is 20/],
  ])('%s', async (_, tags, sentence) => {
    const store = memoryStore()
    const agent = createAgent({ model: new ManualModel(), store })
    const { result } = agent.run('Go.', { tags } as unknown as RunOptions)
    await expect(result).rejects.toMatchObject({
      code: 'invalid_option',
      subject: 'tags',
      message: expect.stringMatching(sentence),
    })
    expect(store.list()).toEqual([])
  })

  it('if they exceed the maximum together with existing tags', async () => {
    const theatre = await stage([text('One.')], { store: memoryStore() })
    await theatre.run('Go.', { session: 's', tags: many(15) }).run.result
    const second = theatre.agent.run('On.', { session: 's', tags: many(15, 10) })
    await expect(second.result).rejects.toMatchObject({ code: 'invalid_option', subject: 'tags' })
    expect((await theatre.agent.replay('s')).run?.state).toBe('COMPLETED')
  })

  it('without a store, and for a custom actor', () => {
    const bare = createAgent({ model: new ManualModel() })
    expect(() => bare.run('Go.', { tags: user })).toThrow(/Pass a store to the agent/)
    expect(() => agent.createInput('Go.', { tags: user } as never)).toThrow(/Pass a store to the agent/)
  })
})
