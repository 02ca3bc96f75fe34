import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fromPromise, setup } from 'xstate'
import { durable } from '../../src/durable/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import { claimMachine } from '../durable/claim.js'
import { createAgent, type LogRecord } from '../../src/index.js'
import { forged } from '../support/damaged-logs.js'
import { call, ManualModel, settled } from '../support/manual-model.js'
import { faults } from '../support/record-faults.js'
import { tool } from '../support/tools.js'
import { cli } from './support.js'

let dir: string

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'statewright-machine-'))
  const store = fileStore({ dir })
  const pay = fromPromise<string, { amount: number; claim: string }>(async () => 'p1')
  const claims = durable(claimMachine, { store, actors: { pay } })
  for (const id of ['claim-17', 'claim-18']) {
    await claims.start(id, { input: { amount: 900 } })
    await claims.settled(id)
  }
  await claims.send('claim-18', { type: 'APPROVE', by: 'ann' })
  await claims.settled('claim-18')
  store.close()
})
afterAll(() => rm(dir, { recursive: true, force: true }))

const run = (...args: string[]) => cli([...args, '--store', `file:${dir}`])

test('sessions list shows the states of machines', async () => {
  const { code, out } = await run('sessions', 'list')
  expect(code).toBe(0)
  expect(out).toMatch(/^claim-18 +paid +just now/m)
  expect(out).toMatch(/^claim-17 +reviewing until \d{4}-\d{2}-\d{2} /m)
  const [row] = (await run('sessions', 'list', '--json')).out.split('\n')
  expect(JSON.parse(row ?? '')).toMatchObject({ id: 'claim-18', state: 'paid', agent: 'machine claim' })
})

test('sessions show shows the state, the context and the records of a machine', async () => {
  const { out } = await run('sessions', 'show', 'claim-18')
  expect(out).toMatch(/^Session claim-18/)
  for (const line of [
    /machine +claim$/m,
    /state +paid \(done\)$/m,
    /context +\{"amount":900,/m,
    /record +3 of 3$/m,
  ])
    expect(out).toMatch(line)
  const before = (await run('sessions', 'show', 'claim-18', '--at', '2')).out
  expect(before).toMatch(/state +paying$/m)
  expect(before).toMatch(/runs +pay, since record 2$/m)
  expect((await run('sessions', 'show', 'claim-17')).out).toMatch(
    /waits +xstate\.after\.expiry\.claim\.reviewing at \d{4}/,
  )
  const events = (await run('sessions', 'show', 'claim-18', '--events')).out.trimEnd().split('\n')
  expect(events).toHaveLength(3)
  expect(events[1]).toMatch(/^ +2 .* APPROVE +→ paying \{"by":"ann"\}$/)
  const records = (await run('sessions', 'show', 'claim-18', '--json')).out.trimEnd().split('\n')
  expect(records.map((line) => (JSON.parse(line) as { event: { type: string } }).event.type)).toEqual([
    'xstate.init',
    'APPROVE',
    'xstate.done.actor.0.claim.paying',
  ])
  expect(records.flatMap((line) => faults(JSON.parse(line)))).toEqual([])
})

test('sessions list names the problem of a damaged machine', async () => {
  const store = fileStore({ dir })
  const lease = store.acquire('claim-19', { holder: 'a test', ttlMs: 1_000 })
  const [one] = store.read('claim-18') as [LogRecord]
  const { summary } = store.get('claim-18') ?? {}
  store.append(lease, [forged(one, (value) => ({ ...(value as object), state: {} }))], summary ?? undefined)
  store.release(lease)
  const { code, out } = await run('sessions', 'list')
  expect([code, out]).toEqual([0, expect.stringMatching(/^claim-19 +corrupt_log /m)])
  store.delete('claim-19')
  store.close()
})

test('sessions show names the session that continues a sub-agent', async () => {
  const store = fileStore({ dir })
  const pay = tool('pay', () => 'paid', { needsApproval: true })
  const model = new ManualModel()
  const agent = createAgent({ model, tools: [pay] })
  const machine = setup({ actors: { agent: agent.machine } }).createMachine({
    id: 'desk',
    invoke: { src: 'agent', input: () => agent.createInput('Pay.') },
  })
  const desk = durable(machine, { store })
  await desk.start('desk-1')
  for (let i = 0; i < 1000 && model.attempts.length === 0; i += 1) await settled()
  model.pending?.answer({ toolCalls: [call('a', 'pay')], finishReason: 'tool_calls' })
  const { pending } = await desk.settled('desk-1')
  const child = pending[0]?.session ?? ''
  const { out } = await run('sessions', 'show', child)
  expect(out).toMatch(/^The run is waiting: pay\(.*\) \[a@[0-9a-f]{16}\] needs approval\.$/m)
  expect(out).toContain(
    `It is a sub-agent of 'desk-1'. Answer or continue that session: statewright sessions show desk-1`,
  )
  expect(out).not.toContain('statewright resume')
  const { err } = await run('send', child, 'approve', 'a')
  expect(err).toContain(`statewright sessions fork ${child} creates an independent session.`)
  await desk.delete('desk-1')
  store.close()
})

test('commands for agents report that it is a machine, or omit it', async () => {
  for (const args of [
    ['resume', 'claim-17'],
    ['send', 'claim-17', 'cancel'],
    ['sessions', 'export', 'claim-17'],
    ['sessions', 'fork', 'claim-17'],
  ]) {
    const { code, err } = await run(...args)
    expect([args, code !== 0, err.includes("belongs to the machine 'claim'")]).toEqual([args, true, true])
  }
  const { code, out } = await run('sessions', 'check', '--spec')
  expect([code, out]).toEqual([0, '0 of 0 sessions have a valid log.\n'])
})
