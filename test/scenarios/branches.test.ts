import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import {
  type Agent,
  type AgentOptions,
  createAgent,
  defineTool,
  memoryStore,
  type ModelProvider,
  patternShield,
  StoreError,
  UsageError,
} from '../../src/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import type { SessionStore } from '../../src/core/sessions/store/store.js'
import { clearRecords } from '../../src/core/sessions/clear-records.js'
import { foldRecords } from '../../src/core/sessions/fold-session.js'
import { replaySession } from '../../src/testing/index.js'
import { z } from 'zod'
import { distant } from '../support/distant.js'
import { longTest, sampled, sampledKinds } from '../support/extent.js'
import { call, ManualModel, plainAnswer, settled } from '../support/manual-model.js'
import { faults } from '../support/record-faults.js'

const folders: string[] = []
const openStores: SessionStore[] = []

afterEach(async () => {
  await Promise.all(openStores.splice(0).map(async (store) => store.close()))
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true })))
})

const kinds: [string, () => Promise<SessionStore>][] = [
  ['in memory', async () => memoryStore()],
  ['asynchronously', async () => distant(memoryStore())],
  [
    'in files',
    async () => {
      const dir = await mkdtemp(join(tmpdir(), 'statewright-branches-'))
      folders.push(dir)
      const store = fileStore({ dir })
      openStores.push(store)
      return store
    },
  ],
]

/** Answers with a number and the last user message. */
function counting(): ModelProvider {
  let requestCount = 0
  return {
    provider: 'counting',
    model: 'counting-1',
    request: async ({ messages }) => {
      requestCount += 1
      const last = messages.findLast(({ role }) => role === 'user')?.content
      return { ...plainAnswer, text: `${requestCount}: ${JSON.stringify(last)}` }
    },
  }
}

function scene(store: SessionStore, options: Partial<AgentOptions> = {}): Agent {
  return createAgent({ model: counting(), store, clock: new SimulatedClock(), prices: null, ...options })
}

async function conversation(agent: Agent, branch?: number, id = 's'): Promise<unknown[]> {
  const { messages } = await agent.replay(id, branch === undefined ? {} : { branch })
  return messages.map(({ content }) => content)
}

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'none',
    (error: unknown) => {
      if (error instanceof UsageError || error instanceof StoreError) return error.code
      throw error
    },
  )

describe.each(sampledKinds(kinds))('a store that answers %s', (_kind, open) => {
  test('keeps the previous answer next to the new one, and both are paid for', async () => {
    const store = await open()
    const agent = scene(store)
    await agent.run('A', { session: 's' }).result
    await agent.run('B', { session: 's' }).result
    const { output } = await agent.branch('s', { from: 'm3' }).result
    expect(output).toBe('3: "B"')
    expect((await agent.replay('s')).usage.totalTokens).toBe(45)
    expect(await conversation(agent)).toEqual(['A', '1: "A"', 'B', '3: "B"'])
    expect(await conversation(agent, 1)).toEqual(['A', '1: "A"', 'B', '2: "B"'])
    expect(await agent.listBranches('s')).toMatchObject([
      { branch: 1, parent: null, isCurrent: false },
      { branch: 2, parent: 1, shared: 3, isCurrent: true },
    ])
    expect((await agent.replay('s')).branches).toMatchObject({
      current: 2,
      points: [{ at: 3, position: 2, count: 2, branches: [1, 2] }],
    })
    // Another process continues from the same place.
    await scene(store).run('C', { session: 's' }).result
    expect(await conversation(agent)).toEqual(['A', '1: "A"', 'B', '3: "B"', 'C', '1: "C"'])
    expect((await store.get('s'))?.summary).toMatchObject({ totalTokens: 60, messages: 6, runs: 4 })
  })

  test('keeps the previous branch after an edit, and can select and continue it', async () => {
    const store = await open()
    const agent = scene(store)
    await agent.run([{ content: 'A', clientId: 'page-a' }], { session: 's' }).result
    await agent.run('B', { session: 's' }).result
    await agent.branch('s', { from: 'page-a', edit: 'A2' }).result
    expect(await conversation(agent)).toEqual(['A2', '3: "A2"'])
    await agent.selectBranch('s', 1)
    await agent.selectBranch('s', 1)
    expect(await conversation(agent)).toEqual(['A', '1: "A"', 'B', '2: "B"'])
    expect((await store.get('s'))?.summary).toMatchObject({ totalTokens: 45, messages: 4 })
    const { messages } = await agent.run('C', { session: 's' }).result
    expect((await agent.replay('s')).usage.totalTokens).toBe(60)
    // Message ids are unique across branches.
    expect(messages.map(({ id }) => id)).toEqual(['m1', 'm2', 'm3', 'm4', 'm7', 'm8'])
    expect((await agent.replay('s', { branch: 2 })).messages.map(({ id }) => id)).toEqual(['m5', 'm6'])
    expect((await agent.replay('s', { branch: 2 })).branches?.points).toEqual([
      { at: 0, position: 2, count: 2, branches: [1, 2] },
    ])
    expect(messages[0]?.data?.['clientId']).toBe('page-a')
  })

  test('creates one branch per key, for any number of requests', async () => {
    const store = await open()
    const [one, other] = [scene(store), scene(store)]
    await one.run('A', { session: 's' }).result
    const all = await Promise.all(
      [one, other, one].map((agent) => codeOf(agent.branch('s', { from: 'm1', key: 'once' }).result)),
    )
    const refusals = all.filter((code) => code !== 'none')
    expect(all.length - refusals.length).toBe(1)
    for (const code of refusals) expect(['session_busy', 'already_branched']).toContain(code)
    expect(await codeOf(other.branch('s', { from: 'm1', key: 'once' }).result)).toBe('already_branched')
    expect(await one.listBranches('s')).toHaveLength(2)
  })

  test('deletes a session with all branches', async () => {
    const store = await open()
    const agent = scene(store)
    await agent.run('A', { session: 's' }).result
    await agent.branch('s', { from: 'm1' }).result
    expect(await agent.deleteSession('s')).toBe(true)
    expect(await codeOf(agent.listBranches('s'))).toBe('unknown_session')
    expect(await codeOf(agent.replay('s', { branch: 1 }))).toBe('unknown_session')
  })
})

describe('a refusal', () => {
  test('names what the session lacks, and the remedy', async () => {
    const store = memoryStore()
    const agent = scene(store)
    const from = (id: string, session = 's') => codeOf(agent.branch(session, { from: id }).result)
    expect(await from('m1', 'none')).toBe('unknown_session')
    await agent.run('A', { session: 's' }).result
    expect(await from('m9')).toBe('unknown_message')
    expect(await codeOf(agent.selectBranch('s', 2))).toBe('unknown_branch')
    expect(await codeOf(agent.selectBranch('s', 1.5))).toBe('unknown_branch')
    expect(await codeOf(agent.selectBranch('none', 1))).toBe('unknown_session')
    expect(await codeOf(agent.replay('s', { branch: 0 }))).toBe('unknown_branch')
    expect(await codeOf(agent.replay('s', { branch: 1, to: 1 }))).toBe('invalid_option')
    await agent.branch('s', { from: 'm2' }).result
    expect(await from('m2')).toBe('other_branch')
    expect(await from('m1.answer')).toBe('other_branch')
    expect(store.list().map(({ id }) => id)).toEqual(['s'])
    for (const wrong of [
      undefined,
      {},
      { from: 'm1', key: '' },
      { from: 'm1', session: 'x' },
      { from: 'm1', maxSteps: 1 },
    ])
      expect(await codeOf(agent.branch('s', wrong as never).result)).toBe('invalid_option')
    expect(() => createAgent({ model: counting() }).branch('s', { from: 'm1' })).toThrow(UsageError)
  })

  test('covers an unanswered message with a successor, and a message refused by a shield', async () => {
    const store = memoryStore()
    const shield = patternShield({ name: 'no-secrets', patterns: [/secret/], action: 'block' })
    const agent = scene(store, { shields: { input: [shield] } })
    await agent.run([{ content: 'A' }, { content: 'B' }], { session: 's' }).result
    expect(await codeOf(agent.branch('s', { from: 'm1' }).result)).toBe('not_answered')
    await agent.run('A secret.', { session: 's' }).result
    const { messages } = await agent.replay('s')
    const refused = messages.findLast(({ role }) => role === 'user')?.id ?? ''
    expect(await codeOf(agent.branch('s', { from: refused }).result)).toBe('refused_by_shield')
    const { state } = await agent.branch('s', { from: refused, edit: 'No such thing.' }).result
    expect(state).toBe('COMPLETED')
    expect(JSON.stringify(clearRecords(store.read('s'), 's').records)).not.toContain('secret.')
  })

  test('writes nothing while the session works or waits', async () => {
    const store = memoryStore()
    const model = new ManualModel()
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      input: z.object({}),
      needsApproval: () => true,
      execute: () => 'paid',
    })
    const agent = scene(store, { model, tools: [pay] })
    const run = agent.run('Pay.', { session: 's' })
    await settled()
    expect(await codeOf(agent.branch('s', { from: 'm1' }).result)).toBe('session_busy')
    model.pending?.answer({ toolCalls: [call('c', 'pay')] })
    expect(await run.result).toMatchObject({ state: 'WAITING_FOR_INPUT' })
    const before = store.read('s').length
    expect(await codeOf(agent.branch('s', { from: 'm1' }).result)).toBe('unfinished_run')
    expect(store.read('s')).toHaveLength(before)
    run.cancel()
    await run.result
    // An answer on one branch does not resolve a pending call on another, even if the calls look the same.
    const next = agent.branch('s', { from: 'm1' })
    await settled()
    model.pending?.answer({ text: 'No.' })
    expect(await next.result).toMatchObject({ state: 'COMPLETED' })
    expect(await codeOf(agent.send('s', { type: 'approve', callId: 'c' }))).toBe('run_ended')
  })

  longTest('more than a hundred branches', async () => {
    const agent = scene(memoryStore())
    let text = (await agent.run('A', { session: 's' }).result).messages
    for (let i = 0; i < 99; i++) text = (await agent.branch('s', { from: text[0]?.id ?? '' }).result).messages
    const { messages, branches } = await agent.replay('s')
    expect(branches?.points).toMatchObject([{ position: 100, count: 100 }])
    expect(await codeOf(agent.branch('s', { from: messages[0]?.id ?? '' }).result)).toBe('too_many_branches')
  })
})

test('a process that dies right after the branch started loses nothing, and the resume continues its answer', async () => {
  const near = memoryStore()
  const model = new ManualModel()
  const agent = scene(near, { model })
  const first = agent.run('A', { session: 's' })
  await settled()
  model.pending?.answer({ text: 'One.' })
  await first.result
  const whole = near.read('s').length
  agent.branch('s', { from: 'm1', key: 'k' })
  await settled()
  const records = near.read('s')
  expect(records.length).toBeGreaterThan(whole)
  // Cuts the branch at each record, as a kill would.
  for (let end = whole; end <= records.length; end++) {
    const store = memoryStore()
    const lease = store.acquire('s', { holder: 'the test', ttlMs: 1000 })
    store.append(lease, records.slice(0, end))
    store.release(lease)
    const other = scene(store)
    const retry = await codeOf(other.branch('s', { from: 'm1', key: 'k' }).result)
    expect(retry).toBe(end === whole ? 'none' : 'already_branched')
    if (end > whole) await (await other.resume('s')).result
    expect(await conversation(other)).toEqual(['A', '1: "A"'])
    expect(await other.listBranches('s')).toHaveLength(2)
  }
})

test('an interrupted session, its records and its exports contain every branch', async () => {
  const store = memoryStore()
  const agent = scene(store)
  // Long enough that the log contains snapshots.
  await agent.run('x'.repeat(70_000), { session: 's' }).result
  await agent.branch('s', { from: 'm1', edit: 'A' }).result
  await agent.selectBranch('s', 1)
  await agent.branch('s', { from: 'm1', edit: 'y'.repeat(70_000) }).result
  await agent.run('B', { session: 's' }).result
  const records = store.read('s')
  expect(records.some(({ type, data }) => type === 'snapshot' && data.includes('"branches"'))).toBe(true)
  for (const record of clearRecords(records, 's').records) expect(faults(record)).toEqual([])
  // Replaying from a snapshot and replaying from the start give the same state.
  const fromSnapshot = foldRecords(store.read('s', { from: 'snapshot' }), 's')
  const fromStart = foldRecords(records, 's')
  expect(fromSnapshot.branches).toEqual(fromStart.branches)
  expect(fromSnapshot.state).toEqual(fromStart.state)
  expect(fromStart.branches?.branches).toHaveLength(3)
  const replayed = await replaySession(agent, records)
  expect(replayed).toMatchObject({ state: 'COMPLETED', runs: 4 })
  // A fork is a session with one branch, and it can continue.
  const fork = await agent.fork('s')
  await agent.run('C', { session: fork }).result
  const ids = (await agent.replay(fork)).messages.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  expect((await agent.readSession('s')).messages).toHaveLength(4)
})

test('branches match a plain list of transcripts', async () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('say' as const) }),
    fc.record({ do: fc.constant('again' as const), at: fc.nat(20) }),
    fc.record({ do: fc.constant('edit' as const), at: fc.nat(20) }),
    fc.record({ do: fc.constant('select' as const), at: fc.nat(20) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const agent = scene(memoryStore())
      await agent.run('0', { session: 's' }).result
      const counter = { count: 1 }
      const answer = (text: string): string => `${(counter.count += 1)}: ${JSON.stringify(text)}`
      const branches: string[][] = [['0', '1: "0"']]
      let current = 0
      for (const [n, one] of steps.entries()) {
        const path = branches[current] ?? []
        const turn = one.do === 'say' || one.do === 'select' ? 0 : (one.at % (path.length / 2)) * 2
        const { messages } = await agent.replay('s')
        const from = messages[turn]?.id ?? ''
        if (one.do === 'say') {
          await agent.run(`${n}`, { session: 's' }).result
          branches[current] = [...path, `${n}`, answer(`${n}`)]
        } else if (one.do === 'select') {
          current = one.at % branches.length
          await agent.selectBranch('s', current + 1)
        } else {
          const edit = one.do === 'edit' ? `edit ${n}` : undefined
          await agent.branch('s', { from, ...(edit !== undefined && { edit }) }).result
          const text = edit ?? path[turn] ?? ''
          branches.push([...path.slice(0, turn), text, answer(text)])
          current = branches.length - 1
        }
      }
      const listed = await agent.listBranches('s')
      expect(listed.map(({ isCurrent }) => isCurrent).indexOf(true)).toBe(current)
      for (const [i, transcript] of branches.entries()) {
        expect(await conversation(agent, i + 1)).toEqual(transcript)
        const { branches: shown } = await agent.replay('s', { branch: i + 1 })
        for (const { at, position, count, branches: others } of shown?.points ?? []) {
          expect(others).toHaveLength(count)
          expect(others[position - 1]).toBe(i + 1)
          const variants = others.map((other) => branches[other - 1] ?? [])
          // Both share the records before the point and differ after it.
          for (const variant of variants) expect(variant.slice(0, at)).toEqual(transcript.slice(0, at))
          expect(new Set(variants.map((variant) => variant[at])).size).toBe(count)
        }
      }
      expect((await agent.replay('s')).usage.totalTokens).toBe(counter.count * 15)
    }),
    { numRuns: sampled(60) },
  )
})
