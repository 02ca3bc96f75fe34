import { sealRecord } from '../../src/core/sessions/log/log-record.js'
import type { LogRecord, SyncSessionStore } from '../../src/core/sessions/store/store.js'
import { defineAgents, defineTool } from '../../src/index.js'
import { calls, copyOf, createPlace, type Kept, toolsModule, withProgram } from './kept.js'
import { removeFolders } from './support.js'

afterEach(removeFolders)

const agentsModule = (version: string, tools: string) => `
import { createAgent, defineAgents, openaiChat } from 'statewright'
import tools from './tools.mjs'
const model = openaiChat({ model: 'm', baseURL: 'http://127.0.0.1:1', apiKey: 'none' })
export default ({ store }) =>
  defineAgents({ post: { agent: createAgent({ model, store, tools: ${tools} }), version: '${version}' } })
`

/** A session that waits for an approval and has no agent name, and one that has ended. */
const place = (version = '2', tools = 'tools'): Promise<Kept> =>
  copyOf(`${version} ${tools}`, () => play(version, tools))

async function play(version: string, tools: string): Promise<Kept> {
  const opened = await createPlace({
    'waits.json': calls(['m', 'send_mail', { to: 'ann' }]),
    'done.json': calls(['l', 'look', { at: 'the sky' }]),
    'tools.mjs': toolsModule,
    'agents.mjs': agentsModule(version, tools),
  })
  for (const id of ['done', 'waits'])
    await opened.run(['run', '--session', id, `--rehearsal=${id}.json`, '-t', 'tools.mjs', `${id}?`])
  return opened
}

const check = ['sessions', 'check', '--agents', 'agents.mjs']

test('sessions check lists which open sessions can continue with the agents of a module', async () => {
  const { run } = await place()
  expect(await run(check)).toMatchObject({
    code: 0,
    err: '',
    out: '1 of 1 open sessions can be resumed here (1 of them with changed instructions, tools or model).\n',
  })
  const { out } = await run([...check, '--json'])
  expect(JSON.parse(out)).toMatchObject({
    session: 'waits',
    state: 'WAITING_FOR_INPUT',
    ok: true,
    verdict: 'changed',
  })
})

test('sessions check reports a call that waits for a missing tool, and exits with 1', async () => {
  const { run } = await place('2', '[]')
  const { code, out } = await run(check)
  expect(code).toBe(1)
  expect(out).toContain(
    "waits  an agent without a name  missing_tool: One of its calls is waiting for the tool 'send_mail'",
  )
  expect(out).toContain('0 of 1 open sessions can be resumed here')
})

test('sessions check reports a session that no agent accepts, and an unreadable one', async () => {
  const opened = await place()
  const { run, withStore } = opened
  const needsApproval = {
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object' },
    needsApproval: true,
  } as const
  const tools = [defineTool({ ...needsApproval, execute: () => 'paid' })]
  await withProgram(opened, [{ toolCalls: [{ name: 'pay', arguments: {} }] }], { tools }, async (agent) => {
    defineAgents({ billing: { agent, version: '3' } })
    await agent.run('Pay.', { session: 'bills' }).result
  })
  await withStore((store) => {
    const [first] = store.read('waits')
    const lease = store.acquire('bad', { holder: 'x', ttlMs: 1000 })
    if (first) store.append(lease, [{ ...first, data: '{}' }], store.get('waits')?.summary ?? undefined)
    store.release(lease)
  })
  const { code, out } = await run(check)
  expect(code).toBe(1)
  expect(out).toContain('bad  ')
  expect(out).toContain('corrupt_log: ')
  expect(out).toContain('bills  billing 3  stranded: It needs billing 3.\n')
  expect(out).toContain('1 of 3 open sessions can be resumed here')
})

test('resume does not change the session of a named agent', async () => {
  const opened = await place()
  const { run, withStore } = opened
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object' },
    needsApproval: true,
    execute: () => 'paid',
  })
  const turns = [{ toolCalls: [{ id: 'call_1', name: 'pay', arguments: {} }] }]
  await withProgram(opened, turns, { tools: [pay] }, async (agent) => {
    defineAgents({ billing: { agent, version: '3' } })
    await agent.run('Pay.', { session: 'bills' }).result
  })
  const before = await withStore((store) => store.read('bills'))
  const { err: refusal } = await run(['resume', 'bills', '--approve', 'call_1', '--rehearsal'])
  const [answer = ''] = /call_1@\w+/.exec(refusal) ?? []
  const { code, err } = await run(['resume', 'bills', '--approve', answer, '--rehearsal'])
  expect(err).toContain("Session 'bills' needs billing 3, but this process has an agent without a name.")
  expect(code).toBe(2)
  expect(await withStore((store) => store.read('bills'))).toEqual(before)
})

test('sessions check --spec checks the log of every session, including ended ones, and needs no agents', async () => {
  const { run } = await place()
  expect(await run(['sessions', 'check', '--spec'])).toMatchObject({
    code: 0,
    err: '',
    out: '2 of 2 sessions have a valid log.\n',
  })
  const { out } = await run(['sessions', 'check', '--spec', '--json'])
  const lines = out.trim().split('\n')
  expect(lines.map((line) => JSON.parse(line) as object)).toEqual(
    expect.arrayContaining([
      { session: 'done', ok: true },
      { session: 'waits', ok: true },
    ]),
  )
})

test('sessions check --spec names the record of a forged log that breaks a rule, and a damaged log', async () => {
  const { run, withStore } = await place()
  await withStore((store) => {
    // Removes the answer to the call. Renumbers the later records and updates their checksums.
    const rest = store.read('done').filter(({ data }) => !data.includes('TOOL_RESULT'))
    forge(
      store,
      'forged',
      rest.map(({ at, type, data }, i) => sealRecord(i + 1, at, { type, ...JSON.parse(data) })),
    )
    forge(
      store,
      'bad',
      store.read('done').map((record) => ({ ...record, data: '{}' })),
    )
    forge(
      store,
      'torn',
      store.read('done').map((record) => (record.seq === 3 ? { ...record, data: '{}' } : record)),
    )
  })
  const { code, out } = await run(['sessions', 'check', '--spec'])
  expect(code).toBe(1)
  expect(out).toContain(
    "forged  record 4 breaks 'request': xstate.done.actor.model happens while the run is in executing. " +
      'The model answers, or fails, only where a request is under way: after no limit, pause or stop.\n',
  )
  expect(out).toContain("bad  corrupt_log: The log of session 'bad': record 1 is damaged.")
  expect(out).toMatch(/^torn .* statewright sessions fork torn --at 2 continues from there/m)
  expect(out).toContain('2 of 5 sessions have a valid log.\n')
})

function forge(store: SyncSessionStore, id: string, records: LogRecord[]): void {
  const lease = store.acquire(id, { holder: 'x', ttlMs: 1000 })
  store.append(lease, records, store.get('done')?.summary ?? undefined)
  store.release(lease)
}

test('sessions check --spec accepts no agents', async () => {
  const { run } = await place()
  expect(await run([...check, '--spec'])).toMatchObject({
    code: 2,
    err: expect.stringContaining('--spec and --agents cannot be combined') as string,
  })
})

test('sessions check requires a module of agents', async () => {
  const { run } = await place()
  expect(await run(['sessions', 'check'])).toMatchObject({
    code: 2,
    err: expect.stringContaining('--agents MODULE') as string,
  })
  expect(await run(['sessions', 'check', '--agents', 'tools.mjs'])).toMatchObject({
    code: 2,
    err: expect.stringContaining('defineAgents') as string,
  })
  expect(await run(['sessions', 'check', 'waits', '--agents', 'agents.mjs'])).toMatchObject({ code: 2 })
})
